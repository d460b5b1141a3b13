/**
 * Why a cut S that a peer has a snapshot of is believed by a node that trusts a cut T. It is T; or T is later, and the headers lead back from T to S; or it is later than T, of the same epoch, and has a certificate of the committee that the header
 * of T names (which the head of the snapshot must have, snapshot-head.ts). Over the end of an epoch nothing is believed: the next committee is in a state that nobody keeps.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { type CutHeader, decodeCutHeader } from '../../protocol/cut.ts';
import type { ProvenHead } from '../snapshot/snapshot-head.ts';
import { type Place, provenBack } from './cut-proof.ts';
import { PeerFault } from './peer-fault.ts';
import { decodeHeadersAnswer, encodeSyncQuestion, MAX_HEADERS } from './sync-messages.ts';
import type { PeerName } from './thread/host-types.ts';

/** Headers that lead back from the trusted cut: eight days of them. */
const MAX_BACK = 8 * 34_560;

export type LinkDependencies = {
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  blame(error: unknown, peer: PeerName): void;
};

export const isBefore = (trusted: CutHeader, offer: Place): boolean =>
  offer.height < trusted.height && trusted.height - offer.height <= MAX_BACK;

async function headersOf(
  peer: PeerName,
  to: number,
  count: number,
  { ask }: LinkDependencies,
): Promise<readonly Bytes[]> {
  const { headers } = decodeHeadersAnswer(await ask(peer, encodeSyncQuestion({ type: 'headers', to, count })));
  if (headers.length === 0) throw new Error(`it has no header ${to}`);
  if (headers.length > count) throw new PeerFault(peer, 'malformed', 'more headers than were asked for');
  return headers;
}

/** From the first peer that has it. Undefined where none has. */
async function firstOf<T>(
  peers: readonly PeerName[],
  get: (peer: PeerName) => Promise<T>,
  { blame }: LinkDependencies,
): Promise<T | undefined> {
  for (const peer of peers)
    try {
      return await get(peer);
    } catch (error) {
      blame(error, peer);
    }
  return undefined;
}

/** The header of the trusted cut. A peer that has another one pays nothing for it: the operator may be wrong too. */
export function trustedHeader(
  trust: Place,
  peers: readonly PeerName[],
  dependencies: LinkDependencies,
): Promise<CutHeader | undefined> {
  const get = async (peer: PeerName): Promise<CutHeader> => {
    const headers = await headersOf(peer, trust.height, 1, dependencies);
    if (typeof provenBack(trust, headers) === 'string')
      throw new Error(`its cut ${trust.height} is another than the trusted one`);
    return decodeCutHeader(headers[0] as Bytes);
  };
  return firstOf(peers, get, dependencies);
}

/** The identifier of the cut of a height before the trusted one. Undefined where no peer has the headers in between. */
export async function idBefore(
  trusted: CutHeader,
  height: number,
  peers: readonly PeerName[],
  dependencies: LinkDependencies,
): Promise<Bytes | undefined> {
  let proven: Place = { height: trusted.height - 1, cutId: trusted.previousId };
  while (proven.height > height) {
    // The header of the height itself is not needed: the one after it names it.
    const count = Math.min(MAX_HEADERS, proven.height - height);
    const from = proven;
    const get = async (peer: PeerName): Promise<CutHeader> => {
      const headers = await headersOf(peer, from.height, count, dependencies);
      const places = provenBack(from, headers);
      if (typeof places === 'string') throw new PeerFault(peer, 'false_proof', places);
      return decodeCutHeader(headers[0] as Bytes);
    };
    const first = await firstOf(peers, get, dependencies);
    if (first === undefined) return undefined;
    proven = { height: first.height - 1, cutId: first.previousId };
  }
  return proven.cutId;
}

/** Whether the committee that signed the cut of this head is the one of the trusted cut. The certificate was checked with the head. */
export const isOfCommittee = (trusted: CutHeader, { cut }: Pick<ProvenHead, 'cut'>): boolean =>
  cut.header.height > trusted.height && equalBytes(cut.header.validatorSetId, trusted.validatorSetId);
