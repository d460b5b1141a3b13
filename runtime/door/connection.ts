/** What a door knows of one of its sockets: what it is waiting for, and since when. Whether that is too long is decided here. */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LAST_WORDS_MILLIS } from './last-words.ts';

/** The times of DoorLimits that a connection is measured by. */
export type ConnectionTimes = {
  readonly headMillis: number;
  readonly answerMillis: number;
  readonly stallMillis: number;
  readonly idleMillis: number;
};

const CONNECTION = Symbol('connection');
type KnownSocket = Duplex & { [CONNECTION]?: Connection };

/** node:http reports a request that exceeds its time, and it is answered; a socket that is still open this much later is destroyed. */
const SLACK_MILLIS = 2_000;

export class Connection {
  readonly socket: Socket;
  /** The name its place is counted under; it changes where a proxy names the client (the owner moves the count). */
  place: string;
  readonly #all: Set<Connection>;
  #since: number;
  /** Requests without an answer; more than one when they are pipelined. */
  #requests = 0;
  #isFresh = true;
  isLeaving = false;
  /** Bytes that were not yet sent at the last look, and since when their number is the same. */
  #waiting = 0;
  #stalledSince = 0;

  constructor(socket: Socket, place: string, all: Set<Connection>, now: number) {
    this.socket = socket;
    this.place = place;
    this.#all = all;
    this.#since = now;
    (socket as KnownSocket)[CONNECTION] = this;
    all.add(this);
  }

  /** Requests without an answer. */
  get requests(): number {
    return this.#requests;
  }

  get isBusy(): boolean {
    return this.#requests > 0;
  }

  begin(now: number): void {
    this.#isFresh = false;
    if (this.#requests++ === 0) this.#since = now;
  }

  done(now: number): void {
    this.#requests--;
    this.#since = now;
  }

  leave(now: number): void {
    this.isLeaving = true;
    this.#since = now;
  }

  /** It is a WebSocket now, which another object owns. */
  handOver(): void {
    this.#all.delete(this);
  }

  isOver(times: ConnectionTimes, now: number): boolean {
    const age = now - this.#since;
    if (this.isLeaving) return age > LAST_WORDS_MILLIS + SLACK_MILLIS;
    if (this.#isFresh) return age > times.headMillis + SLACK_MILLIS;
    if (!this.isBusy) return age > times.idleMillis + times.headMillis + SLACK_MILLIS;
    return age > times.answerMillis || this.#stallMillis(now) > times.stallMillis;
  }

  #stallMillis(now: number): number {
    const waiting = this.socket.writableLength;
    if (waiting === 0 || waiting !== this.#waiting) {
      this.#waiting = waiting;
      this.#stalledSince = now;
    }
    return now - this.#stalledSince;
  }
}

export const connectionOf = (socket: Duplex): Connection | undefined => (socket as KnownSocket)[CONNECTION];
