/**
 * Peers that answer, in time and truly, but so little at once or so late that a node which waits for them does not move:
 * a node that syncs goes on with others. Real ledgers and the real sync, without sockets between them.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { adoptInto } from '../../node/chain/adopted-cut.ts';
import type { Checkpoint } from '../../node/chain/checkpoints.ts';
import { AskError } from '../../node/network/peers/peer-fault.ts';
import { AskOrder } from '../../node/network/sync/ask-order.ts';
import { BlockFetch, LATE_MILLIS, WAITING_BYTES } from '../../node/network/sync/block-fetch.ts';
import { answerSync } from '../../node/network/sync/cut-server.ts';
import { CutSync } from '../../node/network/sync/cut-sync.ts';
import { HASTE_MILLIS } from '../../node/network/sync/search.ts';
import {
  ANSWER_BYTES,
  decodeCutsAnswer,
  decodeHeadersAnswer,
  decodeSyncQuestion,
  encodeBlocksAnswer,
  encodeCutsAnswer,
  encodeHeadersAnswer,
  MAX_BLOCKS,
  type SyncQuestion,
} from '../../node/network/sync/sync-messages.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { type Bytes, concat, equalBytes } from '../../protocol/bytes.ts';
import { encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { blockId, HEADER_BYTES } from '../../protocol/ledger/header.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { lying, NetBed } from '../network/peers.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';

const TIMERS = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] as const;
const INTERVAL = 48;
const CUTS = INTERVAL + 4;

let bed: NetBed;
let source: ConsensusNode;
let fresh: ConsensusNode;
let sync: CutSync | undefined;
/** `peer question`, in order. */
let asked: string[];
let blamed: string[];
/** An answer that does not come before the test ends. */
let never: PromiseWithResolvers<Uint8Array>;

beforeEach(async () => {
  bed = new NetBed({ intervalCuts: INTERVAL });
  [asked, blamed] = [[], []];
  never = Promise.withResolvers();
  never.promise.catch(() => undefined);
  source = await bed.openChain('source');
  fresh = await bed.openChain('fresh');
});
afterEach(async () => {
  never.reject(new Error('the connection ended'));
  await sync?.close();
  sync = undefined;
  for (const node of [source, fresh]) await node.close();
  await bed.close();
});

type Question = Exclude<SyncQuestion, { readonly type: 'snapshots' | 'part' }>;
type Answer = (question: Question) => Promise<Uint8Array>;

const honest: Answer = async (question) => answerSync(source.chain, question);

function follow(
  peers: Readonly<Record<string, Answer>>,
  checkpoints: readonly Checkpoint[] = [],
  steady: () => number = steadyMillis,
): CutSync {
  sync = new CutSync({
    ledger: fresh.ledger,
    adopt: adoptInto(fresh.ledger),
    hasNeighbours: false,
    network: {
      ask: async (peer, _, bytes) => {
        const question = decodeSyncQuestion(bytes);
        if (question.type === 'snapshots' || question.type === 'part') throw new Error('not asked here');
        asked.push(`${peer} ${question.type}`);
        return await (peers[peer] as Answer)(question);
      },
      fault: (peer, fault) => blamed.push(`${peer} ${fault}`),
    },
    log: quietLog,
    checkpoints,
    steady,
    probeMillis: 20,
    isAtTip: () => true,
    updateRequired: () => undefined,
  });
  sync.start();
  return sync;
}

const height = (): number => fresh.chain.head().height;
const headerQuestions = (peer: string): number => asked.filter((one) => one === `${peer} headers`).length;

/** As one that has the chain, but sends one header an answer, and cuts without certificates and without the last one, so that headers are asked for. */
function dripping(): Answer {
  const { chain } = lying(source, { certificate: () => undefined });
  return async (question) => {
    if (question.type === 'cuts') return answerSync(chain, { ...question, count: Math.max(1, question.count - 1) });
    if (question.type !== 'headers') return answerSync(chain, question);
    const answer = answerSync(source.chain, question);
    const { headers, certificate } = decodeHeadersAnswer(answer);
    return encodeHeadersAnswer({ headers: headers.slice(-1), certificate });
  };
}

