/**
 * Identifiers of the cuts of an old epoch, of which only the last certificate is kept: the chain of headers is followed back from it. One epoch at a time; 48 bytes a cut.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { cutId } from '../../../protocol/ledger/cut.ts';
import { epochOf } from '../../../protocol/staking/limits.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import { PeerFault, StingyAnswer } from '../peers/peer-fault.ts';
import type { PeerName } from '../thread/host-types.ts';
import { isCertified, type Place, provenBack, UnprovenError } from './cut-proof.ts';
import { decodeHeadersAnswer, MAX_HEADERS, type SyncQuestion } from './sync-messages.ts';

export type HeadersQuestion = Extract<SyncQuestion, { readonly type: 'headers' }>;

/**
 * Of this peer first, and of others that say that they have them. The question is made anew for each, as others may have
 * sent a part; undefined when nothing is left to ask. Undefined if no answer counted.
 */
export type AskHeaders = <T, Question extends HeadersQuestion>(
  first: PeerName,
  question: () => Question | undefined,
  read: (peer: PeerName, answer: Uint8Array, asked: Question) => Promise<T | undefined> | T | undefined,
) => Promise<T | undefined>;

/** From the end of an epoch down to a cut. `lowest`: the next that is to be read; undefined for the end itself, which a certificate proves. */
type EpochWay = {
  readonly first: number;
  readonly end: number;
  readonly ids: Uint8Array<ArrayBuffer>;
  lowest: Place | undefined;
};

export class EpochProof {
  readonly #ledger: CutLedger;
  readonly #ask: AskHeaders;
  /** Proven headers are kept if a peer fails. */
  #way: EpochWay | undefined;
  #ids = new Uint8Array(0);
  #first = 0;
  /** Answers of several peers may wait for the same headers. */
  #loading: Promise<void> | undefined;

  /** Each part may come from another peer: the chain of headers proves it. */
  constructor(ledger: CutLedger, ask: AskHeaders) {
    this.#ledger = ledger;
    this.#ask = ask;
  }

  /** The identifier of the cut of this height; undefined if its epoch was not read yet. */
  idOf(height: number): Bytes | undefined {
    if (height < this.#first || height >= this.#first + this.#ids.length / ID_BYTES) return undefined;
    const at = (height - this.#first) * ID_BYTES;
    return this.#ids.subarray(at, at + ID_BYTES);
  }

  /**
   * Reads the epoch of the first cut that this node lacks, `from`, once for all that wait for it. Rejects with a
   * PeerFault if the headers lead to another chain: it is told once, by who began.
   */
  async load(peer: PeerName, from: number): Promise<void> {
    if (this.#loading !== undefined)
      return await this.#loading.catch(() =>
        Promise.reject(new UnprovenError('the headers of the epoch were not proven')),
      );
    this.#loading = this.#load(peer, from).finally(() => {
      this.#loading = undefined;
    });
    await this.#loading;
  }

  async #load(first: PeerName, from: number): Promise<void> {
    const way = this.#wayDownTo(from);
    const question = () => {
      const to = way.lowest?.height ?? way.end;
      const count = Math.min(MAX_HEADERS, to - way.first + 1);
      return count > 0 ? ({ type: 'headers', to, count, proven: way.lowest } as const) : undefined;
    };
    let peer = first;
    while (question() !== undefined) {
      const sender = await this.#ask(peer, question, async (one, answer, { count, proven }) => {
        const headers = headersIn(answer, one, count);
        const places = provenBack(proven ?? (await this.#provenEnd(answer, one, way.end, from)), headers);
        if (typeof places === 'string') throw new PeerFault(one, 'false_proof', places);
        for (const place of places) way.ids.set(place.cutId, (place.height - way.first) * ID_BYTES);
        const lowest = previousOf(places[0] as Place, headers[0] as Bytes);
        if (way.lowest === undefined || lowest.height < way.lowest.height) way.lowest = lowest;
        // One header at a time, an epoch would take hours; and one that began with a snapshot may not have the others.
        if (headers.length < count) throw new StingyAnswer(one, `${headers.length} of ${count} headers`);
        return one;
      });
      if (sender !== undefined) peer = sender;
      else if (question() !== undefined) throw new UnprovenError(`nobody has the headers up to cut ${question()?.to}`);
    }
    if (this.#way === way) this.#way = undefined;
    const head = this.#ledger.head();
    if (way.lowest !== undefined && head.height === way.lowest.height && !equalBytes(way.lowest.cutId, head.cutId))
      throw new PeerFault(peer, 'false_proof', 'the epoch does not lead to the own head');
    this.#ids = way.ids;
    this.#first = way.first;
  }

  #wayDownTo(from: number): EpochWay {
    const { intervalCuts } = this.#ledger;
    const end = (epochOf(from, intervalCuts) + 1) * intervalCuts - 1;
    if (this.#way?.end !== end || this.#way.first > from)
      this.#way = { first: from, end, ids: new Uint8Array((end - from + 1) * ID_BYTES), lowest: undefined };
    return this.#way;
  }

  /** The end of the epoch, which has to be in the answer with its certificate. */
  async #provenEnd(answer: Uint8Array, peer: PeerName, end: number, from: number): Promise<Place> {
    const { headers, certificate } = decodeHeadersAnswer(answer);
    const place = { height: end, cutId: cutId(headers.at(-1) as Bytes) };
    const committee = this.#ledger.committee(from);
    if (certificate === undefined || committee === undefined)
      throw new PeerFault(peer, 'false_height', `it has no certificate of cut ${end}`);
    if (!(await isCertified(this.#ledger.chainId, place, certificate, committee.members)))
      throw new PeerFault(peer, 'false_proof', `the certificate of cut ${end} does not verify`);
    return place;
  }
}

function headersIn(answer: Uint8Array, peer: PeerName, count: number): readonly Bytes[] {
  const { headers } = decodeHeadersAnswer(answer);
  if (headers.length > count) throw new PeerFault(peer, 'malformed', 'more headers than were asked for');
  // One that syncs itself may not have the end of the epoch yet.
  if (headers.length === 0) throw new StingyAnswer(peer, 'no headers');
  return headers;
}

/** previous_id follows version, network, height and time. */
const previousOf = ({ height }: Place, header: Bytes): Place => ({
  height: height - 1,
  cutId: header.subarray(24, 24 + ID_BYTES),
});
