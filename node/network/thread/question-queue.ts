/**
 * Requests to peers: of each protocol as many at once, and of all in a second, as the peer is sure to answer; the others
 * wait here. A peer resets requests beyond its own limits, and must not be blamed for that.
 */
import type { Connection } from '@libp2p/interface';
import { Buckets } from '../../../runtime/clients/buckets.ts';
import type { BucketRate } from '../../../runtime/clients/token-bucket.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { AskError } from '../peers/peer-fault.ts';
import { AnswersUnderWay } from './answers-under-way.ts';
import { ask } from './asking.ts';
import { type PeerName, PROTOCOLS, type Protocol, QUESTIONS } from './host-types.ts';

/** Questions that wait for one peer. */
const MAX_WAITING = 64;
/** Less than a peer answers: questions arrive closer together than they were sent. */
const PACE: BucketRate = { perSecond: 0.8 * QUESTIONS.perSecond, burst: 0.8 * QUESTIONS.burst };
const PACE_MILLIS = 1_000 / PACE.perSecond;
const MAX_RATES = 1_024;
/** Of answers of all peers that are being received: far more than a node asks of honest ones at once. */
export const INCOMING_BYTES = 64 * 1_024 * 1_024;

type Line = { asking: number; readonly waiting: (() => void)[] };

export class QuestionQueue {
  readonly #connection: (peer: PeerName) => Connection | undefined;
  readonly #steady: SteadyClock;
  readonly #holderOf: (connection: Connection) => string;
  readonly #lines = new Map<string, Line>();
  readonly #incoming: AnswersUnderWay;
  /** Kept when a peer disconnects, because it may not have noticed. */
  readonly #rates = new Buckets(PACE, MAX_RATES);

  /** `holderOf`: the peer, or the address that it shares with others. */
  constructor(
    connection: (peer: PeerName) => Connection | undefined,
    steady: SteadyClock,
    holderOf = ({ remotePeer }: Connection) => remotePeer.toString(),
  ) {
    this.#connection = connection;
    this.#steady = steady;
    this.#holderOf = holderOf;
    this.#incoming = new AnswersUnderWay(INCOMING_BYTES, steady);
  }

  /** Rejects with an AskError. */
  async ask(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array> {
    const key = `${protocol} ${peer}`;
    const line = this.#lines.get(key) ?? { asking: 0, waiting: [] };
    this.#lines.set(key, line);
    if (line.asking >= PROTOCOLS[protocol].asked) await this.#turn(line, PROTOCOLS[protocol].millis);
    else line.asking++;
    try {
      return await this.#put(peer, protocol, question);
    } finally {
      const next = line.waiting.shift();
      // The slot is passed directly to the next request, so that no other takes it.
      if (next === undefined) line.asking--;
      else next();
      if (line.asking === 0) this.#lines.delete(key);
    }
  }

  #turn(line: Line, millis: number): Promise<void> {
    if (line.waiting.length >= MAX_WAITING) throw new AskError('not_asked', 'too many questions wait for the peer');
    return new Promise((resolve, reject) => {
      const go = () => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        line.waiting.splice(line.waiting.indexOf(go), 1);
        reject(new AskError('not_asked', 'other questions took the time'));
      }, millis);
      line.waiting.push(go);
    });
  }

  async #put(peer: PeerName, protocol: Protocol, question: Uint8Array): Promise<Uint8Array> {
    while (this.#connection(peer) !== undefined && !this.#rates.take(peer, this.#steady()))
      await new Promise((resolve) => setTimeout(resolve, PACE_MILLIS));
    const connection = this.#connection(peer);
    if (connection === undefined) throw new AskError('not_asked', 'the peer is gone');
    const { name, answerBytes, millis } = PROTOCOLS[protocol];
    let answer: Uint8Array;
    try {
      const incoming = { answers: this.#incoming, holder: this.#holderOf(connection) };
      answer = await ask(connection, name, question, { bytes: answerBytes, millis }, incoming);
    } catch (error) {
      const { name: kind, message } = error as Error;
      if (/Unfinished/.test(kind)) throw new AskError('busy', message);
      // A connection that ends during a request is not a refusal, nor is an answer that this node gave up.
      const isOwn = /TooManyOutbound|MuxerClosed|ConnectionClos|GivenUp/.test(kind) || connection.status !== 'open';
      throw new AskError(isOwn ? 'not_asked' : 'unanswered', message);
    }
    if (answer.length === 0) throw new AskError('busy', 'the peer is busy');
    return answer;
  }
}
