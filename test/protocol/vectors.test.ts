/** The vector files as data: what they say is decoded, encoded and recomputed, partly with node:crypto alone. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { formatAddress, keyAddressPayload, parseAddress } from '../../protocol/address.ts';
import { headerDigest } from '../../protocol/books/share-identity.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { merkleBranch, merkleRoot, verifyMerkleBranch } from '../../protocol/crypto/merkle.ts';
import { attempt } from '../../protocol/errors.ts';
import {
  bodyId,
  bodyRewardRoot,
  decodeBody,
  encodeBody,
  parentsRoot,
  transactionsRoot,
} from '../../protocol/ledger/body.ts';
import { emissionOfInterval, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import { blockId, decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { headerForPayout, headerPays, rewardRoot } from '../../protocol/ledger/reward.ts';
import { targetFromBytes, targetOfWork, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { minimumFee, transactionMass } from '../../protocol/transactions/fee.ts';
import {
  decodeTransaction,
  decodeTransactionBody,
  encodeTransaction,
  encodeTransactionBody,
  spendMessage,
  transactionId,
} from '../../protocol/transactions/transaction.ts';
import { vectorFiles } from '../../vectors/generate/files.ts';

const load = <T>(name: string): T =>
  JSON.parse(readFileSync(new URL(`../../vectors/${name}`, import.meta.url), 'utf8')) as T;

test.each(Object.keys(vectorFiles))('%s is what the generator makes', (name) => {
  const made: unknown = JSON.parse(JSON.stringify(vectorFiles[name]?.()));
  expect(load(name)).toEqual(made);
});

const labelled = (label: string, hex: string) =>
  createHash('sha384')
    .update(Buffer.concat([Buffer.from(label), Buffer.alloc(1), Buffer.from(hex, 'hex')]))
    .digest('hex');

test('identifiers agree with node:crypto', () => {
  for (const { label, bytes, id } of load<{ label: string; bytes: string; id: string }[]>('identifiers.json'))
    expect(labelled(label, bytes)).toBe(id);
});

type AddressVectors = {
  valid: { network: NetworkName; kind: string; payload: string; address: string }[];
  keys: { public_key: string; payload: string; address: string }[];
  invalid: { why: string; address: string; expected_network?: NetworkName; error: string }[];
};

test('addresses are read, written and refused as listed', () => {
  const { valid, keys, invalid } = load<AddressVectors>('address.json');
  for (const { network, kind, payload, address } of valid) {
    expect(parseAddress(address, network)).toEqual({ network, kind, payload: fromHex(payload) });
    expect(formatAddress(fromHex(payload), network)).toBe(address);
  }
  for (const { public_key, payload, address } of keys) {
    expect(`00${labelled('SVC_ADDRESS_V1', public_key)}`).toBe(payload);
    expect(formatAddress(keyAddressPayload(fromHex(public_key)), 'development')).toBe(address);
  }
  for (const { why, address, expected_network, error } of invalid) {
    const result = attempt(() => parseAddress(address, expected_network));
    expect(result.ok ? 'accepted' : result.error.code, why).toBe(error);
  }
});

test('merkle roots and branches', () => {
  for (const vector of load<{ leaves: string[]; root: string; branches: string[][] }[]>('merkle.json')) {
    const leaves = vector.leaves.map((leaf) => fromHex(leaf));
    expect(toHex(merkleRoot(leaves))).toBe(vector.root);
    leaves.forEach((leaf, index) => {
      const siblings = (vector.branches[index] as string[]).map((sibling) => fromHex(sibling));
      expect(merkleBranch(leaves, index).siblings).toEqual(siblings);
      const branch = { index, count: leaves.length, siblings };
      expect(verifyMerkleBranch(fromHex(vector.root), leaf, branch)).toBe(true);
      expect(verifyMerkleBranch(fromHex(vector.root), Uint8Array.of(...leaf, 0), branch)).toBe(false);
      expect(verifyMerkleBranch(fromHex(vector.root), leaf, { ...branch, siblings: [...siblings, leaf] })).toBe(false);
    });
  }
});

test('reward roots', () => {
  type Vector = { payout: string; extranonce: string; reward_root: string };
  for (const { payout, extranonce, reward_root } of load<Vector[]>('reward-root.json')) {
    expect(toHex(rewardRoot(fromHex(payout), fromHex(extranonce)))).toBe(reward_root);
    const length = (hex: string) => (hex.length / 2).toString(16).padStart(2, '0');
    expect(labelled('SVC_REWARD_V1', length(payout) + payout + length(extranonce) + extranonce)).toBe(reward_root);
  }
});

test('headers of shares are named without their nonce, and a share by both', () => {
  type Vector = Record<'header' | 'header_digest' | 'nonce' | 'identity', string>;
  const { headers } = load<{ headers: Vector[] }>('share-identity.json');
  for (const { header, header_digest, nonce, identity } of headers) {
    expect(toHex(headerDigest(fromHex(header)))).toBe(header_digest);
    expect(labelled('SVC_SHARE_HEADER_V1', header.slice(0, 608)).slice(0, 32)).toBe(header_digest);
    expect([header.slice(608), header_digest + nonce]).toEqual([nonce, identity]);
  }
  expect(new Set(headers.map((vector) => vector.header_digest)).size).toBe(2);
  expect(new Set(headers.map((vector) => vector.identity)).size).toBe(headers.length);
});

type HeaderVector = Record<
  'header' | 'body' | 'block_id' | 'body_id' | 'parents_root' | 'transactions_root' | 'reward_root' | 'nonce',
  string
> & { anchor_height: number; target_work: string; repaid: { payout: string; extranonce: string; header: string } };

test('headers and bodies', () => {
  for (const vector of load<HeaderVector[]>('header.json')) {
    const bytes = fromHex(vector.header);
    const header = decodeHeader(bytes);
    expect(toHex(encodeHeader(header))).toBe(vector.header);
    expect(header.anchorHeight).toBe(vector.anchor_height);
    expect(header.target).toBe(targetOfWork(BigInt(vector.target_work)));
    expect(toHex(header.nonce)).toBe(vector.nonce);
    expect(toHex(blockId(bytes))).toBe(vector.block_id);
    const body = decodeBody(fromHex(vector.body));
    expect(toHex(encodeBody(body))).toBe(vector.body);
    expect(toHex(bodyId(fromHex(vector.body)))).toBe(vector.body_id);
    expect(toHex(parentsRoot(body))).toBe(vector.parents_root);
    expect(toHex(transactionsRoot(body))).toBe(vector.transactions_root);
    expect(toHex(bodyRewardRoot(body))).toBe(vector.reward_root);
    const { payout, extranonce } = vector.repaid;
    expect(toHex(headerForPayout(bytes, fromHex(payout), fromHex(extranonce)))).toBe(vector.repaid.header);
    expect(headerPays(fromHex(vector.repaid.header), fromHex(payout), fromHex(extranonce))).toBe(true);
    expect(headerPays(bytes, fromHex(payout), fromHex(extranonce))).toBe(false);
  }
});

type TransactionVector = {
  chain_id: string;
  body: string;
  transaction_id: string;
  spent: { address: string; amount: string };
  spend_messages: string[];
  wire: string;
  mass: number;
  minimum_fee: string;
};

test('transactions', () => {
  for (const vector of load<TransactionVector[]>('transaction.json')) {
    const wire = fromHex(vector.wire);
    const transaction = decodeTransaction(wire, fromHex(vector.chain_id));
    expect(toHex(encodeTransaction(transaction))).toBe(vector.wire);
    expect(toHex(encodeTransactionBody(decodeTransactionBody(fromHex(vector.body))))).toBe(vector.body);
    expect(toHex(transactionId(transaction.body))).toBe(vector.transaction_id);
    expect(labelled('SVC_TX_V1', vector.body)).toBe(vector.transaction_id);
    const spent = { address: fromHex(vector.spent.address), amount: BigInt(vector.spent.amount) };
    vector.spend_messages.forEach((message, index) => {
      expect(toHex(spendMessage(fromHex(vector.body), index, spent))).toBe(message);
    });
    expect(transactionMass(wire.length, transaction.body.outputs.length)).toBe(vector.mass);
    expect(minimumFee(vector.mass).toString()).toBe(vector.minimum_fee);
    const other = attempt(() => decodeTransaction(wire, new Uint8Array(48)));
    expect(other.ok ? 'accepted' : other.error.code).toBe('wrong_chain');
  }
});

test('emission, targets and work', () => {
  type Emission = { interval: number; amount: string; subsidies: { cut: number; subsidy: string }[] };
  for (const { interval, amount, subsidies } of load<Emission[]>('emission.json')) {
    expect(emissionOfInterval(interval).amount.toString()).toBe(amount);
    for (const { cut, subsidy } of subsidies) expect(subsidyOfCut(BigInt(amount), cut).toString()).toBe(subsidy);
  }
  type Pair = { target: string; work: string };
  const { work_of_target, target_of_work } = load<{ work_of_target: Pair[]; target_of_work: Pair[] }>('target.json');
  for (const { target, work } of work_of_target)
    expect(workOfTarget(targetFromBytes(fromHex(target))).toString()).toBe(work);
  for (const { target, work } of target_of_work) expect(toHex(targetToBytes(targetOfWork(BigInt(work))))).toBe(target);
});

/** Books rules 1 and 12 a second time, with node:crypto and buffers alone. */
test('roots and chains of slice records agree with node:crypto', () => {
  type Leaf = { address: string; work: string };
  type Row = Record<string, string> & { slice: number; slice_cuts: number; window_thousandths: number };
  const vectors = load<{ slices: { leaves: Leaf[] }[]; records: (Row & { fee_ppm: number; accounts: number })[] }>(
    'books.json',
  );
  const little = (value: bigint, bytes: number) =>
    Buffer.from(value.toString(16).padStart(bytes * 2, '0'), 'hex')
      .reverse()
      .toString('hex');
  const u32 = (value: number) => little(BigInt(value), 4);
  const u128 = (value: bigint) => little(value, 16);
  const text = (value: string) => little(BigInt(value.length), 1) + Buffer.from(value).toString('hex');
  let previous = '00'.repeat(48);
  for (const [i, record] of vectors.records.entries()) {
    let row = (vectors.slices[i]?.leaves ?? []).map(({ address, work }) => {
      const key = toHex(parseAddress(address, 'development').payload);
      return { sum: BigInt(work), hash: labelled('SVC_SUM_LEAF_V1', `31${key}${u128(BigInt(work))}`) };
    });
    expect(record.accounts).toBe(row.length);
    if (row.length === 0) row = [{ sum: 0n, hash: labelled('SVC_SUM_EMPTY_V1', '') }];
    while (row.length > 1)
      row = row.flatMap((left, at) => {
        const right = row[at + 1];
        if (at % 2 === 1) return [];
        if (right === undefined) return [left];
        const bytes = `${left.hash}${u128(left.sum)}${right.hash}${u128(right.sum)}`;
        return [{ sum: left.sum + right.sum, hash: labelled('SVC_SUM_NODE_V1', bytes) }];
      });
    const top = row[0] as { sum: bigint; hash: string };
    expect(record.root).toBe(labelled('SVC_BOOKS_ROOT_V2', `${u32(record.accounts)}${u128(top.sum)}${top.hash}`));
    expect(record.total_work).toBe(String(top.sum));
    const w = BigInt(record.window_work as string)
      .toString(16)
      .padStart(64, '0');
    const terms = `${u32(record.slice_cuts)}${u32(record.window_thousandths)}${u32(record.fee_ppm)}${record.target}${w}`;
    const body = `${previous}${u32(4)}${text('pplns')}${little(BigInt(record.slice), 8)}${terms}${u32(record.accounts)}`;
    previous = labelled('SVC_BOOKS_SLICE_V2', `${body}${u128(top.sum)}${record.root}`);
    expect(record.chain).toBe(previous);
  }
});
