/**
 * The network of a node without a thread of its own: the same host behind the same messages. A thread loads all its modules again, which takes 0.4 s of
 * processor time; that there is one, and what happens when it ends, is in test/faults/network-thread.long.test.ts, and in every program. QUIC is ended by the end of its thread.
 */
import { MessageChannel, type Worker } from 'node:worker_threads';
import { type OpenPeers, PeerNetwork, threadOfPeers } from '../../node/network/peer-network.ts';
import { isQuic } from '../../node/network/peers/peer-address.ts';
import { serveHost } from '../../node/network/thread/serve-host.ts';

function portOfHost(): Worker {
  const { port1, port2 } = new MessageChannel();
  serveHost(port2);
  const terminate = async () => {
    port1.close();
    return 0;
  };
  return Object.assign(port1, { terminate }) as unknown as Worker;
}

export const hostHere: OpenPeers = (settings, handlers, log) => {
  const { listen, bootstrap } = settings();
  if ([...listen, ...bootstrap].some(isQuic)) return threadOfPeers(settings, handlers, log);
  return new PeerNetwork(settings, handlers, log, portOfHost);
};