test('headers of an old epoch that come one by one are no answer: another peer is asked', async () => {
  await bed.seal({ node: source }, CUTS);
  const following = follow({ dripping: dripping(), honest });
  following.heights.joined('dripping', CUTS);
  following.wake();
  await until(() => headerQuestions('dripping') > 0);
  following.heights.joined('honest', CUTS);
  following.wake();
  await until(() => height() === CUTS);
  expect(headerQuestions('dripping')).toBeLessThan(5);
  expect(blamed.filter((one) => one.startsWith('honest'))).toEqual([]);
});

test('headers back from a checkpoint that come one by one are kept, and the others come from another peer', async () => {
  await bed.seal({ node: source }, CUTS);
  const { cutId } = source.chain.cut(INTERVAL + 2) as { readonly cutId: Bytes };
  const following = follow({ dripping: dripping(), honest }, [{ height: INTERVAL + 2, cutId }]);
  following.heights.joined('dripping', CUTS);
  following.wake();
  await until(() => headerQuestions('dripping') > 0);
  following.heights.joined('honest', CUTS);
  following.wake();
  await until(() => height() === CUTS);
  expect(headerQuestions('dripping')).toBeLessThan(5);
  expect(blamed.filter((one) => one.startsWith('honest'))).toEqual([]);
});

/** Genuine cuts with their certificates, one an answer; the certificate as often as is said. */
const sparing =
  (times = 1, millis = 0): Answer =>
  async (question) => {
    const answer = answerSync(source.chain, question);
    if (question.type !== 'cuts') return answer;
    const { cuts, certificates, ...says } = decodeCutsAnswer(answer);
    const [first] = cuts;
    const certificate = certificates.get(question.from);
    if (first === undefined || certificate === undefined) return answer;
    const content = concat(encodeCutHeader(first.header), ...first.blockIds);
    await new Promise((resolve) => setTimeout(resolve, millis));
    return encodeCutsAnswer(says, [content], Array(times).fill({ index: 0, certificate }));
  };

test('a peer that brings one cut an answer and has more does not keep this node from asking one that it does not know yet', async () => {
  await bed.seal({ node: source }, CUTS);
  const following = follow({ sparing: sparing(1, 100), honest });
  following.heights.joined('sparing', CUTS);
  following.wake();
  await until(() => height() >= 1);
  following.heights.joined('honest', CUTS);
  following.wake();
  await until(() => height() === CUTS);
  expect(asked.filter((one) => one === 'sparing cuts').length).toBeLessThan(CUTS);
  expect(blamed).toEqual([]);
});

test('an answer is not made large, and so whole, with one certificate again and again', async () => {
  await bed.seal({ node: source }, 2);
  const question = { type: 'cuts', from: 1, count: 2 } as const;
  expect(decodeCutsAnswer(await sparing()(question)).cuts).toHaveLength(1);
  await expect(sparing(2)(question).then(decodeCutsAnswer)).rejects.toThrow('index of a certificate');
});

/** As one that began with a snapshot of this height, or that syncs itself and is not further yet. */
function only({ from = 0, to }: { from?: number; to: number }): Answer {
  const { chain } = lying(source, {
    head: () => ({ ...source.chain.head(), ...source.chain.cut(to), height: to }),
    bodiesFrom: () => from,
    cut: (of) => (of <= to ? source.chain.cut(of) : undefined),
    certificate: () => undefined,
  });
  return async (question) => answerSync(chain, question);
}

test('one that syncs itself and has not reached the end of an old epoch yet is not blamed', async () => {
  await bed.seal({ node: source }, CUTS);
  const following = follow({ syncing: only({ to: 20 }), honest });
  following.heights.joined('syncing', 20);
  following.wake();
  await until(() => headerQuestions('syncing') > 0);
  following.heights.joined('honest', CUTS);
  following.wake();
  await until(() => height() === CUTS);
  expect(blamed).toEqual([]);
});

test('one that began with a snapshot of the newest cut cannot show it, and is not blamed', async () => {
  await bed.seal({ node: source }, 3);
  const following = follow({ honest, begun: only({ from: 4, to: 3 }) });
  following.heights.joined('honest', 3);
  following.wake();
  await until(() => height() === 3);
  following.heights.left('honest');
  following.heights.joined('begun', 3);
  following.wake();
  await until(() => asked.filter((one) => one === 'begun cuts').length >= 4);
  expect(blamed).toEqual([]);
});

