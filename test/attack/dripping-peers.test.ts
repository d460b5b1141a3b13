/**
 * Peers that answer, in time and truly, but so little at once or so late that a node which waits for them does not move:
 * a node that syncs goes on with others. Real ledgers and the real sync, without sockets between them.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { adoptInto } from '../../node/adopted-cut.ts';
import type { Checkpoint } from '../../node/checkpoints.ts';
import { BlockFetch, HASTE_MILLIS, WAITING_BYTES } from '../../node/network/block-fetch.ts';
import { answerSync } from '../../node/network/cut-server.ts';
import { CutSync } from '../../node/network/cut-sync.ts';
import {
  ANSWER_BYTES,
  decodeHeadersAnswer,
  decodeSyncQuestion,
  encodeBlocksAnswer,
  encodeCutsAnswer,
  encodeHeadersAnswer,
  MAX_BLOCKS,
  type SyncQuestion,
} from '../../node/network/sync-messages.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { blockId, HEADER_BYTES } from '../../protocol/header.ts';
import { steadyMillis } from '../../runtime/clock.ts';
import { lying, NetBed } from '../network/peers.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';

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

function follow(peers: Readonly<Record<string, Answer>>, checkpoints: readonly Checkpoint[] = []): CutSync {
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
    steady: steadyMillis,
    probeMillis: 20,
    updateRequired: () => undefined,
  });
  sync.start();
  return sync;
}

const height = (): number => fresh.chain.head().height;
const headerQuestions = (peer: string): number => asked.filter((one) => one === `${peer} headers`).length;

/** As one that has the chain, but sends one header an answer, and cuts without certificates, so that headers are asked for. */
function dripping(): Answer {
  const { chain } = lying(source, { certificate: () => undefined });
  return async (question) => {
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

test('blocks that are here and wait for an earlier one have a bound, however long its peer takes', async () => {
  const count = MAX_BLOCKS + (6 * WAITING_BYTES) / ANSWER_BYTES;
  const blocks = Array.from({ length: count }, (_, i) => {
    const header = new Uint8Array(HEADER_BYTES);
    new DataView(header.buffer).setUint32(0, i, true);
    return { header, id: blockId(header) };
  });
  const body = new Uint8Array(ANSWER_BYTES / 2);
  const first = blocks[0] as (typeof blocks)[number];
  let served = 0;
  let isAsked = false;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
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
      },
    );
    const taken = fetch.take(first.id);
    for (let i = 0; i < 20 * count; i++) await Promise.resolve();
    const before = served;
    await vi.advanceTimersByTimeAsync(HASTE_MILLIS);
    expect((await taken).id).toEqual(first.id);
    expect(before).toBeGreaterThan(0);
    // Answers that were under way come on top.
    expect(before).toBeLessThanOrEqual(WAITING_BYTES + 4 * ANSWER_BYTES);
    fetch.close();
  } finally {
    vi.useRealTimers();
  }
});
