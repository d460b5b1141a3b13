/**
 * Peers that serve spoiled bodies to a node that syncs: it does not end, they lose points, and another brings the bodies. And what a node that follows does over a signed cut that breaks a rule with the right
 * bodies. Real ledgers and the real sync, without sockets between them.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { adoptInto } from '../../node/chain/adopted-cut.ts';
import type { CutLedger } from '../../node/chain/cut-ledger.ts';
import { REFUTED_CUT_FILE } from '../../node/chain/refuted-cut.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { fetchBlock } from '../../node/network/relay/block-relay.ts';
import { answerSync } from '../../node/network/sync/cut-server.ts';
import { CutSync } from '../../node/network/sync/cut-sync.ts';
import { decodeSyncQuestion, encodeBlocksAnswer } from '../../node/network/sync/sync-messages.ts';
import type { ConsensusNode } from '../../node/node.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { toHex } from '../../protocol/bytes.ts';
import { decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { lying, NetBed, treasuryOutput } from '../network/peers.ts';
import { payment } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';

const BOB = developmentKey('bob').address;
const CUTS = 4;
const LIMIT = { millis: 60_000 };

let bed: NetBed;
let source: ConsensusNode;
let fresh: ConsensusNode;
let sync: CutSync | undefined;
let stopped: string[];
/** Faults of peers, in order. */
let blamed: string[];
/** Peers that were asked for blocks, in order. */
let asked: string[];
let paid: number;

beforeEach(async () => {
  bed = new NetBed();
  [stopped, blamed, asked, paid] = [[], [], [], 0];
  source = await bed.openChain('source');
  for (let i = 0; i < CUTS; i++) {
    await mine();
    bed.now += 2_500;
    await source.seal();
  }
  fresh = await bed.openChain('fresh');
  fresh.on('fault', ({ message }) => void stopped.push(message));
});
afterEach(async () => {
  await sync?.close();
  sync = undefined;
  for (const node of [source, fresh]) await node.close();
  await bed.close();
});

/** A block that carries a payment. */
async function mine(): Promise<Bytes> {
  const wire = payment(source.chain, [treasuryOutput(source.chain, paid++)], [{ address: BOB, amount: 5n }]);
  expect(await source.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
  return await bed.mine(source);
}

/** A transaction twice: what was looked at before the root. */
function spoil(body: Bytes): Bytes {
  const decoded = decodeBody(body);
  return encodeBody({ ...decoded, transactions: [...decoded.transactions, ...decoded.transactions] });
}

type Chains = Readonly<Record<string, ConsensusNode['chain']>>;

/** Peers by name, each with the chain that it serves. */
function follow(peers: Chains, later: Chains = {}, ledger: CutLedger = fresh.ledger): CutSync {
  const following = new CutSync({
    ledger,
    adopt: adoptInto(ledger),
    hasNeighbours: false,
    network: {
      ask: async (peer, _, bytes) => {
        const question = decodeSyncQuestion(bytes);
        if (question.type === 'blocks') asked.push(peer);
        if (question.type === 'snapshots' || question.type === 'part') throw new Error('not asked here');
        return answerSync((peers[peer] ?? later[peer]) as ConsensusNode['chain'], question);
      },
      fault: (peer, fault) => blamed.push(`${peer} ${fault}`),
    },
    log: quietLog,
    checkpoints: [],
    steady: steadyMillis,
    probeMillis: 20,
    isAtTip: () => true,
    updateRequired: () => undefined,
  });
  for (const peer of Object.keys(peers)) following.heights.joined(peer, CUTS);
  following.start();
  sync = following;
  return following;
}

const height = (): number => fresh.chain.head().height;
const isSynced = () => {
  expect(stopped).toEqual([]);
  return height() === CUTS;
};

test('a peer with spoiled bodies ends no node that syncs: it loses points, and another brings them', async () => {
  const liar = lying(source, { blockBody: (id) => spoil(source.chain.blockBody(id) as Bytes) }).chain;
  const following = follow({ liar }, { honest: source.chain });
  await until(() => blamed.length > 0 || stopped.length > 0, LIMIT);
  expect(stopped).toEqual([]);
  expect(height()).toBe(0);
  following.heights.joined('honest', CUTS);
  following.wake();
  await until(isSynced, LIMIT);
  expect(toHex(fresh.chain.head().cutId)).toBe(toHex(source.chain.head().cutId));
  expect(new Set(blamed)).toEqual(new Set(['liar bad_block']));
});

test('a peer that is asked for a waiting block and sends a spoiled body for it is at fault', async () => {
  const id = await mine();
  const [header, body] = [source.chain.block(id)?.header, source.chain.blockBody(id)];
  if (header === undefined || body === undefined) throw new Error('the block is not there');
  follow({ honest: source.chain });
  await until(isSynced, LIMIT);
  const answering = (sent: Bytes) => ({ ask: async () => encodeBlocksAnswer([{ header, body: sent }]) });
  const fault = fetchBlock('liar', id, fresh, answering(spoil(body)));
  await expect(fault).rejects.toMatchObject({ peer: 'liar', fault: 'bad_block' });
  expect(await fetchBlock('honest', id, fresh, answering(body))).toMatchObject({ outcome: { status: 'accepted' } });
});

const WRONG = 'its execution gives another stateRoot: 01 here, 02 in the cut';

/** It finds fault with the second cut, so many times. */
function doubting(times: number): CutLedger {
  let left = times;
  const execute: CutLedger['execute'] = (cut) =>
    cut.header.height === 2 && left-- > 0 ? WRONG : fresh.ledger.execute(cut);
  return { ...fresh.ledger, execute };
}

test('a signed cut that breaks a rule once is executed again with blocks of another peer', async () => {
  follow({ one: source.chain, other: source.chain }, {}, doubting(1));
  await until(isSynced, LIMIT);
  expect(new Set(asked)).toEqual(new Set(['one', 'other']));
  expect(blamed).toEqual([]);
});

test('a signed cut that breaks a rule again ends the node, which says the rule and names the file', async () => {
  follow({ one: source.chain, other: source.chain }, {}, doubting(2));
  await until(() => stopped.length > 0, LIMIT);
  const path = join(bed.directory, 'fresh', REFUTED_CUT_FILE);
  expect(stopped[0]).toContain(`cut 2, which breaks a rule here: ${WRONG}`);
  expect(stopped[0]).toContain(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(height()).toBe(1);
});
