/**
 * One connection to a neighbour: the hello of the dialler, then that of the dialled, their identities in the same order,
 * then frames in both directions. For whoever does not begin with a valid hello no key is made and nothing is sent. Everything is bounded: the size of a frame, bytes and messages a second (a neighbour that sends more is
 * read more slowly), the output queue, the time to identify, and the time to answer an echo (link-echo.ts). The latter
 * also bounds a frame that never ends: no answer can follow it.
 */

import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { ProtocolError, type ProtocolErrorCode } from '../../../protocol/errors.ts';
import { validatorId } from '../../../protocol/staking/names.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { type Rate, ReadingAllowance } from './allowance.ts';
import { Channel, type ConnectionKey, type Ends, identityMessage, newConnectionKey, type Role } from './channel.ts';
import {
  CHANNEL_KEY_BYTES,
  decodeIdentity,
  encodeHello,
  encodeIdentity,
  FrameReader,
  frameBytes,
  type Hello,
  IDENTITY_BYTES,
  type Identity,
  MAX_FRAME_BYTES,
  readHello,
  TAG_BYTES,
  tokenIn,
} from './frames.ts';
import { isEcho, LinkEcho } from './link-echo.ts';
import type { OverlaySocket } from './quic-socket.ts';

export const LINK_LIMITS = {
  /** For hello and identity together. */
  helloMillis: 5_000,
  /** Time between two echo questions. */
  echoMillis: 10_000,
  /**
   * The connection is closed if the last answered question is older. Together with the time between two checks it is
   * less than a minute: for that long a dead process can delay the next one of its key (rule 23).
   */
  silentMillis: 45_000,
  /** How long a neighbour may leave a full queue unread. */
  stalledMillis: 30_000,
  queuedBytes: 8 * 1024 * 1024,
  bytes: { perSecond: 16 * 1024 * 1024, burst: 80 * 1024 * 1024 },
  messages: { perSecond: 1_000, burst: 4_000 },
} as const;
/** What a read counts for at least: bytes that come one by one cost their reader most. */
export const LEAST_READ_BYTES = 1_024;
/**
 * Frames that are looked at before they are counted: a piece of 64 KiB has thousands, and whoever comes again and again
 * brings a piece each time. As many a second are read of each stranger where all together have used up what they share.
 */
export const FRAMES_AT_ONCE = 16;
export type LinkLimits = {
  readonly [K in keyof typeof LINK_LIMITS]: (typeof LINK_LIMITS)[K] extends number ? number : Rate;
};

/** The claimed identity of the other end, and the bytes that it must have signed. */
export type Claim = { readonly identity: Identity; readonly message: Bytes };

export type LinkEvents = {
  /** The identification of the other side is complete. */
  ready(claim: Claim | undefined): void;
  message(bytes: Bytes): void;
  /** `reason` is missing if the connection ended normally. */
  ended(reason?: string): void;
  /** A first frame with a token may begin one half of a circuit (rule 24) instead. Then it is no longer a link. */
  readonly circuit?: { isExpected(token: Bytes): boolean; begin(socket: OverlaySocket, token: Bytes): void };
};

export type LinkSettings = {
  readonly own: Omit<Hello, 'channelKey'>;
  readonly role: Role;
  /**
   * This side's identity; undefined if it has no key or does not identify itself. On the dialled side it is called once
   * the other's claim is known, and not for anonymous connections: signing for every stranger would cost too much.
   */
  readonly identify: (message: Bytes, claim: Claim | undefined) => Promise<Identity | undefined>;
  readonly limits: LinkLimits;
  /** The expected validator, if it is dialled by its registered route: this side identifies itself to no other. */
  readonly expects?: Bytes | undefined;
  /** Whether so many more bytes may wait, with what waits on all other connections. */
  readonly mayWait?: ((bytes: number) => boolean) | undefined;
};

type Reading = Pick<ReadingAllowance, 'spend'>;

