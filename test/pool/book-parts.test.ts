/** Parts of the books, and of the way to them, where database, Redis and nodes answer by hand. */
import { EventEmitter } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { Adoption } from '../../pool/accountant/adoption.ts';
import { RewardJudge } from '../../pool/accountant/reward-judge.ts';
import { OwnWorkers } from '../../pool/books/own-workers.ts';
import { HOLD_REASONS } from '../../pool/books/reward-check.ts';
import { ShareIdentities } from '../../pool/books/share-identities.ts';
import type { Sql, Transaction } from '../../pool/database/connect.ts';
import { Outbox } from '../../pool/feed/outbox.ts';
import { StreamSender } from '../../pool/feed/stream-sender.ts';
import type { MinerRecord } from '../../pool/journal/journal-record.ts';
import { redisKeys } from '../../pool/shared/redis.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { BlockDocument } from '../../protocol/api/documents.ts';
import { toHex, utf8 } from '../../protocol/bytes.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { workHalves, workRewardOutpoint } from '../../protocol/ledger/work-reward.ts';
import { INTERVAL_CUTS } from '../../protocol/network.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { testSealed } from './sealed.ts';

const network = { name: 'development' } as const;
const poolAddress = Uint8Array.of(0, ...pattern('pool of the judge', 48));
const payout = formatAddress(poolAddress, network.name);
const blockId = pattern('judged block', 48);
const id = toHex(blockId);
const ANCHOR = 1_000;
const DUE = ANCHOR + 96;
const HALF = workHalves(ANCHOR, ANCHOR, INTERVAL_CUTS);

/** Answers by what the text of the query has in it. */
const answering = (answers: Readonly<Record<string, readonly object[]>>): Sql =>
  ((strings: TemplateStringsArray) => {
    const text = strings.join('?');
    return Promise.resolve(Object.entries(answers).find(([part]) => text.includes(part))?.[1] ?? []);
  }) as unknown as Sql;

const documentOf = (changes: Partial<BlockDocument> = {}, amount = HALF): BlockDocument => {
  const { transactionId, outputIndex } = workRewardOutpoint(blockId);
  return {
    block_id: id,
    payout,
    anchor_height: ANCHOR,
    extranonce: toHex(encodeExtranonce('', new Uint8Array(17))),
    target: 'ff'.repeat(32),
    timestamp_millis: 5,
    reward: {
      state: 'paid',
      amount: String(amount),
      outpoint: { transaction_id: toHex(transactionId), output_index: outputIndex },
      paid_height: DUE,
    },
    ...changes,
  } as unknown as BlockDocument;
};

test('a node that falls silent is waited for each time anew: until then no other one decides a reward alone', async () => {
  let [now, isSilent] = [0, true];
  const told: string[] = [];
  const note = (level: string) => (_: string, fields?: object) =>
    void told.push(`${level}: ${(fields as { reason: string }).reason}`);
  const said = async () => documentOf({}, HALF + 1n);
  const headHeight = async () => DUE;
  const judge = new RewardJudge(
    { network, poolAddress, maxFeePerMass: 1_000n },
    {
      sql: answering({
        "state = 'held'": [
          {
            block_id: Buffer.from(blockId),
            anchor_height: BigInt(ANCHOR),
            carried_fees: 0n,
            carried_mass: 0,
            paid_before: BigInt(ANCHOR - 1),
            sharers: 1,
            operator_accepts: null,
          },
        ],
      }),
      chain: {
        headHeight,
        block: said,
        others: [
          {
            name: 'other',
            headHeight,
            block: async () => {
              if (isSilent) throw new Error('away');
              return said();
            },
          },
        ],
      },
      log: { ...quietLog, warn: note('warn'), error: note('error') },
      intervalCuts: () => INTERVAL_CUTS,
      steadyNow: () => now,
    },
  );
  const reason = async () => {
    const [verdict] = await judge.due({ height: DUE, sharers: 1 });
    return verdict?.kind === 'held' ? verdict.reason : verdict?.kind;
  };
  const waits = 'waits for a node that is away or behind';
  expect(await reason()).toBe(waits);
  [now, isSilent] = [60_000, false];
  expect(await reason()).toBe(HOLD_REASONS.aboveSchedule);
  [now, isSilent] = [200_000, true];
  expect(await reason()).toBe(waits);
  now += 119_000;
  expect(await reason()).toBe(waits);
  now += 6_000;
  expect(await reason()).toBe(HOLD_REASONS.aboveSchedule);
  // An operator need not act where a node is only away.
  const flaw = `error: ${HOLD_REASONS.aboveSchedule}`;
  expect(told).toEqual([`warn: ${waits}`, flaw, `warn: ${waits}`, flaw]);
});

