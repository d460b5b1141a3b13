/** What makes two shares the same one, and a journal in which some come twice. */

import { headerDigest, shareIdentity } from '../../protocol/books/share-identity.ts';
import { toHex } from '../../protocol/bytes.ts';
import { encodeHeader, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { pattern } from './pattern.ts';

const payout = Uint8Array.of(0, ...pattern('share payout', 48));

const headerOn = (anchorHeight: number, generation: number, nonce: Uint8Array): Uint8Array =>
  encodeHeader({
    networkId: 4,
    anchorHeight,
    timestampMillis: 1_767_225_600_000 + anchorHeight,
    anchorId: pattern(`share anchor/${anchorHeight}`, 48),
    parentsRoot: pattern('share parents', 48),
    transactionsRoot: pattern('share transactions', 48),
    rewardRoot: rewardRoot(
      payout,
      encodeExtranonce('', Uint8Array.of(...pattern('share owner', 13), generation, 0, 0, 0)),
    ),
    stateRoot: pattern('share state', 48),
    target: targetOfWork(1_000_000n),
    nonce,
  });

const nonces = [new Uint8Array(8), pattern('share nonce/1', 8), pattern('share nonce/2', 8)];
const [, first, second] = nonces as [Uint8Array, Uint8Array, Uint8Array];

const identityOf = (header: Uint8Array): string =>
  toHex(shareIdentity(headerDigest(header), header.subarray(NONCE_OFFSET)));

export function shareIdentityVectors(): unknown {
  const headers = [0, 1].flatMap((generation) => nonces.map((nonce) => headerOn(1_000, generation, nonce)));
  const [a, b] = [toHex(pattern('share boot/a', 8)), toHex(pattern('share boot/b', 8))];
  const record = (
    says: string,
    bootId: string,
    sequence: number,
    [anchorHeight, generation, nonce]: [number, number, Uint8Array],
    work: number,
    counts: boolean,
  ) => ({
    says,
    boot_id: bootId,
    sequence,
    anchor_height: anchorHeight,
    identity: identityOf(headerOn(anchorHeight, generation, nonce)),
    work: String(work),
    counts,
  });
  return {
    headers: headers.map((header) => ({
      header: toHex(header),
      header_digest: toHex(headerDigest(header)),
      nonce: toHex(header.subarray(NONCE_OFFSET)),
      identity: identityOf(header),
    })),
    journal: [
      record('a share', a, 0, [1_000, 0, first], 1, true),
      record('another nonce in its header', a, 1, [1_000, 0, second], 2, true),
      record('the same nonce in the header of another body', a, 2, [1_000, 1, first], 4, true),
      record('the same nonce on another anchor', a, 3, [1_001, 0, first], 8, true),
      record('the first share again, in the same journal', a, 4, [1_000, 0, first], 16, false),
      record('the first share again, in the journal of another start', b, 0, [1_000, 0, first], 32, false),
      record('the same record again: rule 11', a, 3, [1_001, 0, first], 64, false),
      record('a share of the other start', b, 1, [1_001, 1, second], 128, true),
      record('and that one again, worth more', b, 2, [1_001, 1, second], 256, false),
    ],
    total: '143',
  };
}
