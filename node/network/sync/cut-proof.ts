/**
 * Verifies cuts from a peer: they must follow each other from the own head on, and the last one must have a certificate
 * of its epoch's committee, or an identifier that such a certificate proved before. A text says what is wrong.
 */
import type { KeyObject } from 'node:crypto';
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import type { ProposedCut } from '../../../protocol/consensus/proposal.ts';
import {
  type Certificate,
  type CutHeader,
  certificateMessage,
  cutId,
  decodeCutHeader,
} from '../../../protocol/ledger/cut.ts';
import { isQuorum, type Member } from '../../chain/certificate.ts';
import { importPublicKey, verifyMessageAside } from '../../ml-dsa.ts';

export type Place = { readonly height: number; readonly cutId: Bytes };

/** Nobody that was asked has the headers that would prove the cuts. */
export class UnprovenError extends Error {}

/** Undefined if the cuts follow each other from `head` on. */
export function brokenChain(head: Place, cuts: readonly Pick<ProposedCut, 'cutId' | 'header'>[]): string | undefined {
  let before = head;
  for (const { header, cutId: id } of cuts) {
    if (header.height !== before.height + 1) return `cut ${header.height} where ${before.height + 1} was asked for`;
    if (!equalBytes(header.previousId, before.cutId)) return `cut ${header.height} follows another cut`;
    before = { height: header.height, cutId: id };
  }
  return undefined;
}

/** A cache: importing a key costs as much as a check, and a committee stays for an epoch. */
const keys = new WeakMap<Bytes, KeyObject>();

function keyOf(publicKey: Bytes): KeyObject {
  const known = keys.get(publicKey);
  if (known !== undefined) return known;
  const key = importPublicKey(publicKey);
  keys.set(publicKey, key);
  return key;
}

/** Signatures are checked off the main thread. Keys of members are valid: their registrations were checked. */
export async function isCertified(
  chainId: Bytes,
  cut: Place,
  { round, signatures }: Certificate,
  committee: readonly Member[],
): Promise<boolean> {
  if (!isQuorum({ signatures }, committee)) return false;
  const message = certificateMessage(chainId, cut, round);
  let last = -1;
  for (const { member } of signatures) {
    if (member <= last || committee[member] === undefined) return false;
    last = member;
  }
  const checks = signatures.map(({ member, signature }) =>
    verifyMessageAside(keyOf((committee[member] as Member).publicKey), message, signature),
  );
  return (await Promise.all(checks)).every((valid) => valid);
}

/**
 * Headers on the way back from a proven cut: the identifiers of the cuts from the first header's up to it, ascending. A
 * text if they do not lead to it.
 */
export function provenBack(proven: Place, headers: readonly Bytes[]): readonly Place[] | string {
  const places: Place[] = [];
  let next: Place = proven;
  for (let i = headers.length - 1; i >= 0; i--) {
    const bytes = headers[i] as Bytes;
    let header: CutHeader;
    try {
      header = decodeCutHeader(bytes);
    } catch (error) {
      return (error as Error).message;
    }
    const id = cutId(bytes);
    if (header.height !== next.height || !equalBytes(id, next.cutId)) return `header ${next.height} is another`;
    places.unshift(next);
    next = { height: header.height - 1, cutId: header.previousId };
  }
  return places;
}