test('of the blocks that a cut pays the pool adopts those alone that are what was asked for, pay it and have that anchor', async () => {
  const adopted = async (document: BlockDocument | undefined, known: readonly object[] = []) => {
    const adoption = new Adoption(
      { network, poolAddress },
      { sql: answering({ 'from blocks': known }), chain: { block: async () => document }, log: quietLog },
    );
    return (await adoption.adoptable([id], ANCHOR))?.map((record) => toHex(record.blockId));
  };
  expect(await adopted(documentOf())).toEqual([id]);
  expect(await adopted(documentOf(), [{ block_id: Buffer.from(blockId) }])).toEqual([]);
  for (const wrong of [
    undefined,
    documentOf({ payout: formatAddress(Uint8Array.of(0, ...pattern('somebody', 48)), network.name) }),
    documentOf({ block_id: '00'.repeat(48) }),
    documentOf({ anchor_height: ANCHOR + 1 }),
  ])
    expect(await adopted(wrong)).toEqual([]);
});

test('after a transaction that failed a worker is looked up again: the row that it made is gone', async () => {
  const workers = new OwnWorkers();
  const rig = { kind: 'share', service: 'pplns', worker: 'rig', work: 1n, atMillis: 1 } as unknown as MinerRecord;
  const idAfter = async (row: number): Promise<number> => {
    const rows = [{ id: row, account_id: 1, service: 0, name: 'rig' }];
    await workers.resolve(answering({ 'select w.id': rows }) as unknown as Transaction, [rig], () => 1);
    return workers.idOf(1, rig);
  };
  expect([await idAfter(7), await idAfter(8)]).toEqual([7, 7]);
  workers.forget();
  expect(await idAfter(8)).toBe(8);
});

test('entries that Redis refused are sent again, also where nothing comes after them', async () => {
  const outbox = await Outbox.open({ directory: temporaryDirectory(), bootId: 'ab'.repeat(8) }, { log: quietLog });
  const sent: unknown[] = [];
  const redis = Object.assign(new EventEmitter(), {
    xadd: async (...said: unknown[]) => {
      sent.push(said[said.indexOf('after') + 1]);
      if (sent.length === 1) throw new Error('OOM command not allowed');
      return `${sent.length}-0`;
    },
    hmgetBuffer: async () => [],
    xrange: async () => [1],
    hset: async () => 0,
  });
  const sender = new StreamSender(
    { keys: redisKeys('parts') },
    {
      redis: redis as never,
      outbox,
      positions: async (boots) => new Map(boots.map((boot) => [boot, -1])),
      reign: async () => 'one',
      ...testSealed(),
      log: quietLog,
    },
  );
  onTestFinished(() => sender.close());
  outbox.push([{ bootId: 'ab'.repeat(8), sequence: 0, record: utf8('a share') }]);
  await until(() => sent.length === 2);
  expect(sent).toEqual(['-1', '-1']);
});

test('shares without an identity, of releases before there was one, all count', async () => {
  expect(await new ShareIdentities().take({} as Transaction, [null, null])).toEqual([true, true]);
});
