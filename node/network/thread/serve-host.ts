/** A PeerHost behind calls over a port. */
import type { MessagePort } from 'node:worker_threads';
import type { HostSide, NodeSide } from './host-types.ts';
import { PeerHost } from './peer-host.ts';
import { type Remote, ThreadCalls } from './thread-calls.ts';

export type ServedHost = {
  readonly node: Remote<NodeSide>;
  /** Then nothing keeps its thread alive, once the answer is sent and QUIC has ended. */
  end(): Promise<void>;
};

export function serveHost(port: MessagePort): ServedHost {
  const end = async () => {
    await host.close();
    setImmediate(() => port.close());
  };
  const offered: HostSide = {
    start: (settings) => host.start(settings),
    ask: (peer, protocol, question) => host.ask(peer, protocol, question),
    publish: (topic, data) => host.publish(topic, data),
    setHeight: (height) => host.setHeight(height),
    fault: (peer, fault, reason) => host.fault(peer, fault, reason),
    figures: () => host.figures(),
    close: end,
  };
  const { remote } = new ThreadCalls<NodeSide>(port, offered);
  const host = new PeerHost(remote);
  return { node: remote, end };
}
