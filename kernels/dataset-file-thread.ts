/** The worker thread of kernels/dataset-file.ts: does one read or write, reports progress, and ends. */
import { parentPort, workerData } from 'node:worker_threads';
import { type FileResult, type FileTask, type FileThreadMessage, readDataset, writeDataset } from './dataset-file.ts';

const task = workerData as FileTask;
const post = (message: FileThreadMessage): void => parentPort?.postMessage(message);

function run(): FileResult {
  try {
    return (task.act === 'read' ? readDataset : writeDataset)(task, (done) => post({ done }));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { ok: false, reason: code === 'ENOENT' && task.act === 'read' ? 'absent' : String(code ?? error) };
  }
}

post({ result: run() });
