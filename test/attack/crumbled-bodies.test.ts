/**
 * A body is judged by its roots before anything inside it is looked at, and hashing takes its time by entries, not by bytes. So whatever bytes come as a body,
 * with the header's roots or without: they are hashed no more often than an ordinary body of a mebibyte.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { readCandidate } from '../../node/mining/candidate.ts';
import { useSha384 } from '../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import {
  type Body,
  bodyRewardRoot,
  encodeBody,
  MAX_BODY_BYTES,
  MAX_BODY_TRANSACTIONS,
  MIN_TRANSACTION_BYTES,
  parentsRoot,
  transactionsRoot,
} from '../../protocol/ledger/body.ts';
import { encodeHeader, type Header } from '../../protocol/ledger/header.ts';
import { encodeTransaction } from '../../protocol/transactions/transaction.ts';
import { nativeSha384, nativeSha384OfTwo, useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { count, seed } from '../level.ts';

/** Leaves, the nodes above them, the roots of parents and reward, the two identifiers of the block. */
const MOST_HASHES = 2 * MAX_BODY_TRANSACTIONS + 40;

let hashes = 0;
const counting =
  <A extends unknown[], R>(hash: (...bytes: A) => R) =>
  (...bytes: A): R => {
    hashes++;
    return hash(...bytes);
  };
beforeAll(() => useSha384(counting(nativeSha384), counting(nativeSha384OfTwo)));
beforeEach(() => {
  hashes = 0;
});
afterAll(useNativeSha384);

const EMPTY: Body = {
  payout: developmentKey('alice').address,
  extranonce: Uint8Array.of(0),
  parents: [],
  transactions: [],
};
const ROOM = MAX_BODY_BYTES - encodeBody(EMPTY).length;

function headerOf(body: Body, isOwn: boolean): Header {
  return {
    networkId: 4,
    anchorHeight: 0,
    timestampMillis: 1,
    anchorId: new Uint8Array(48),
    parentsRoot: parentsRoot(body),
    transactionsRoot: isOwn ? transactionsRoot(body) : new Uint8Array(48),
    rewardRoot: bodyRewardRoot(body),
    stateRoot: new Uint8Array(48),
    target: 1n,
    nonce: new Uint8Array(8),
  };
}

/** Code of the refusal, with how many hashes it took. */
function judge(transactions: readonly Uint8Array[], isOwn: boolean): { code: string; took: number } {
  const body = { ...EMPTY, transactions };
  const header = headerOf(body, isOwn);
  const [headerBytes, bytes] = [encodeHeader(header), encodeBody(body)];
  hashes = 0;
  const judged = readCandidate(headerBytes, header, bytes, () => {
    throw new ProtocolError('truncated', 'nothing of it can be read');
  });
  return { code: 'code' in judged ? judged.code : 'read', took: hashes };
}

test.each([0, 1, 4, 100, MIN_TRANSACTION_BYTES - 1, MIN_TRANSACTION_BYTES])(
  'a mebibyte of transactions of %i bytes',
  (length) => {
    const pieces = Array.from({ length: Math.floor(ROOM / (4 + length)) }, () => new Uint8Array(length));
    // Of crumbs the test itself would take seconds to hash the roots.
    for (const isOwn of length < 100 ? [false] : [false, true]) {
      const { code, took } = judge(pieces, isOwn);
      expect(took).toBeLessThan(MOST_HASHES);
      if (length < MIN_TRANSACTION_BYTES) expect(code).toBe('body_malformed');
      else expect(code).toBe(isOwn ? 'block_transaction_invalid' : 'transactions_root_mismatch');
    }
  },
);

test('bodies of pieces of any lengths', () => {
  const lengths = fc.array(fc.oneof(fc.nat(8), fc.nat(65_000), fc.constant(MIN_TRANSACTION_BYTES)), {
    minLength: 1,
    maxLength: 16,
  });
  fc.assert(
    fc.property(lengths, fc.boolean(), (cycle, isOwn) => {
      const pieces: Uint8Array[] = [];
      for (let left = ROOM, i = 0; ; i++) {
        const length = cycle[i % cycle.length] as number;
        left -= 4 + length;
        if (left < 0 || pieces.length > 5_000) break;
        pieces.push(new Uint8Array(length));
      }
      expect(judge(pieces, isOwn).took).toBeLessThan(MOST_HASHES);
    }),
    { numRuns: count({ quick: 20, full: 60, deep: 2_000 }), seed },
  );
});

test('the least that a transaction can be is not refused', () => {
  const wire = encodeTransaction({
    body: {
      chainId: new Uint8Array(48),
      validFromHeight: 0,
      validUntilHeight: 0,
      inputs: [{ transactionId: new Uint8Array(48), outputIndex: 0 }],
      outputs: [],
      payload: new Uint8Array(0),
    },
    witnesses: [{ profile: 'referenced', signature: new Uint8Array(3_309) }],
  });
  expect(wire.length).toBe(MIN_TRANSACTION_BYTES);
  expect(judge(Array(MAX_BODY_TRANSACTIONS).fill(wire), true).code).toBe('block_transaction_invalid');
});
