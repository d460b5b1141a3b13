/**
 * Certificates (ledger rule 31): a cut is final once members with more than two thirds of the committee's stake have signed it. A node holds the
 * keys of some members, on a development network of all; who signs and who checks are two functions, so that members elsewhere can
 * be added without touching either.
 */
import type { KeyObject } from 'node:crypto';
import type { Bytes } from '../protocol/bytes.ts';
import { type Certificate, certificateMessage } from '../protocol/cut.ts';
import type { Position } from './full-node.ts';
import { signMessageAside, verifyMessage } from './ml-dsa.ts';

/** Makes the certificate of a cut. */
export type Certify = (chainId: Bytes, cutId: Bytes) => Promise<Certificate>;

export const certifyWith =
  (keys: ReadonlyMap<number, KeyObject>): Certify =>
  async (chainId, cutId) => {
    const message = certificateMessage(chainId, cutId);
    const members = [...keys].sort(([a], [b]) => a - b);
    return await Promise.all(
      members.map(async ([member, key]) => ({ member, signature: await signMessageAside(key, message) })),
    );
  };

export function verifyCertificate(
  certificate: Certificate,
  committee: readonly Pick<Position, 'principal' | 'publicKey'>[],
  chainId: Bytes,
  cutId: Bytes,
): boolean {
  const message = certificateMessage(chainId, cutId);
  let total = 0n;
  for (const { principal } of committee) total += principal;
  let signed = 0n;
  for (const { member, signature } of certificate) {
    const position = committee[member];
    if (position === undefined || !verifyMessage(position.publicKey, message, signature)) return false;
    signed += position.principal;
  }
  return signed * 3n > total * 2n;
}
