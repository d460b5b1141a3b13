/**
 * A node that began with a snapshot does not know which transactions were executed before it. Whoever mines a block can carry an old one again: what
 * becomes of the copy says nothing of the payment, which may have been final for a year.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { createSnapshot } from '../../node/snapshot/create-snapshot.ts';
import { installSnapshot } from '../../node/snapshot/install-snapshot.ts';
import { FIRST_SNAPSHOT } from '../../node/snapshot/snapshot-head.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { encodeBody, transactionsRoot } from '../../protocol/ledger/body.ts';
import { decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { Bed, searchNonce } from '../node/bed.ts';

const alice = developmentKey('alice').address;
const outputs = [{ address: alice, amount: 5n }];

test('a copy of a payment from before the snapshot, in a block after it, does not make the payment a failed one', async () => {
  const [source, begun] = [await Bed.open(), await Bed.open()];
  onTestFinished(() => source.close());
  onTestFinished(() => begun.close());
  const made = (index: number, validUntil: number) => source.payment([source.treasury(index)], outputs, { validUntil });
  const [expiring, lasting] = [made(0, FIRST_SNAPSHOT), made(1, 1_000_000)];
  for (const wire of [expiring, lasting]) await source.node.submitTransaction(wire);
  await source.mine(alice);
  await source.seal(FIRST_SNAPSHOT);
  const file = join(source.directory, 'snapshot');
  const frozen = (source.node as ConsensusNode).frozen();
  await createSnapshot(frozen, file);
  await frozen.close();
  const { genesis } = source.node.chain;
  const trust = source.node.chain.head().cutId;
  await begun.node.close();
  const storeDirectory = join(begun.directory, 'store');
  rmSync(storeDirectory, { recursive: true });
  begun.now = source.now;
  await installSnapshot({ file, trust, storeDirectory, network: 'development', genesis, nowMillis: source.now });
  await begun.openNode();

  // Carried again, with payments that nobody made: one that is over, and one of an output that there never was.
  const never = source.treasury(2);
  const unknown = { ...never, outpoint: { ...never.outpoint, outputIndex: 1 } };
  const young = { validFrom: FIRST_SNAPSHOT + 1 };
  const neverMade = source.payment([unknown], outputs, { ...young, validUntil: 1_000_000 });
  const transactions = [expiring, lasting, neverMade];
  const { header, payout, extranonce } = begun.node.template({ payout: alice, maxTransactions: 0 });
  const changed = encodeHeader({ ...decodeHeader(header), transactionsRoot: transactionsRoot({ transactions }) });
  const block = searchNonce(changed, decodeHeader(header).target);
  const body = encodeBody({ payout, extranonce, parents: [], transactions });
  const statusOf = ({ node }: Bed, wire: Bytes) => node.chain.transactionStatus(transactionIdOfWire(wire));
  const cuts = [];
  for (const bed of [source, begun]) {
    expect(await bed.node.submitBlock(block, body)).toMatchObject({ status: 'accepted' });
    cuts.push(await bed.seal());
    expect(statusOf(bed, neverMade)).toMatchObject({ lifecycle: 'failed', failure: 'no_effect', final: false });
  }
  for (const wire of [expiring, lasting]) {
    expect(statusOf(source, wire)).toMatchObject({ lifecycle: 'finalized', final: true });
    expect(statusOf(begun, wire)).toBeUndefined();
  }
  const [there, here] = cuts.map(({ cutId, transactions }) => [cutId, transactions.map(({ outcome }) => outcome)]);
  expect(here).toEqual(there);
});