export type Restriction = {
  readonly reading: readonly Reading[];
  readonly queuedBytes: number;
  /** Whether this many more bytes are allowed; if so, they are counted. */
  readonly maySend: (bytes: number) => boolean;
};

const OTHER_NODES: ReadonlySet<ProtocolErrorCode> = new Set(['unsupported_version', 'wrong_network']);
const NOTHING: Bytes = new Uint8Array(0);
const NO_KEY: Bytes = new Uint8Array(CHANNEL_KEY_BYTES);

/** What this side said first, and the secret of its key. */
type Greeting = { readonly key: ConnectionKey; readonly hello: Hello };

export class OverlayLink {
  readonly #socket: OverlaySocket;
  readonly #settings: LinkSettings;
  readonly #events: LinkEvents;
  readonly #steady: SteadyClock;
  readonly #reader = new FrameReader();
  readonly #timers: NodeJS.Timeout[];
  #own: Reading;
  #allowances: readonly Reading[];
  #queuedBytes: number;
  #maySend: Restriction['maySend'] = () => true;
  #resume: NodeJS.Timeout | undefined;
  #greeting: Greeting | undefined;
  readonly #listeners = [
    ['error', () => this.end()],
    ['close', () => this.end()],
    ['end', () => this.#discard()],
    ['data', (piece: Buffer) => this.#read(piece)],
  ] as const;
  #ends: Ends | undefined;
  #channel: Channel | undefined;
  /** The own identity is being signed: until it is sent the other side must not send anything. */
  #isSigning = false;
  #isReady = false;
  #isOver = false;
  readonly #echo: LinkEcho;
  #lookedAt: number;
  #fullSince: number | undefined;

  constructor(socket: OverlaySocket, settings: LinkSettings, events: LinkEvents, steady: SteadyClock) {
    this.#socket = socket;
    this.#settings = settings;
    this.#events = events;
    this.#steady = steady;
    const { limits, role } = settings;
    const now = steady();
    this.#echo = new LinkEcho(now);
    this.#lookedAt = now;
    this.#own = new ReadingAllowance(limits.bytes, limits.messages, now);
    this.#allowances = [this.#own];
    this.#queuedBytes = limits.queuedBytes;
    this.#timers = [
      setTimeout(() => this.#isReady || this.end('it did not say who it is'), limits.helloMillis),
      setInterval(() => this.#look(), Math.min(limits.echoMillis, limits.silentMillis, limits.stalledMillis)),
    ];
    socket.setNoDelay?.(true);
    for (const [event, listener] of this.#listeners) socket.on(event, listener);
    if (role === 'dialler') this.#greet();
  }

  #greet(): Greeting {
    const key = newConnectionKey();
    const hello = { ...this.#settings.own, channelKey: key.channelKey };
    this.#socket.write(frameBytes(encodeHello(hello)));
    this.#greeting = { key, hello };
    return this.#greeting;
  }

  /** Its other end is known: what it sends counts together with what comes on its other connections, and came on earlier ones. */
  countWith(allowance: Reading): void {
    this.#allowances = this.#allowances.map((each) => (each === this.#own ? allowance : each));
    this.#own = allowance;
    this.#spend(0, 0);
  }

  /** Applies the limits for strangers: lower read and send rates, shared by all strangers, and a shorter queue. */
  restrict({ reading, queuedBytes, maySend }: Restriction): void {
    this.#allowances = [this.#own, ...reading];
    this.#queuedBytes = Math.min(queuedBytes, this.#settings.limits.queuedBytes);
    this.#maySend = maySend;
    // The wait was computed with the previous limits.
    if (this.#resume !== undefined) this.#wait(0);
    this.#spend(0, 0);
  }

  /** It has proven itself since. */
  release(): void {
    this.restrict({ reading: [], queuedBytes: this.#settings.limits.queuedBytes, maySend: () => true });
  }

  /** The name of the process at the other end, after its hello. */
  get process(): Bytes | undefined {
    return this.#ends?.[this.#settings.role === 'dialler' ? 'dialled' : 'dialler'].process;
  }

  /** Bytes that the other side has not read yet, without those that the kernel has. */
  get waiting(): number {
    return this.#socket.writableLength;
  }

  send(bytes: Bytes): void {
    if (this.#isOver || !this.#isReady) return;
    // Dropped: anti-entropy recovers it if needed.
    if (this.waiting + bytes.length > this.#queuedBytes) {
      this.#fullSince ??= this.#steady();
      return;
    }
    if (this.#settings.mayWait?.(bytes.length) === false) return;
    if (!this.#maySend(bytes.length)) return;
    this.#write(bytes);
  }

  #write(bytes: Bytes): void {
    // Checked before it gets a number: a number that is not sent would break the connection.
    if (bytes.length > MAX_FRAME_BYTES) throw new ProtocolError('too_long', 'a frame that no neighbour reads');
    this.#socket.write(frameBytes((this.#channel as Channel).seal(bytes)));
  }

  end(reason?: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    clearTimeout(this.#resume);
    if (reason !== undefined) this.#discard();
    this.#socket.destroy();
    this.#events.ended(reason);
  }

  /** What the other side has not read would stay in the kernel for minutes after the connection. */
  #discard(): void {
    if (this.#isReady && !this.#socket.writableEnded) this.#socket.resetAndDestroy?.();
  }

  #handOver(token: Bytes, circuit: NonNullable<LinkEvents['circuit']>): void {
    if (!circuit.isExpected(token)) throw new ProtocolError('not_canonical', 'it has a token that nobody gave it');
    // Its end gets a hello as on every connection.
    this.#greet();
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    for (const [event, listener] of this.#listeners) this.#socket.off(event, listener);
    this.#socket.pause();
    circuit.begin(this.#socket, token);
  }

  #look(): void {
    const now = this.#steady();
    const { silentMillis, stalledMillis } = this.#settings.limits;
    // This process was suspended: data that arrived meanwhile is not read yet.
    const wasAway = now - this.#lookedAt > silentMillis / 2;
    this.#lookedAt = now;
    if (this.waiting < this.#queuedBytes / 2) this.#fullSince = undefined;
    if (this.#echo.silentFor(now) > silentMillis && !wasAway) this.end('it did not answer the echo');
    else if (this.#fullSince !== undefined && now - this.#fullSince > stalledMillis) this.end('it does not read');
    else this.#sendEcho(this.#echo.question(now));
  }

  /** Not counted in the limits for strangers: it is short, and without it they would be taken for dead. */
  #sendEcho(bytes: Bytes | undefined): void {
    if (bytes === undefined || this.#isOver || !this.#isReady) return;
    if (this.waiting + bytes.length <= this.#queuedBytes) this.#write(bytes);
  }

  #read(piece: Bytes): void {
    this.#spend(Math.max(piece.length, LEAST_READ_BYTES), 0);
    this.#takeFrames(piece);
  }

  /** Where they are more than is allowed, the others wait in the reader. */
  #takeFrames(piece: Bytes): void {
    let messages = this.#takeSome(piece);
    this.#spend(0, messages);
    while (!this.#isOver && this.#resume === undefined && messages === FRAMES_AT_ONCE) {
      messages = this.#takeSome(NOTHING);
      this.#spend(0, messages);
    }
  }

  #takeSome(piece: Bytes): number {
    let messages = 0;
    try {
      for (const frame of this.#reader.push(piece)) {
        this.#take(frame);
        if (this.#isOver || ++messages === FRAMES_AT_ONCE) break;
      }
    } catch (error) {
      // Input of a neighbour can end only its connection, never this node.
      this.end(error instanceof ProtocolError ? error.message : `its frames could not be read: ${error}`);
    }
    return messages;
  }

  #spend(bytes: number, messages: number): void {
    const now = this.#steady();
    const millis = Math.max(...this.#allowances.map((allowance) => allowance.spend(bytes, messages, now)));
    if (millis > 0 && !this.#isOver) this.#wait(millis);
  }

  /** Nothing is read for a while. */
  #wait(millis: number): void {
    clearTimeout(this.#resume);
    this.#socket.pause();
    this.#resume = setTimeout(() => {
      this.#resume = undefined;
      this.#takeFrames(NOTHING);
      if (this.#resume === undefined && !this.#isOver) this.#socket.resume();
    }, millis);
  }

  #take(frame: Bytes): void {
    if (this.#channel === undefined) {
      const { circuit } = this.#events;
      const token = circuit && tokenIn(frame);
      if (circuit !== undefined && token !== undefined) this.#handOver(token, circuit);
      else this.#meet(this.#helloIn(frame));
      return;
    }
    const bytes = this.#channel.open(frame);
    if (this.#isReady) {
      if (isEcho(bytes)) this.#sendEcho(this.#echo.take(bytes));
      else if (bytes.length > 0) this.#events.message(bytes);
      return;
    }
    if (this.#isSigning) throw new ProtocolError('not_canonical', 'it speaks before its turn');
    const claim = this.#claimIn(bytes);
    if (this.#settings.role === 'dialler') this.#begin(claim);
    else if (claim !== undefined) this.#introduce(claim, () => this.#begin(claim));
    else {
      this.#write(encodeIdentity(undefined));
      this.#begin(undefined);
    }
  }

  #helloIn(frame: Bytes): Hello {
    try {
      return readHello(frame, this.#settings.own);
    } catch (error) {
      // A node of another version or chain is told which ones are spoken here, for its operator.
      const isNode = error instanceof ProtocolError && OTHER_NODES.has(error.code);
      if (isNode && this.#greeting === undefined)
        this.#socket.write(frameBytes(encodeHello({ ...this.#settings.own, channelKey: NO_KEY })));
      throw error;
    }
  }

  #meet(other: Hello): void {
    const { role, expects } = this.#settings;
    if (expects !== undefined && !equalBytes(other.validator, expects))
      throw new ProtocolError('not_canonical', 'it is not the validator that registered this route');
    const { key, hello } = this.#greeting ?? this.#greet();
    this.#ends = role === 'dialler' ? { dialler: hello, dialled: other } : { dialler: other, dialled: hello };
    this.#channel = new Channel(role, key.secret, this.#ends);
    this.#reader.limit = IDENTITY_BYTES + TAG_BYTES;
    if (role === 'dialler') this.#introduce(undefined, () => undefined);
  }

  /** The signature covers the identity in the hello, so this one must be the same. */
  #claimIn(bytes: Bytes): Claim | undefined {
    const identity = decodeIdentity(bytes);
    if (identity === undefined) return undefined;
    const [ends, role] = [this.#ends as Ends, this.#settings.role === 'dialler' ? 'dialled' : 'dialler'] as const;
    if (!equalBytes(validatorId(identity.publicKey), ends[role].validator))
      throw new ProtocolError('not_canonical', 'its identity is not the one of its hello');
    return { identity, message: identityMessage(role, ends) };
  }

  #introduce(claim: Claim | undefined, done: () => void): void {
    const { role, identify } = this.#settings;
    this.#isSigning = true;
    identify(identityMessage(role, this.#ends as Ends), claim)
      .then((known) => {
        if (this.#isOver) return;
        this.#isSigning = false;
        this.#write(encodeIdentity(known));
        done();
      })
      .catch(() => this.end());
  }

  #begin(claim: Claim | undefined): void {
    this.#isReady = true;
    this.#reader.limit = MAX_FRAME_BYTES + TAG_BYTES;
    this.#events.ready(claim);
  }
}
