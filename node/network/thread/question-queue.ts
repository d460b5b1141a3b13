/**
 * Requests to peers: of each protocol as many at once as the peer is sure to answer; the others wait here. A peer
 * resets requests beyond its own limit, and must not be blamed for that.
 */
import type { Connection } from '@libp2p/interface';
import { AskError } from '../peer-fault.ts';
import { ask } from './asking.ts';
import { type PeerName, PROTOCOLS, type Protocol } from './host-types.ts';

/** Questions that wait for one peer. */
const MAX_WAITING = 64;

type Line = { asking: number; readonly waiting: (() => void)[] };

export class QuestionQueue {
  readonly #connection: (peer: PeerName) => Connection | undefined;
  readonly #lines = new Map<string, Line>();

  constructor(connection: (peer: PeerName) => Connection | undefined) {
    this.#connection = connection;
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
    const connection = this.#connection(peer);
    if (connection === undefined) throw new AskError('not_asked', 'the peer is gone');
    const { name, answerBytes, millis } = PROTOCOLS[protocol];
    let answer: Uint8Array;
    try {
      answer = await ask(connection, name, question, { bytes: answerBytes, millis });
    } catch (error) {
      const { name: kind, message } = error as Error;
      // A connection that ends during a request is not a refusal.
      const isOwn = /TooManyOutbound|MuxerClosed|ConnectionClos/.test(kind) || connection.status !== 'open';
      throw new AskError(isOwn ? 'not_asked' : 'unanswered', message);
    }
    if (answer.length === 0) throw new AskError('busy', 'the peer is busy');
    return answer;
  }
}
