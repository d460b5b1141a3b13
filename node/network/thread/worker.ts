/** The thread of the network. */
import { parentPort } from 'node:worker_threads';
import { serveHost } from './serve-host.ts';

if (parentPort === null) throw new Error('this file is started as a thread');

const END_MILLIS = 3_000;

// The node starts the thread again; but QUIC has to end in it first. What does not end by itself is ended by the error.
process.once('uncaughtException', (error) => {
  setTimeout(() => {
    throw error;
  }, END_MILLIS).unref();
  host.node
    .log('error', 'the thread of the network failed', { error: error.stack ?? error.message })
    .catch(() => undefined);
  void host.end();
});

const host = serveHost(parentPort);
