/** The thread of the network: a PeerHost behind calls from the node's thread. */
import { parentPort } from 'node:worker_threads';
import type { HostSide, NodeSide } from './host-types.ts';
import { PeerHost } from './peer-host.ts';
import { ThreadCalls } from './thread-calls.ts';

if (parentPort === null) throw new Error('this file is started as a thread');

const offered: HostSide = {
  start: (settings) => host.start(settings),
  ask: (peer, protocol, question) => host.ask(peer, protocol, question),
  publish: (topic, data) => host.publish(topic, data),
  setHeight: (height) => host.setHeight(height),
  fault: (peer, fault, reason) => host.fault(peer, fault, reason),
  figures: () => host.figures(),
  close: () => host.close(),
};
const host = new PeerHost(new ThreadCalls<NodeSide>(parentPort, offered).remote);
