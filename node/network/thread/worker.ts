/** The thread of the network: a PeerHost behind calls from the node's thread. */
import { parentPort } from 'node:worker_threads';
import type { HostSide, NodeSide } from './host-types.ts';
import { PeerHost } from './peer-host.ts';
import { ThreadCalls } from './thread-calls.ts';

if (parentPort === null) throw new Error('this file is started as a thread');

const port = parentPort;

/** Then nothing keeps the thread alive, once the answer is sent and QUIC has ended. */
async function end(): Promise<void> {
  await host.close();
  setImmediate(() => port.close());
}

// The thread ends by this, and is started again; but not before QUIC has ended in it.
process.once('uncaughtException', (error) => {
  void end().finally(() => {
    process.exitCode = 1;
    throw error;
  });
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
const host = new PeerHost(new ThreadCalls<NodeSide>(port, offered).remote);
