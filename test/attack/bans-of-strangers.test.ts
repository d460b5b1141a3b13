/** Whoever has many addresses earns a ban for each with one packet. What a ban costs depends neither on the connections of others nor on the bans of before. */
import { BlockList } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { followLoggedBans } from '../../pool/api/operator/logged-bans.ts';
import { LocalSharedState } from '../../pool/shared/shared-state.ts';
import { deskBed, RecordingPeer } from '../bridge/desk-bed.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';
import { addressOf } from '../bridge/stratum-client.ts';

const HOUR = 3_600_000;
const STRANGER = '203.0.113.5';

test('a ban looks at the connections of its address that are not logged in, and at no others', async () => {
  const bed = await deskBed();
  await bed.publish(10);
  const subscribed = async (ip: string) => {
    const miner = new DeskMiner(bed, ip);
    await miner.ask({ method: 'mining.subscribe', params: { agent: 'x/1', tag: '', session: null } });
    return miner;
  };
  const [mines, waits] = [await subscribed('198.51.100.7'), await subscribed('198.51.100.8')];
  await mines.ask({ method: 'mining.authorize', params: { username: `${addressOf(1)}.a`, password: '' } });
  const [first, second] = [await subscribed(STRANGER), await subscribed(STRANGER)];
  let looked = 0;
  for (const { conversation } of [mines, waits])
    Object.defineProperty(conversation, 'isEnding', {
      get: () => {
        looked++;
        return false;
      },
    });
  bed.desk.ban(STRANGER, bed.clock + HOUR);
  expect([first.peer.isClosed, second.peer.isClosed, mines.peer.isClosed, waits.peer.isClosed]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(looked).toBe(0);
});

test('bans that hold are not looked at again and again, and end in time', async () => {
  const bed = await deskBed();
  await bed.publish(10);
  const { bans } = bed.desk;
  for (let i = 0; i < 100; i++) bed.desk.ban(`198.51.100.${i}`, bed.clock + HOUR + (i % 7));
  let looked = 0;
  const entries = bans.entries.bind(bans);
  bans[Symbol.iterator] = function* () {
    for (const entry of entries()) {
      looked++;
      yield entry;
    }
    return undefined;
  };
  for (let i = 0; i < 10; i++) bed.desk.tick();
  expect(looked).toBe(10);
  bed.clock += HOUR + 3;
  const refused = (ip: string) => {
    const peer = new RecordingPeer();
    bed.open('v1', peer, ip);
    return peer.isClosed;
  };
  expect([3, 4].map((i) => refused(`198.51.100.${i}`))).toEqual([false, true]);
  bed.clock += 4;
  bed.desk.tick();
  expect(bans.size).toBe(0);
});

test('a connection is looked for in all networks that operators banned at once', async () => {
  const bed = await deskBed();
  await bed.publish(10);
  for (let i = 0; i < 100; i++) bed.desk.ban(`198.51.${i}.0/24`, bed.clock + HOUR);
  bed.desk.ban(addressOf(1), bed.clock + HOUR);
  const looked = vi.spyOn(BlockList.prototype, 'check');
  onTestFinished(() => looked.mockRestore());
  const isRefused = (ip: string) => {
    const peer = new RecordingPeer();
    bed.open('v1', peer, ip);
    return peer.isClosed;
  };
  expect(isRefused(STRANGER)).toBe(false);
  expect(looked.mock.calls.length).toBeLessThan(5);
  expect([isRefused('198.51.7.7'), isRefused('198.51.99.1'), isRefused('198.51.100.1')]).toEqual([true, true, false]);
  bed.desk.ban('198.51.7.0/24', 0);
  expect([isRefused('198.51.7.7'), isRefused('198.51.8.7')]).toEqual([false, true]);
  bed.clock += HOUR;
  bed.desk.tick();
  expect(isRefused('198.51.8.7')).toBe(false);
  bed.logged.splice(0);
});

test('what operators banned is found without a look at each ban by score', async () => {
  let now = 1_000;
  const shared = new LocalSharedState({ resumeMillis: 1, resumeSessions: 1 }, () => now);
  const untilMillis = now + HOUR;
  for (let i = 0; i < 100; i++) await shared.ban({ key: `198.51.100.${i}`, untilMillis });
  await shared.ban({ key: '203.0.113.0/24', untilMillis });
  let looked = 0;
  const bans = async () =>
    (await shared.bans()).map((ban) => ({
      ...ban,
      get key() {
        looked++;
        return ban.key;
      },
    }));
  const unbanned: string[] = [];
  const unban = async (key: string) => unbanned.push(key) > 0;
  now++;
  await followLoggedBans(
    { bans, unban, ban: async () => undefined },
    async () => [],
    () => now,
  );
  expect(unbanned).toEqual(['203.0.113.0/24']);
  expect(looked).toBeLessThan(10);
});
