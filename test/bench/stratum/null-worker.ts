/** A verification worker that computes nothing: what is left of a submit is the server's own work. */
import { type MessagePort, parentPort } from 'node:worker_threads';

parentPort?.on('message', (port: MessagePort) => {
  port.on('message', ({ id, headers }: { id: number; headers: Uint8Array }) => {
    port.postMessage({ id, hashes: new Uint8Array((headers.length / 312) * 32).fill(0x08) });
  });
});
