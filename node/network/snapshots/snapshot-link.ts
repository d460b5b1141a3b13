/**
 * Proves the cut S of a peer's snapshot from a trusted cut T. S is T; or T is later, and the headers lead back from T
 * to S; or it is later than T, of the same epoch, and has a certificate of the committee that the header of T names
 * (which the head of the snapshot must have, snapshot-head.ts). Beyond the end of an epoch nothing can be proven: the
 * next committee is only in a past state, which is not kept.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { type CutHeader, decodeCutHeader } from '../../../protocol/ledger/cut.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { isSnapshotHeight, type ProvenHead } from '../../snapshot/snapshot-head.ts';
import { PeerFault } from '../peers/peer-fault.ts';
import { type Place, provenBack } from '../sync/cut-proof.ts';
import { HASTE_MILLIS } from '../sync/search.ts';
import { decodeHeadersAnswer, encodeSyncQuestion, MAX_HEADERS } from '../sync/sync-messages.ts';
import type { PeerName } from '../thread/host-types.ts';

/** Headers that lead back from the trusted cut: eight days of them. */
const MAX_BACK = 8 * 34_560;
const MAX_LATE = 1_024;
/** Peers that are asked beside the others at one time. */
const MAX_AT_ONCE = 4;

export type LinkDependencies = {
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  blame(error: unknown, peer: PeerName): void;
};

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

/** From the first peer that has it: the next one is asked when one fails, and more and more as long as none answers. Undefined if none has. */
function firstOf<T>(
  peers: readonly PeerName[],
  get: (peer: PeerName) => Promise<T>,
  { blame }: LinkDependencies,
): Promise<T | undefined> {
  const waiting = [...peers];
  let [asked, width] = [0, 1];
  return new Promise((resolve) => {
    const end = (found?: T) => {
      clearInterval(hurry);
      waiting.length = 0;
      resolve(found);
    };
    const next = () => {
      const peer = waiting.shift();
      if (peer === undefined) {
        if (asked === 0) end();
        return;
      }
      asked++;
      get(peer).then(end, (error: unknown) => {
        blame(error, peer);
        asked--;
        next();
      });
    };
    const hurry = setInterval(() => {
      for (let i = 0; i < width; i++) next();
      width = Math.min(MAX_AT_ONCE, 2 * width);
    }, HASTE_MILLIS);
    next();
  });
}

/**
 * The header of the trusted cut, at the height that is known or that each peer claims for it. A peer with another one is
 * not penalised: the operator may be wrong.
 */
export function trustedHeader(
  cutId: Bytes,
  heights: ReadonlyMap<PeerName, number>,
  dependencies: LinkDependencies,
): Promise<CutHeader | undefined> {
  const get = async (peer: PeerName): Promise<CutHeader> => {
    const height = heights.get(peer) as number;
    const headers = await headersOf(peer, height, 1, dependencies);
    if (typeof provenBack({ height, cutId }, headers) === 'string')
      throw new Error(`its cut ${height} is another than the trusted one`);
    return decodeCutHeader(headers[0] as Bytes);
  };
  return firstOf([...heights.keys()], get, dependencies);
}

/** A peer that took longer is asked after the others. */
const LATE_MILLIS = 2_000;

/**
 * Follows headers back from the trusted cut. Proven headers are kept: the way is walked once for all offers, and
 * resumed after busy peers. Those whose last answer was whole and soon take turns, and come before all others: strangers
 * may be silent under ever new names. One with no answer, a short one, or a slow one is asked after those, and before all that never delivered any.
 */
export class WayBack {
  readonly #with: LinkDependencies & { readonly steady: SteadyClock };
  readonly #trusted: CutHeader;
  /** The lowest cut whose identifier is proven. */
  #lowest!: Place;
  /** Of the heights that snapshots are made of. */
  readonly #proven = new Map<number, Bytes>();
  readonly #lateAt = new BoundedMap<PeerName, number>(MAX_LATE);
  /** Whether the last answer of those was whole and soon of whom one was. */
  readonly #delivering = new BoundedMap<PeerName, boolean>(MAX_LATE);
  #turn = 0;

  constructor(trusted: CutHeader, dependencies: LinkDependencies & { readonly steady: SteadyClock }) {
    this.#trusted = trusted;
    this.#with = dependencies;
    this.#reach({ height: trusted.height - 1, cutId: trusted.previousId });
  }

  #reach(place: Place): void {
    this.#lowest = place;
    if (isSnapshotHeight(place.height)) this.#proven.set(place.height, place.cutId);
  }

  leadsTo({ height }: Place): boolean {
    return height < this.#trusted.height && this.#trusted.height - height <= MAX_BACK && isSnapshotHeight(height);
  }

  /** The identifier of the cut at a height. Undefined if no peer has the headers in between now. */
  async idOf(height: number, peers: readonly PeerName[]): Promise<Bytes | undefined> {
    while (this.#lowest.height > height) {
      const headers = await this.#headers(this.#lowest, Math.min(MAX_HEADERS, this.#lowest.height - height), peers);
      if (headers === undefined) return undefined;
      // The header of a height names the cut before it.
      for (const { height: of, previousId } of headers.map(decodeCutHeader).reverse())
        this.#reach({ height: of - 1, cutId: previousId });
    }
    return this.#proven.get(height);
  }

  /** A number of headers up to a proven cut, from the first peer that has them all. */
  async #headers(to: Place, count: number, peers: readonly PeerName[]): Promise<readonly Bytes[] | undefined> {
    const { steady } = this.#with;
    const get = async (peer: PeerName): Promise<readonly Bytes[]> => {
      const askedAt = steady();
      this.#lateAt.set(peer, askedAt);
      if (this.#delivering.has(peer)) this.#delivering.set(peer, false);
      const headers = await headersOf(peer, to.height, count, this.#with);
      const wrong = provenBack(to, headers);
      if (typeof wrong === 'string') throw new PeerFault(peer, 'false_proof', wrong);
      if (headers.length < count) throw new Error(`${headers.length} of ${count} headers`);
      if (steady() - askedAt < LATE_MILLIS) {
        this.#lateAt.delete(peer);
        this.#delivering.set(peer, true);
      }
      return headers;
    };
    return await firstOf(this.#inTurn(peers), get, this.#with);
  }

  /** `peers`: those that are nearest first. */
  #inTurn(peers: readonly PeerName[]): readonly PeerName[] {
    const delivering = peers.filter((peer) => this.#delivering.get(peer) === true);
    const first = this.#turn++ % Math.max(1, delivering.length);
    const late = (peer: PeerName) => this.#lateAt.get(peer) ?? 0;
    const inTurn = (isKnown: boolean) =>
      peers
        .filter((peer) => this.#delivering.get(peer) !== true && this.#delivering.has(peer) === isKnown)
        .sort((a, b) => late(a) - late(b));
    return [...delivering.slice(first), ...delivering.slice(0, first), ...inTurn(true), ...inTurn(false)];
  }
}

/** Whether the committee that signed the cut of this head is the one of the trusted cut. The certificate was checked with the head. */
export const isOfCommittee = (trusted: CutHeader, { cut }: Pick<ProvenHead, 'cut'>): boolean =>
  cut.header.height > trusted.height && equalBytes(cut.header.validatorSetId, trusted.validatorSetId);
