/** Who asks for parts of a snapshot and is gone before they are read is charged for them all the same, and so is who shares its address. */
import { afterEach, expect, test, vi } from 'vitest';
import type { PeerHandlers, PeerLink } from '../../node/network/peer-network.ts';
import { encodeSyncQuestion } from '../../node/network/sync/sync-messages.ts';
import { BUSY } from '../../node/network/thread/host-types.ts';
import { NetBed } from '../network/peers.ts';

const MEBIBYTE = 1_024 * 1_024;
/** Of one address that reads as fast as it may: half of what is saved up, and what was under way. */
const MOST = 64 + 4;

const beds: NetBed[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const bed of beds.splice(0)) await bed.close();
});

test('strangers of one address that leave before their parts are read take no more than one part of what a node serves', async () => {
  // Nothing is regained meanwhile.
  vi.useFakeTimers({ toFake: ['performance'] });
  const bed = new NetBed();
  beds.push(bed);
  let handlers!: PeerHandlers;
  let reads = 0;
  const bytes = new Uint8Array(MEBIBYTE);
  const part = async () => {
    reads++;
    await new Promise((resolve) => setImmediate(resolve));
    return { length: MEBIBYTE, bytes };
  };
  const link = {
    start: async () => [],
    close: async () => undefined,
    setHeight: () => undefined,
    fault: () => undefined,
    publish: () => undefined,
  } as unknown as PeerLink;
  const openPeers = (_: unknown, given: PeerHandlers) => {
    handlers = given;
    return link;
  };
  await bed.start('server', {}, () => ({ openPeers, snapshots: { offers: () => [], part } }));
  const join = (peer: string, ip: string) =>
    handlers.joined(peer, {
      address: `/ip4/${ip}/tcp/1/p2p/${peer}`,
      direction: 'inbound',
      named: false,
      release: '0.1.0',
      height: 0,
    });
  const question = encodeSyncQuestion({ type: 'part', height: 191, part: 0, from: 0 });
  for (let i = 0; i < 100; i++) {
    join(`stranger ${i}`, '66.6.6.6');
    const asked = Array.from({ length: 4 }, () => handlers.serve(`stranger ${i}`, 'sync', question));
    handlers.left(`stranger ${i}`);
    await Promise.all(asked);
  }
  expect(reads).toBeLessThanOrEqual(MOST);
  join('new node', '77.7.7.7');
  expect(await handlers.serve('new node', 'sync', question)).not.toEqual(BUSY);
});
