/**
 * Certificates (ledger rule 31): a cut is final once members with more than two thirds of the committee's stake have
 * signed it. A node holds the keys of some members, on a development network of all; signing and checking are two
 * functions, so that remote members can be added without changing either.
 */

import type { KeyObject } from 'node:crypto';
import type { Bytes } from '../../protocol/bytes.ts';
import { isQuorum as isQuorumOfStake } from '../../protocol/consensus/vote.ts';
import { type Certificate, certificateMessage } from '../../protocol/ledger/cut.ts';
import { rawPublicKey, signMessageAside, verifyMessage } from '../ml-dsa.ts';

export type Member = { readonly publicKey: Bytes; readonly stake: bigint };

/** A cut that waits for its certificate, and the members that can sign it. */
export type Certifiable = {
  readonly chainId: Bytes;
  readonly height: number;
  readonly cutId: Bytes;
  readonly committee: readonly Member[];
};

/** Makes the certificate of a cut. */
export type Certify = (cut: Certifiable) => Promise<Certificate>;

/** Members inside one node agree in the first round: there is nothing to wait for. */
const ROUND = 0;

/** Signs for every member whose key is here; which members those are changes with the committee. */
export function certifyWith(keys: Iterable<KeyObject>): Certify {
  const byPublicKey = new Map([...keys].map((key) => [nameOfKey(rawPublicKey(key)), key]));
  return async (cut) => {
    const message = certificateMessage(cut.chainId, cut, ROUND);
    const signing = cut.committee.flatMap(({ publicKey }, member) => {
      const key = byPublicKey.get(nameOfKey(publicKey));
      return key === undefined ? [] : [{ member, key }];
    });
    const signatures = await Promise.all(
      signing.map(async ({ member, key }) => ({ member, signature: await signMessageAside(key, message) })),
    );
    return { round: ROUND, signatures };
  };
}

const nameOfKey = (publicKey: Bytes): string => Buffer.from(publicKey).toString('latin1');

/**
 * Whether the members named in a certificate have more than two thirds of the stake; its signatures are checked
 * elsewhere.
 */
export function isQuorum({ signatures }: Pick<Certificate, 'signatures'>, committee: readonly Member[]): boolean {
  let total = 0n;
  for (const { stake } of committee) total += stake;
  let signed = 0n;
  for (const { member } of signatures) signed += committee[member]?.stake ?? 0n;
  return isQuorumOfStake(signed, total);
}

/** Whether a certificate can be made with the keys of this node. Without `isSigner` it has all keys. */
export function holdsQuorum(members: readonly Member[], isSigner: (publicKey: Bytes) => boolean = () => true): boolean {
  const held = members.flatMap(({ publicKey }, member) =>
    isSigner(publicKey) ? [{ member, signature: publicKey }] : [],
  );
  return isQuorum({ signatures: held }, members);
}

export function verifyCertificate({ round, signatures }: Certificate, cut: Certifiable): boolean {
  const message = certificateMessage(cut.chainId, cut, round);
  let last = -1;
  for (const { member, signature } of signatures) {
    // Members are in ascending order, so none counts twice.
    if (member <= last) return false;
    last = member;
    const signer = cut.committee[member];
    if (signer === undefined || !verifyMessage(signer.publicKey, message, signature)) return false;
  }
  return isQuorum({ signatures }, cut.committee);
}
