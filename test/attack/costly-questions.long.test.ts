/** Peers whose questions are cheap to ask and dear to answer, and peers that do not read what they asked for. */
import { randomBytes } from 'node:crypto';
import { lpStream } from '@libp2p/utils';
import { afterEach, expect, test } from 'vitest';
import { ServingBudget } from '../../node/network/peers/serving-budget.ts';
import { encodeSyncQuestion } from '../../node/network/sync/sync-messages.ts';
import { ask } from '../../node/network/thread/asking.ts';
import { PROTOCOLS } from '../../node/network/thread/host-types.ts';
import { pause, RawPeer } from '../network/raw-peer.ts';
import { RelayHost } from '../network/relay-host.ts';
import { until } from '../until.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0)) await part.close();
});

const QUESTION = encodeSyncQuestion({ type: 'headers', to: 1, count: 1 });
/** Its time for an answer is the shorter one. */
const RELAY = PROTOCOLS.relay.name;
const MEBIBYTE = 1_024 * 1_024;

test('a peer that costs much is answered less, and not at the price of others', () => {
  let now = 0;
  const budget = new ServingBudget(() => now);
  const asked = { greedy: 0, modest: 0 };
  for (; now < 60_000; now += 10) {
    // 50 milliseconds of the main thread, as often as it may; the other one asks for little.
    if (budget.mayAsk('greedy')) {
      asked.greedy++;
      budget.charge('greedy', 50, 300_000);
    }
    if (now % 500 === 0 && budget.mayAsk('modest')) {
      asked.modest++;
      budget.charge('modest', 20, 300_000);
    }
  }
  expect(asked.modest).toBe(120);
  // 15 % of the time, and what it had saved up.
  expect(asked.greedy * 50).toBeLessThan(0.15 * 60_000 + 1_600);
});

test('a new connection, and a new name at the same address, are no new budget', () => {
  const budget = new ServingBudget(() => 0);
  const ask = (peer: string) => {
    budget.joined(peer, '/ip4/66.6.6.6/tcp/1');
    const may = budget.mayAsk(peer);
    budget.charge(peer, 10_000, 1);
    return may;
  };
  expect([ask('first'), ask('first'), ask('second')]).toEqual([true, false, false]);
});

test('snapshots that many addresses read have one bound over all', () => {
  let now = 0;
  const budget = new ServingBudget(() => now);
  let bytes = 0;
  for (; now < 60_000; now += 10)
    for (let i = 0; i < 30; i++)
      if (budget.mayReadPart(`peer ${i}`)) {
        budget.chargePart(`peer ${i}`, MEBIBYTE);
        bytes += MEBIBYTE;
      }
  // 16 MiB a second, and what was saved up.
  expect(bytes / MEBIBYTE).toBeGreaterThanOrEqual(16 * 60);
  expect(bytes / MEBIBYTE).toBeLessThanOrEqual(16 * 60 + 128);
});

test('strangers that read snapshots as fast as they may leave others their part', () => {
  let now = 0;
  const budget = new ServingBudget(() => now);
  const isGiven = (peer: string) => {
    if (!budget.mayAsk(peer) || !budget.mayReadPart(peer)) return false;
    budget.chargePart(peer, MEBIBYTE);
    budget.charge(peer, 0.1, MEBIBYTE);
    return true;
  };
  for (const strangers of [2, 40]) {
    let parts = 0;
    // They ask before this one each time; it asks once in two seconds, as one does that was told to wait.
    for (const end = now + 600_000; now < end; now += 20) {
      for (let i = 0; i < strangers; i++) isGiven(`stranger ${i}`);
      if (now % 2_000 === 0 && isGiven('new node')) parts++;
    }
    // All but a few of the 300 that it asked for.
    expect(parts, `${strangers} strangers`).toBeGreaterThan(140);
  }
});

test('who asks little takes nothing from others: neither many that are there, nor a thousand that come and go', () => {
  const answered = (strangers: number, coming: number): number => {
    let now = 0;
    let [name, count] = [0, 0];
    const budget = new ServingBudget(() => now);
    const asks = (peer: string, millis: number) => {
      if (!budget.mayAsk(peer)) return false;
      budget.charge(peer, millis, 1_000);
      return true;
    };
    for (; now < 60_000; now += 20) {
      if (now % 9_000 === 0) for (let i = 0; i < strangers; i++) asks(`stranger ${i}`, 0.02);
      if (now % 1_000 === 0) for (let i = 0; i < coming; i++) asks(`coming ${name++}`, 0.02);
      if (asks('syncing', 5)) count++;
    }
    return count;
  };
  const alone = answered(0, 0);
  expect(alone).toBeGreaterThan(500);
  expect(answered(42, 0)).toBeGreaterThan(0.9 * alone);
  expect(answered(0, 100)).toBeGreaterThan(0.9 * alone);
});

test('many peers together leave the main thread most of its time, and who asks little is answered', () => {
  let now = 0;
  const budget = new ServingBudget(() => now);
  let millis = 0;
  let [answered, refused] = [0, 0];
  for (; now < 60_000; now += 10) {
    for (let i = 0; i < 40; i++)
      if (budget.mayAsk(`greedy ${i}`)) {
        budget.charge(`greedy ${i}`, 50, 1_000);
        millis += 50;
      }
    if (now % 1_000 !== 0) continue;
    if (budget.mayAsk('modest')) answered++;
    else refused++;
    budget.charge('modest', 5, 1_000);
  }
  expect(refused).toBe(0);
  expect(answered).toBe(60);
  // Their share of a minute, what they had saved up when they came, and the last answer of each.
  expect(millis).toBeLessThan(300 * 60 + 15_000 + 40 * 50);
});

test('answers that nobody reads use up no room of others', async () => {
  const node = new RelayHost({ serve: async () => new Uint8Array(2 * 1_024 * 1_024) });
  open.push(node);
  await node.start();
  const honest = await RawPeer.open(node.chainId);
  open.push(honest);
  const connection = await honest.join(node.address);
  const limits = { bytes: 4_000_000, millis: 20_000 };
  expect((await ask(connection, RELAY, QUESTION, limits)).length).toBe(2 * 1_024 * 1_024);
  const mutes = await Promise.all(Array.from({ length: 10 }, () => RawPeer.open(node.chainId)));
  open.push(...mutes);
  for (const mute of mutes) {
    const to = await mute.join(node.address);
    for (let i = 0; i < 4; i++) {
      const stream = await to.newStream(RELAY, { maxOutboundStreams: 64 });
      stream.pause();
      await lpStream(stream).write(QUESTION);
    }
  }
  await pause(1_000);
  for (let i = 0; i < 5; i++) expect((await ask(connection, RELAY, QUESTION, limits)).length).toBeGreaterThan(0);
  expect(node.blamed).toEqual([]);
});

test('a node that cannot answer now says so, and nobody is blamed for it', async () => {
  const node = new RelayHost();
  open.push(node);
  await node.start();
  const busy = await RawPeer.open(node.chainId, { relay: async () => new Uint8Array(0) });
  open.push(busy);
  await busy.join(node.address);
  await until(() => node.joined.length === 1);
  await expect(node.host.ask(busy.name, 'relay', randomBytes(1).fill(4))).rejects.toMatchObject({ code: 'busy' });
  expect(node.blamed).toEqual([]);
});
