/** The thread of the network: a PeerHost behind calls from the node's thread. */
import { parentPort } from 'node:worker_threads';
import type { HostSide, NodeSide } from './host-types.ts';
import { PeerHost } from './peer-host.ts';
import { ThreadCalls } from './thread-calls.ts';

if (parentPort === null) throw new Error('this file is started as a thread');

const port = parentPort;
const END_MILLIS = 3_000;

/** Then nothing keeps the thread alive, once the answer is sent and QUIC has ended. */
async function end(): Promise<void> {
  await host.close();
  setImmediate(() => port.close());
}

// The node starts the thread again; but QUIC has to end in it first. What does not end by itself is ended by the error.
process.once('uncaughtException', (error) => {
  setTimeout(() => {
    throw error;
  }, END_MILLIS).unref();
  calls.remote
    .log('error', 'the thread of the network failed', { error: error.stack ?? error.message })
    .catch(() => undefined);
  void end();
});

const offered: HostSide = {
  start: (settings) => host.start(settings),
  ask: (peer, protocol, question) => host.ask(peer, protocol, question),
  publish: (topic, data) => host.publish(topic, data),
  setHeight: (height) => host.setHeight(height),
  fault: (peer, fault, reason) => host.fault(peer, fault, reason),
  figures: () => host.figures(),
  close: () => end(),
};
const calls = new ThreadCalls<NodeSide>(port, offered);
const host = new PeerHost(calls.remote);
