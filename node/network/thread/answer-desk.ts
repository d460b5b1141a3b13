/**
 * Requests of peers: counted before they are read, answered by the node's thread, and kept until the answer is sent.
 * Answers waiting for slow readers are bounded per peer or address, and in total; a peer without waiting answers is
 * served even if others use up the total: the answer is given up that waits longest with most bytes. A node that cannot
 * answer now sends an empty frame.
 */
import type { Stream } from '@libp2p/interface';
import { Buckets } from '../../../runtime/clients/buckets.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Fault } from '../peers/peer-score.ts';
import { AnswersUnderWay } from './answers-under-way.ts';
import { answerStream } from './asking.ts';
import { BUSY, type PeerName, PROTOCOLS, type Protocol, QUESTIONS } from './host-types.ts';

const MEBIBYTE = 1_024 * 1_024;
/** Answers that wait to be read. `most`: with those for peers without waiting answers. */
export const HELD_BYTES = { one: 8 * MEBIBYTE, all: 64 * MEBIBYTE, most: 128 * MEBIBYTE };

export type AnswerDeskDependencies = {
  serve(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array | undefined>;
  fault(peer: PeerName, fault: Fault, reason: string): void;
  readonly steady: SteadyClock;
};

export class AnswerDesk {
  readonly #with: AnswerDeskDependencies;
  readonly #rates = new Buckets(QUESTIONS);
  readonly #held = new Map<string, number>();
  readonly #under: AnswersUnderWay;
  #all = 0;

  constructor(dependencies: AnswerDeskDependencies) {
    this.#with = dependencies;
    this.#under = new AnswersUnderWay(HELD_BYTES.most, dependencies.steady);
  }

  left(peer: PeerName): void {
    this.#rates.delete(peer);
  }

  #hold(holder: string, bytes: number): void {
    const held = (this.#held.get(holder) ?? 0) + bytes;
    this.#all += bytes;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
  }

  #hasRoom(holder: string): boolean {
    const held = this.#held.get(holder) ?? 0;
    return held === 0 || (held < HELD_BYTES.one && this.#all < HELD_BYTES.all);
  }

  #mayAsk(peer: PeerName): boolean {
    if (this.#rates.take(peer, this.#with.steady())) return true;
    this.#with.fault(peer, 'flood', 'too many questions');
    return false;
  }

  /** `holder`: the peer, or the address that it shares with others. */
  async answer(peer: PeerName, holder: string, protocol: Protocol, stream: Stream): Promise<void> {
    const { questionBytes, millis } = PROTOCOLS[protocol];
    let held = 0;
    let [isBegun, isTooMuch, isRead] = [false, false, false];
    const answer = this.#under.begin(holder, (reason) => {
      if (isBegun) stream.abort(reason);
      else isTooMuch = true;
    });
    try {
      await answerStream(stream, { bytes: questionBytes, millis }, async (question) => {
        if (!this.#mayAsk(peer)) return undefined;
        if (!this.#hasRoom(holder)) return BUSY;
        const given = await this.#with.serve(peer, protocol, question);
        held = given?.length ?? 0;
        this.#hold(holder, held);
        if (held > 0) this.#under.took(answer, held);
        // Who hears nothing would blame this node.
        if (isTooMuch) {
          this.#hold(holder, -held);
          held = 0;
          return BUSY;
        }
        isBegun = true;
        return given;
      });
      isRead = true;
    } catch (error) {
      // A peer may disconnect meanwhile, or others use the line; but a request that is too long is its fault.
      if (/Length/.test((error as Error).name)) this.#with.fault(peer, 'malformed', 'a question that is too long');
    } finally {
      this.#hold(holder, -held);
      this.#under.over(answer, isRead);
    }
  }
}
