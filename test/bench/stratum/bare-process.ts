/**
 * The yardstick: node:net and nothing else, in as many threads. It writes the bytes a stratum server would (the login's
 * answers with a job, an answer per line, a job to all) without reading, checking or deriving anything.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { answerAsked } from './asked.ts';
import { ACCEPTED, AUTHORIZED, JOB, SUBSCRIBED } from './bare-bytes.ts';

type Task = { readonly job: true };

function serve(port: number, share: boolean): Promise<{ port: number; job(): void }> {
  const sockets = new Set<Socket>();
  const counts = new WeakMap<Socket, number>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      let lines = 0;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++;
      const before = counts.get(socket) ?? 0;
      if (before < 2) counts.set(socket, before + lines);
      let out = '';
      for (let i = 0; i < lines; i++)
        out += before + i === 0 ? SUBSCRIBED : before + i === 1 ? AUTHORIZED + JOB : ACCEPTED;
      if (out !== '') socket.write(out, 'latin1');
    });
  });
  const bytes = Buffer.from(JOB, 'latin1');
  return new Promise((resolve) => {
    server.listen({ port, host: '127.0.0.1', reusePort: share, backlog: 16_384 }, () =>
      resolve({
        port: (server.address() as AddressInfo).port,
        job: () => {
          for (const socket of sockets) socket.write(bytes);
        },
      }),
    );
  });
}

if (isMainThread) {
  const threads = Number(process.argv[2] ?? 2);
  const workers: Worker[] = [];
  let port = 0;
  for (let i = 0; i < threads; i++) {
    const worker = new Worker(new URL(import.meta.url), { workerData: { port } });
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
  const { port, job } = await serve((workerData as { port: number }).port, true);
  parentPort?.postMessage(port);
  parentPort?.on('message', () => job());
}
