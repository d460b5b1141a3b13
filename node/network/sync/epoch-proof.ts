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
import { isCertified, type Place, provenBack } from './cut-proof.ts';
import type { Answered } from './hurried-ask.ts';
import { decodeHeadersAnswer, MAX_HEADERS, type SyncQuestion } from './sync-messages.ts';

type Ask = (peer: PeerName, question: SyncQuestion) => Promise<Answered>;

export class EpochProof {
  readonly #ledger: CutLedger;
  readonly #ask: Ask;
  #ids = new Uint8Array(0);
  #first = 0;

  /** Each part may come from another peer: the chain of headers proves it. */
  constructor(ledger: CutLedger, ask: Ask) {
    this.#ledger = ledger;
    this.#ask = ask;
  }

  /**
   * The expected identifier of the cut of this height; `from` is the first that this node lacks. Rejects with a
   * PeerFault if the peer cannot prove it.
   */
  async idOf(peer: PeerName, height: number, from: number): Promise<Bytes> {
    if (!this.#has(height)) await this.#load(peer, from);
    const at = (height - this.#first) * ID_BYTES;
    return this.#ids.subarray(at, at + ID_BYTES);
  }

  #has(height: number): boolean {
    return height >= this.#first && height < this.#first + this.#ids.length / ID_BYTES;
  }

  async #load(first: PeerName, from: number): Promise<void> {
    const { intervalCuts, chainId } = this.#ledger;
    const end = (epochOf(from, intervalCuts) + 1) * intervalCuts - 1;
    const ids = new Uint8Array((end - from + 1) * ID_BYTES);
    let proven: Place | undefined;
    let peer = first;
    for (let to = end; to >= from; ) {
      const count = Math.min(MAX_HEADERS, to - from + 1);
      const answered = await this.#ask(peer, { type: 'headers', to, count });
      peer = answered.peer;
      const { headers, certificate } = decodeHeadersAnswer(answered.answer);
      const last = headers.at(-1);
      if (headers.length > count) throw new PeerFault(peer, 'malformed', 'more headers than were asked for');
      // One header at a time, an epoch would take hours; and one that syncs itself may not have its end yet.
      if (last === undefined || headers.length < count)
        throw new StingyAnswer(peer, `${headers.length} of ${count} headers`);
      if (proven === undefined) {
        const place = { height: to, cutId: cutId(last) };
        const committee = this.#ledger.committee(from);
        if (certificate === undefined || committee === undefined)
          throw new PeerFault(peer, 'false_height', `it has no certificate of cut ${to}`);
        if (!(await isCertified(chainId, place, certificate, committee.members)))
          throw new PeerFault(peer, 'false_proof', `the certificate of cut ${to} does not verify`);
        proven = place;
      }
      const places = provenBack(proven, headers);
      if (typeof places === 'string') throw new PeerFault(peer, 'false_proof', places);
      for (const place of places) ids.set(place.cutId, (place.height - from) * ID_BYTES);
      to -= headers.length;
      proven = previousOf(places[0] as Place, headers[0] as Bytes);
    }
    const head = this.#ledger.head();
    if (proven !== undefined && head.height === from - 1 && !equalBytes(proven.cutId, head.cutId))
      throw new PeerFault(peer, 'false_proof', 'the epoch does not lead to the own head');
    this.#ids = ids;
    this.#first = from;
  }
}

/** previous_id follows version, network, height and time. */
const previousOf = ({ height }: Place, header: Bytes): Place => ({
  height: height - 1,
  cutId: header.subarray(24, 24 + ID_BYTES),
});