test('who answers at once with nothing does not take the place of a peer whose answer is under way', async () => {
  await bed.seal({ node: source }, CUTS);
  let quick = Promise.withResolvers<void>();
  const slow: Answer = async (question) => {
    // As over a slow line: another peer is asked too, and has answered before.
    if (question.type === 'cuts') await quick.promise;
    quick = Promise.withResolvers();
    return await honest(question);
  };
  const nothing: Answer = async () => {
    quick.resolve();
    return encodeCutsAnswer({ head: 1_000, bodiesFrom: 0 }, [], []);
  };
  const strangers = Array.from({ length: 6 }, (_, i) => `stranger${i}`);
  const following = follow({ slow, ...Object.fromEntries(strangers.map((name) => [name, nothing])) });
  following.heights.joined('slow', CUTS);
  for (const name of strangers) following.heights.joined(name, 1_000);
  following.wake();
  await until(() => height() === CUTS);
  expect(blamed.filter((one) => one.startsWith('slow'))).toEqual([]);
});

test('cuts whose certificate nobody can have yet hold up nobody, and nobody else is asked for it', async () => {
  await bed.seal({ node: source }, 20);
  const { chain } = lying(source, { certificate: () => undefined });
  const uncertified: Answer = async (question) =>
    question.type === 'headers' ? await never.promise : answerSync(chain, question);
  const following = follow({ uncertified, honest });
  following.heights.joined('uncertified', 1_000);
  following.wake();
  await until(() => headerQuestions('uncertified') > 0);
  following.heights.joined('honest', 20);
  await until(() => height() === 20);
  expect(headerQuestions('honest')).toBe(0);
});

test('a peer that is as far as this node and does not show it holds up nobody', async () => {
  await bed.seal({ node: source }, 3);
  const silent: Answer = async ({ type, ...of }) =>
    type === 'cuts' && 'from' in of && of.from > height()
      ? encodeCutsAnswer({ head: height(), bodiesFrom: 0 }, [], [])
      : await never.promise;
  const following = follow({ silent, honest });
  following.heights.joined('silent', 0);
  await until(() => asked.length >= 2);
  following.heights.joined('honest', 3);
  following.wake();
  await until(() => height() === 3);
});

const headersOf = (count: number) =>
  Array.from({ length: count }, (_, i) => {
    const header = new Uint8Array(HEADER_BYTES);
    new DataView(header.buffer).setUint32(0, i, true);
    return { header, id: blockId(header) };
  });

test('blocks that are here and wait for an earlier one have a bound, however long its peer takes', async () => {
  const count = MAX_BLOCKS + (6 * WAITING_BYTES) / ANSWER_BYTES;
  const blocks = headersOf(count);
  const body = new Uint8Array(ANSWER_BYTES / 2);
  const first = blocks[0] as (typeof blocks)[number];
  let served = 0;
  let isAsked = false;
  vi.useFakeTimers({ toFake: [...TIMERS] });
  try {
    const fetch = new BlockFetch(
      blocks.map(({ id }) => id),
      {
        peers: () => ['one', 'another'],
        ask: async (_, bytes) => {
          const question = decodeSyncQuestion(bytes);
          if (question.type !== 'blocks') throw new Error('another question');
          // Whoever is asked for the first block does not answer for a while.
          if (!isAsked && question.ids.some((id) => equalBytes(id, first.id))) {
            isAsked = true;
            return await new Promise(() => undefined);
          }
          const found = question.ids.slice(0, 2).map((id) => blocks.find((block) => equalBytes(block.id, id)));
          served += found.length * body.length;
          return encodeBlocksAnswer(question.ids.map((_, i) => found[i] && { header: found[i].header, body }));
        },
        blame: () => undefined,
        order: new AskOrder(() => Date.now()),
        isHere: () => false,
      },
    );
    const taken = fetch.take(first.id);
    for (let i = 0; i < 20 * count; i++) await Promise.resolve();
    const before = served;
    await vi.advanceTimersByTimeAsync(LATE_MILLIS);
    expect((await taken)?.id).toEqual(first.id);
    expect(before).toBeGreaterThan(0);
    // Answers that were under way come on top.
    expect(before).toBeLessThanOrEqual(WAITING_BYTES + 4 * ANSWER_BYTES);
    fetch.close();
  } finally {
    vi.useRealTimers();
  }
});

