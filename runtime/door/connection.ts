/** The state of one socket of the listener: what it is waiting for, since when, and whether that is too long. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { MonotonicClock } from '../clock/clock.ts';
import { LAST_WORDS_MILLIS } from './last-words.ts';
import type { Opened } from './opened.ts';
import type { Waiting } from './waiting.ts';

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

/** The lists of a door that its connections enter and leave by themselves. */
export type ConnectionLists = {
  /** Those that speak HTTP; an opened WebSocket is its owner's. */
  readonly all: Set<Connection>;
  readonly waiting: Waiting<Connection>;
  readonly opened: Opened<Connection>;
  /** Milliseconds of a steady clock. */
  readonly now: MonotonicClock;
};

export class Connection {
  readonly socket: Socket;
  /** The caller is a program of this machine. */
  readonly isNear: boolean;
  /** The name its place is counted under; it changes where a proxy names the client (the owner moves the count). */
  place: string;
  /** Who holds its bytes, or it as a WebSocket: a proxy has many clients, and one of them at a time. */
  client: string;
  readonly #lists: ConnectionLists;
  #since: number;
  /** Requests without an answer; more than one when they are pipelined. */
  #requests = 0;
  readonly #answers = new Set<ServerResponse>();
  /** Bytes read up to the last answer. */
  #answeredTo = 0;
  #isFresh = true;
  #isKept = false;
  isLeaving = false;
  /** Bytes that were not yet sent at the last look, bytes written until then, and since when both are the same. */
  #waiting = 0;
  #written = 0;
  #stalledSince = 0;
  /** Beyond what every answer has. */
  #longerMillis = 0;

  constructor(socket: Socket, place: string, isNear: boolean, lists: ConnectionLists) {
    this.socket = socket;
    this.place = place;
    this.client = place;
    this.isNear = isNear;
    this.#lists = lists;
    this.#since = lists.now();
    (socket as KnownSocket)[CONNECTION] = this;
    lists.all.add(this);
    lists.waiting.add(this);
  }

  /** Requests without an answer. */
  get requests(): number {
    return this.#requests;
  }

  get isBusy(): boolean {
    return this.#requests > 0;
  }

  /** Bytes of a request that is not answered yet, and of answers that the client has not taken: what it is being sent, and whole ones behind that. */
  get heldBytes(): number {
    let bytes = this.socket.writableLength + Math.max(0, this.socket.bytesRead - this.#answeredTo);
    for (const answer of this.#answers) if (answer.socket === null) bytes += answer.writableLength;
    return bytes;
  }

  /** `answer`: where it is no WebSocket that is asked for. */
  begin(answer?: ServerResponse): void {
    if (answer !== undefined) this.#answers.add(answer);
    this.#isFresh = false;
    if (this.#requests++ === 0) this.#since = this.#lists.now();
    this.work();
  }

  done(answer: ServerResponse): void {
    this.#answers.delete(answer);
    this.#answeredTo = this.socket.bytesRead;
    this.#requests--;
    this.#since = this.#lists.now();
    this.#longerMillis = 0;
    if (!this.isBusy) this.wait();
  }

  leave(): void {
    this.isLeaving = true;
    this.#since = this.#lists.now();
    this.wait();
  }

  /** It is the client's turn: to send the rest of a request or the next one, or to take an answer. */
  wait(): void {
    this.#lists.waiting.delete(this);
    // The answer to a request may end after its connection did.
    if (!this.#isKept && this.#lists.all.has(this)) this.#lists.waiting.add(this);
  }

  /** It is the program's turn. */
  work(): void {
    this.#lists.waiting.delete(this);
  }

  /**
   * The client has proved to be one of the operator's: new connections do not displace it; the time limits still apply.
   */
  keep(): void {
    this.#isKept = true;
    this.#lists.waiting.delete(this);
  }

  /** It became a WebSocket, owned by another object. */
  open(): void {
    this.handOver();
    if (!this.#isKept) this.#lists.opened.add(this, this.client);
  }

  /** It is no HTTP any more, or was closed. */
  handOver(): void {
    this.#answeredTo = Number.POSITIVE_INFINITY;
    this.#lists.all.delete(this);
    this.#lists.waiting.delete(this);
    this.#lists.opened.delete(this);
  }

  /** The answer under way is a large one and has this much longer, for a client that goes on reading. */
  mayTakeLonger(millis: number): void {
    this.#longerMillis = millis;
  }

  /** Of one that waits for its client. */
  get waitedMillis(): number {
    return this.#lists.now() - this.#since;
  }

  isOver(times: ConnectionTimes): boolean {
    const now = this.#lists.now();
    const age = now - this.#since;
    if (this.isLeaving) return age > LAST_WORDS_MILLIS + SLACK_MILLIS;
    if (this.#isFresh) return age > times.headMillis + SLACK_MILLIS;
    if (!this.isBusy) return age > times.idleMillis + times.headMillis + SLACK_MILLIS;
    return age > times.answerMillis + this.#longerMillis || this.#stallMillis(now) > times.stallMillis;
  }

  #stallMillis(now: number): number {
    const { writableLength: waiting, bytesWritten: written } = this.socket;
    // What is sent piece by piece always has one piece waiting.
    if (waiting === 0 || waiting !== this.#waiting || written !== this.#written) {
      this.#waiting = waiting;
      this.#written = written;
      this.#stalledSince = now;
    }
    return now - this.#stalledSince;
  }
}

export const connectionOf = (socket: Duplex): Connection | undefined => (socket as KnownSocket)[CONNECTION];
