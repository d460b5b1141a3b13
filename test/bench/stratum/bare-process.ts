/**
 * The yardstick: node:net and nothing else, in as many threads; with `handles`, the handles beneath it and nothing else. It
 * writes the bytes a stratum server would (the login's answers with a job, an answer per line, a job to all) without reading,
 * checking or deriving anything.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { HandleStream } from '../../../bridge/connection/handle-stream.ts';
import { takeHandles } from '../../../bridge/connection/handles.ts';
import { answerAsked } from './asked.ts';
import { ACCEPTED, AUTHORIZED, JOB, SUBSCRIBED } from './bare-bytes.ts';

type Task = { readonly job: true };

const counts = new WeakMap<object, number>();

/** What answers a chunk. */
function answersTo(connection: object, chunk: Uint8Array): string {
  let lines = 0;
  for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++;
  const before = counts.get(connection) ?? 0;
  if (before < 2) counts.set(connection, before + lines);
  let out = '';
  for (let i = 0; i < lines; i++) out += before + i === 0 ? SUBSCRIBED : before + i === 1 ? AUTHORIZED + JOB : ACCEPTED;
  return out;
}

function serve(port: number, streams: string): Promise<{ port: number; job(): void }> {
  const sockets = new Set<Socket>();
  const handles = new Set<HandleStream>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      const out = answersTo(socket, chunk);
      if (out !== '') socket.write(out, 'latin1');
    });
  });
  const events = {
    onData(this: HandleStream, chunk: Uint8Array) {
      const out = answersTo(this, chunk);
      if (out !== '') this.write(out, false);
    },
    onClose(this: HandleStream) {
      handles.delete(this);
    },
  };
  const take = (stream: HandleStream): void => {
    handles.add(stream);
    stream.start();
  };
  const bytes = Buffer.from(JOB, 'latin1');
  return new Promise((resolve) => {
    server.listen({ port, host: '127.0.0.1', reusePort: true, backlog: 16_384 }, () => {
      if (streams === 'handles')
        takeHandles(
          server,
          (handle) => take(new HandleStream(handle, events)),
          () => {},
        );
      resolve({
        port: (server.address() as AddressInfo).port,
        job: () => {
          for (const socket of sockets) socket.write(bytes);
          for (const handle of handles) handle.write(bytes, false);
        },
      });
    });
  });
}

if (isMainThread) {
  const threads = Number(process.argv[2] ?? 2);
  const streams = process.argv[5] ?? 'sockets';
  const workers: Worker[] = [];
  let port = 0;
  for (let i = 0; i < threads; i++) {
    const worker = new Worker(new URL(import.meta.url), { workerData: { port, streams } });
    port = await new Promise<number>((resolve) => worker.once('message', resolve));
    workers.push(worker);
  }
  answerAsked({
    ports: async () => ({ tcp: port, ws: 0 }),
    memory: async () => {
      globalThis.gc?.();
      await new Promise((resolve) => setTimeout(resolve, 300));
      return process.memoryUsage().rss;
    },
    job: async () => {
      const at = process.hrtime.bigint().toString();
      for (const worker of workers) worker.postMessage({ job: true } satisfies Task);
      return at;
    },
    cpu: async () => process.cpuUsage().user + process.cpuUsage().system,
    stall: async () => 0,
    stop: async () => process.exit(0),
  });
} else {
  const given = workerData as { port: number; streams: string };
  const { port, job } = await serve(given.port, given.streams);
  parentPort?.postMessage(port);
  parentPort?.on('message', () => job());
}