test('who sends all blocks but the one that is executed next does not fill the memory with them', async () => {
  const body = new Uint8Array(1_024 * 1_024);
  const blocks = headersOf(300);
  const first = blocks[0] as (typeof blocks)[0];
  let sent = 0;
  const order = new AskOrder();
  const liars = Array.from({ length: 8 }, (_, i) => `liar${i}`);
  for (const liar of liars) order.over(order.asked(liar), 8);
  const fetch = new BlockFetch(
    blocks.map(({ id }) => id),
    {
      peers: () => (sent > 0 ? [...liars, 'honest'] : liars),
      ask: async (peer, bytes) => {
        const question = decodeSyncQuestion(bytes);
        if (question.type !== 'blocks') throw new Error('another question');
        const asked = question.ids.filter((id) => peer === 'honest' || !equalBytes(id, first.id)).slice(0, 2);
        sent += asked.length * body.length;
        return encodeBlocksAnswer(
          question.ids.map((id) => {
            const found = asked.includes(id) ? blocks.find((block) => equalBytes(block.id, id)) : undefined;
            return found && { header: found.header, body };
          }),
        );
      },
      blame: () => undefined,
      order,
      isHere: () => false,
    },
  );
  expect((await fetch.take(first.id))?.from).toBe('honest');
  // Two answers of each.
  expect(sent).toBeLessThanOrEqual(WAITING_BYTES + 2 * liars.length * ANSWER_BYTES);
  fetch.close();
});

/** Peers of a fetch in virtual time. `drip…` send one block after 2.9 seconds, just before they would be late; others all of them soon. */
class Drips {
  readonly blocks = headersOf(100);
  readonly order = new AskOrder(() => Date.now());
  readonly isHere = new Set<Bytes>();
  /** Questions under way, by peer. */
  readonly asking: string[] = [];
  asked: string[] = [];
  blamed = 0;

  fetch(peers: readonly string[], count = this.blocks.length): BlockFetch {
    const ids = this.blocks.slice(0, count).map(({ id }) => id);
    return new BlockFetch(ids, {
      peers: () => peers,
      ask: async (peer, bytes) => {
        const question = decodeSyncQuestion(bytes);
        if (question.type !== 'blocks') throw new Error('another question');
        this.asked.push(peer);
        this.asking.push(peer);
        const isDrip = peer.startsWith('drip');
        await new Promise((resolve) => setTimeout(resolve, isDrip ? LATE_MILLIS - 100 : 50));
        this.asking.splice(this.asking.indexOf(peer), 1);
        const found = question.ids.map((id) => this.blocks.find((block) => equalBytes(block.id, id)));
        return encodeBlocksAnswer(
          found.map((block, i) => (isDrip && i > 0 ? undefined : block && { header: block.header, body: BODY })),
        );
      },
      blame: () => this.blamed++,
      order: this.order,
      isHere: (id) => this.isHere.has(id),
    });
  }

  /** Virtual milliseconds that all blocks of a fetch take. */
  async millisOf(fetch: BlockFetch, count = this.blocks.length): Promise<number> {
    const began = Date.now();
    let isOver = false;
    const taking = (async () => {
      for (const { id } of this.blocks.slice(0, count)) await fetch.take(id);
      isOver = true;
    })();
    for (let i = 0; !isOver && i < 4_000; i++) await vi.advanceTimersByTimeAsync(25);
    fetch.close();
    if (isOver) await taking;
    return Date.now() - began;
  }
}
const BODY = new Uint8Array(100);
const DRIPS = ['drip1', 'drip2', 'drip3', 'drip4'];

