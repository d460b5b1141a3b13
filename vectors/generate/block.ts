/** Identifiers, merkle trees, reward roots, headers and bodies. */
import { burnAddressPayload } from '../../protocol/address.ts';
import { compareBytes, concat, toHex } from '../../protocol/bytes.ts';
import { id, LABELS } from '../../protocol/crypto/identifier.ts';
import { merkleBranch, merkleRoot } from '../../protocol/crypto/merkle.ts';
import { type Body, bodyId, encodeBody, parentsRoot, transactionsRoot } from '../../protocol/ledger/body.ts';
import { blockId, encodeHeader } from '../../protocol/ledger/header.ts';
import { headerForPayout, rewardRoot } from '../../protocol/ledger/reward.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { pattern } from './pattern.ts';
import { sampleTransactions } from './transaction.ts';

export function identifierVectors(): unknown {
  return Object.values(LABELS).flatMap((label) =>
    [0, 1, 200].map((length) => {
      const bytes = pattern(label, length);
      return { label, bytes: toHex(bytes), id: toHex(id(label, bytes)) };
    }),
  );
}

export function merkleVectors(): unknown {
  return [0, 1, 2, 3, 4, 5, 7, 8, 13].map((count) => {
    const leaves = Array.from({ length: count }, (_, i) => pattern(`leaf/${i}`, 1 + (i % 5)));
    return {
      leaves: leaves.map(toHex),
      root: toHex(merkleRoot(leaves)),
      branches: leaves.map((_, index) => merkleBranch(leaves, index).siblings.map(toHex)),
    };
  });
}

const payout = concat(Uint8Array.of(0), pattern('payout', 48));
const extranonces = [
  encodeExtranonce('', new Uint8Array(0)),
  encodeExtranonce('', pattern('unique', 16)),
  encodeExtranonce('my pool (eu) #1', pattern('unique', 16)),
  encodeExtranonce('abcdefghijklmnopqrst', pattern('unique', 19)),
];

export function rewardRootVectors(): unknown {
  return [payout, burnAddressPayload()].flatMap((payload) =>
    extranonces.map((extranonce) => ({
      payout: toHex(payload),
      extranonce: toHex(extranonce),
      reward_root: toHex(rewardRoot(payload, extranonce)),
    })),
  );
}

export function headerVectors(): unknown {
  const transactions = sampleTransactions().map((sample) => sample.wire);
  const parents = [0, 1, 2].map((i) => pattern(`parent/${i}`, 48)).sort(compareBytes);
  const bodies: Body[] = [
    { payout, extranonce: extranonces[0]!, parents: [], transactions: [] },
    { payout, extranonce: extranonces[2]!, parents, transactions: transactions.slice(0, 2) },
  ];
  return bodies.map((body, i) => {
    const fields = {
      networkId: 4,
      anchorHeight: 1000 * i,
      timestampMillis: 1_767_225_600_000 + i,
      anchorId: pattern(`anchor/${i}`, 48),
      parentsRoot: parentsRoot(body),
      transactionsRoot: transactionsRoot(body),
      rewardRoot: rewardRoot(body.payout, body.extranonce),
      stateRoot: pattern(`state/${i}`, 48),
      target: targetOfWork(BigInt(1000 + i)),
      nonce: pattern(`nonce/${i}`, 8),
    };
    const header = encodeHeader(fields);
    const bodyBytes = encodeBody(body);
    const other = headerForPayout(header, burnAddressPayload(), extranonces[3]!);
    return {
      network_id: fields.networkId,
      anchor_height: fields.anchorHeight,
      registration_window_end: fields.anchorHeight + 96,
      timestamp_millis: fields.timestampMillis,
      anchor_id: toHex(fields.anchorId),
      parents: body.parents.map(toHex),
      transactions: body.transactions.map(toHex),
      payout: toHex(body.payout),
      extranonce: toHex(body.extranonce),
      parents_root: toHex(fields.parentsRoot),
      transactions_root: toHex(fields.transactionsRoot),
      reward_root: toHex(fields.rewardRoot),
      state_root: toHex(fields.stateRoot),
      target_work: (1000 + i).toString(),
      nonce: toHex(fields.nonce),
      body: toHex(bodyBytes),
      body_id: toHex(bodyId(bodyBytes)),
      header: toHex(header),
      block_id: toHex(blockId(header)),
      repaid: { payout: toHex(burnAddressPayload()), extranonce: toHex(extranonces[3]!), header: toHex(other) },
    };
  });
}