describe('peers that send one block just in time', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: [...TIMERS] }));
  afterEach(() => void vi.useRealTimers());

  test('cost one turn: all other blocks come from those that are quicker', async () => {
    const drips = new Drips();
    const peers = [...DRIPS, 'honest'];
    expect(await drips.millisOf(drips.fetch(peers))).toBeLessThan(6_000);
    // A later batch remembers who was quick.
    drips.asked = [];
    expect(await drips.millisOf(drips.fetch(peers, 4), 4)).toBeLessThan(500);
    expect(drips.asked).toEqual(['honest']);
    expect(drips.blamed).toBe(0);
  });

  test('cost one turn all together where one is known to be quick', async () => {
    const drips = new Drips();
    const many = Array.from({ length: 20 }, (_, i) => `drip${i}`);
    expect(await drips.millisOf(drips.fetch(['honest', ...many]))).toBeLessThan(LATE_MILLIS);
  });

  test('do not have two places each', async () => {
    const drips = new Drips();
    const fetch = drips.fetch(DRIPS);
    expect(new Set(drips.asking).size).toBe(drips.asking.length);
    fetch.close();
    await vi.advanceTimersByTimeAsync(LATE_MILLIS);
  });

  test('are asked where there is nobody else, and not blamed', async () => {
    const drips = new Drips();
    expect(await drips.millisOf(drips.fetch(['drip'], 3), 3)).toBeLessThan(4 * LATE_MILLIS);
    expect(drips.blamed).toBe(0);
  });

  test('do not keep a fetch from one that was busy once, also where a new one comes whenever one has failed', async () => {
    const [block] = headersOf(1) as [ReturnType<typeof headersOf>[number]];
    let busy = 1;
    const began = Date.now();
    const fetch = new BlockFetch([block.id], {
      peers: () => ['honest', `silent since ${Math.floor((Date.now() - began) / LATE_MILLIS)}`],
      ask: async (peer) => {
        if (peer !== 'honest') return await new Promise(() => undefined);
        if (busy-- > 0) throw new AskError('busy', 'the peer is busy');
        return encodeBlocksAnswer([{ header: block.header, body: BODY }]);
      },
      blame: () => undefined,
      order: new AskOrder(() => Date.now()),
      isHere: () => false,
    });
    const taken = fetch.take(block.id);
    await vi.advanceTimersByTimeAsync(20 * LATE_MILLIS);
    expect(await Promise.race([taken, 'nothing came'])).toMatchObject({ from: 'honest' });
    fetch.close();
  });

  test('do not keep a fetch from one that did not answer twice, also where new ones come every second', async () => {
    const [block] = headersOf(1) as [ReturnType<typeof headersOf>[number]];
    let silent = 2;
    const began = Date.now();
    const fetch = new BlockFetch([block.id], {
      peers: () => {
        const second = Math.floor((Date.now() - began) / HASTE_MILLIS);
        return ['honest', ...[1, 2, 3, 4].map((i) => `stranger ${i} of second ${second}`)];
      },
      ask: async (peer) => {
        if (peer !== 'honest') return await new Promise(() => undefined);
        if (silent-- > 0) throw new AskError('unanswered', 'it did not answer');
        return encodeBlocksAnswer([{ header: block.header, body: BODY }]);
      },
      blame: () => undefined,
      order: new AskOrder(() => Date.now()),
      isHere: () => false,
    });
    const taken = fetch.take(block.id);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await Promise.race([taken, 'nothing came'])).toMatchObject({ from: 'honest' });
    fetch.close();
  });

  test('hold up no block that comes by another way', async () => {
    const drips = new Drips();
    const fetch = drips.fetch(['drip'], 2);
    const { id } = drips.blocks[1] as { readonly id: Bytes };
    const taken = fetch.take(id);
    drips.isHere.add(id);
    fetch.look();
    expect(await Promise.race([taken, new Promise((resolve) => setImmediate(resolve, 'waits'))])).toBeUndefined();
    fetch.close();
    await vi.advanceTimersByTimeAsync(LATE_MILLIS);
  });
});

test('peers whose answers bring nothing are not asked again after each new head', async () => {
  await bed.seal({ node: source }, 2);
  const stingy = ['stingy1', 'stingy2', 'stingy3', 'stingy4'];
  const all = [...stingy, 'honest'];
  // The time of rests does not go on.
  const following = follow(
    Object.fromEntries(all.map((peer) => [peer, peer === 'honest' ? honest : stingyOnes()])),
    [],
    () => 1_000,
  );
  for (const peer of all) following.heights.joined(peer, 2);
  following.wake();
  await until(() => height() === 2);
  for (let head = 3; head <= 8; head++) {
    await bed.seal({ node: source }, 1);
    for (const peer of all) following.heights.heard(peer, head);
    following.wake();
    await until(() => height() === head);
  }
  for (const peer of stingy) expect(asked.filter((one) => one === `${peer} cuts`).length).toBeLessThan(2);
  expect(blamed.filter((one) => one.startsWith('honest'))).toEqual([]);
});

/** Genuine cuts without certificates, and then a single header. */
function stingyOnes(): Answer {
  const { chain } = lying(source, { certificate: () => undefined });
  return async (question) =>
    question.type === 'headers'
      ? encodeHeadersAnswer({
          headers: [(source.chain.cut(1) as { headerBytes: Bytes }).headerBytes],
          certificate: undefined,
        })
      : answerSync(chain, question);
}
