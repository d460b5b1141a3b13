/**
 * One connection of /v1/ws (specification: Events, Limits): subscriptions and read requests within the limits of the table. A reader that does
 * not keep up, or whose client gets more than its allowance, loses notifications and gets a notice of it later; answers to its requests are never dropped, and never
 * more than its requests in flight.
 */
import type { WebSocket } from 'ws';
import type { ApiErrorCode, FrameErrorCode } from '../../protocol/api/error-codes.ts';
import {
  CLIENT_FRAMES,
  CLOSE_CODES,
  type ClientFrame,
  type ClientFrameType,
  type ResyncReason,
  TOPICS,
  type Topic,
} from '../../protocol/api/frames.ts';
import { check } from '../../protocol/api/schema.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { MAX_UNSENT } from '../events.ts';
import { type ApiContext, readAddresses } from './api-context.ts';
import { Refusal } from './api-error.ts';
import type { ApiLimits } from './api-limits.ts';
import type { ApiAnswer } from './dispatch.ts';
import type { EventText, LiveHub, Subscriber } from './live-hub.ts';

type FrameId = number | string;
type Subscription = Subscriber & {
  readonly attach: (hub: LiveHub) => () => void;

  readonly topic: Topic;
  readonly addresses: number;
  stop: () => void;
  lagged: boolean;
};

export type LiveDependencies = {
  readonly context: ApiContext;
  readonly hub: LiveHub;
  /** Takes a cost from the client's allowance, or throws a refusal. */
  readonly allow: (cost: number) => void;
  /** The client's allowance of notifications, over all its connections. */
  readonly notices: { readonly take: () => boolean; readonly owe: (units: number) => void };
  /** The client's part of the addresses that all may watch. */
  readonly watched: { readonly take: (count: number) => boolean; readonly giveBack: (count: number) => void };
  /** Answers a GET route; counts against the client's allowance. */
  readonly read: (path: string) => Promise<ApiAnswer>;
  /** Resolves when it is this client's turn. */
  readonly turn: () => Promise<void>;
  readonly now: SteadyClock;
};

/** A connection with more refused frames than this is closed. */
const MAX_REFUSED_FRAMES = 1_000;
/** Unsent bytes at which a connection that reads nothing is closed. */
const HOPELESS = 4 * 1024 * 1024;
/** The same cost as a batch of balances. */
const ADDRESSES_PER_UNIT = 16;
/** Bytes of a notification that count as another one. */
const NOTICE_BYTES = 4_096;
/** After so long a connection that had no allowance left is looked at again. */
const LAG_MILLIS = 1_000;
const OPEN = 1;

class FrameFault extends Error {
  readonly code: FrameErrorCode | ApiErrorCode;

  constructor(code: FrameErrorCode | ApiErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** An event of the socket, so that an error of a listener ends this client only (web-sockets.ts). */
const TURN = Symbol('turn');
type OrderedFrame = Exclude<ClientFrame, { type: 'request' }>;

export class LiveConnection {
  readonly #socket: WebSocket;
  readonly #limits: ApiLimits;
  #dependencies: LiveDependencies;
  readonly #subscriptions = new Map<number, Subscription>();
  readonly #sent = (): void => this.#drained();
  #nextNumber = 1;
  #watched = 0;
  #inFlight = 0;
  #lagged = false;
  #later: NodeJS.Timeout | undefined;
  #tokens: number;
  #tokensAt: number;
  #refused = 0;

  constructor(socket: WebSocket, limits: ApiLimits, dependencies: LiveDependencies) {
    this.#socket = socket;
    this.#limits = limits;
    this.#dependencies = dependencies;
    this.#tokens = limits.socket.framesPerSecond;
    this.#tokensAt = dependencies.now();
    socket.on('message', (data: Buffer, binary: boolean) => {
      // Thousands of frames may have come in one packet with the one for which it is closed.
      if (socket.readyState !== OPEN) return;
      if (binary) this.#close(CLOSE_CODES.wrongFrame, 'frames are JSON text');
      else this.#frame(data.toString('utf8'));
    });
    socket.on(TURN, (frame: OrderedFrame) => this.#inTurn(frame));
    socket.on('close', () => {
      for (const subscription of this.#subscriptions.values()) subscription.stop();
      this.#subscriptions.clear();
      this.#dependencies.watched.giveBack(this.#watched);
      clearTimeout(this.#later);
    });
  }

  #send(frame: string | Buffer, sent = this.#sent): void {
    if (this.#socket.readyState !== OPEN) return;
    if (this.#socket.bufferedAmount > HOPELESS) {
      this.#socket.terminate();
      return;
    }
    this.#socket.send(frame, { binary: false }, sent);
  }

  #error(id: FrameId | null, code: string, message: string, wait?: number): void {
    this.#send(
      JSON.stringify({
        type: 'error',
        data: { id, code, message, ...(wait === undefined ? {} : { retry_after_millis: wait }) },
      }),
    );
  }

  #allowed(): boolean {
    const { framesPerSecond } = this.#limits.socket;
    const now = this.#dependencies.now();
    const refill = (Math.max(0, now - this.#tokensAt) * framesPerSecond) / 1000;
    this.#tokens = Math.min(framesPerSecond, this.#tokens + refill);
    this.#tokensAt = now;
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  #frame(text: string): void {
    let id: FrameId | null = null;
    try {
      // Counted for every frame: one that is refused has been read and is answered too.
      this.#dependencies.allow(1);
      if (!this.#allowed()) {
        this.#tooMany();
        return;
      }
      const frame = readFrame(text, (found) => {
        id = found;
      });
      if (frame.type === 'request') {
        this.#request(frame.data.id, frame.data.path);
        return;
      }
      const addresses = frame.type === 'subscribe' ? (frame.data.addresses?.length ?? 0) : 0;
      if (addresses > 0) this.#dependencies.allow(Math.ceil(addresses / ADDRESSES_PER_UNIT));
      void this.#dependencies.turn().then(() => this.#socket.emit(TURN, frame));
    } catch (error) {
      this.#failed(id, error);
    }
  }

  /** In their order. Subscriptions cost most, and many connections can bring one at once. */
  #inTurn({ type, data }: OrderedFrame): void {
    if (this.#socket.readyState !== OPEN) return;
    try {
      if (type === 'ping') this.#send(JSON.stringify({ type: 'pong', data: { id: data.id } }));
      else if (type === 'unsubscribe') this.#unsubscribe(data.id, data.subscription);
      else this.#subscribe(data);
    } catch (error) {
      this.#failed(data.id, error);
    }
  }

  #failed(id: FrameId | null, error: unknown): void {
    if (error instanceof FrameFault) this.#error(id, error.code, error.message);
    else if (error instanceof Refusal) this.#refuse(id, error);
    else throw error;
  }

  #tooMany(): void {
    if (++this.#refused > MAX_REFUSED_FRAMES) {
      this.#close(CLOSE_CODES.policy, 'too many frames');
      return;
    }
    const { framesPerSecond } = this.#limits.socket;
    const message = `at most ${framesPerSecond} frames a second`;
    this.#error(null, 'too_many_frames', message, Math.ceil(1000 / framesPerSecond));
  }

  /** Nothing more is read: whoever is closed for its frames could go on sending them until the close is answered. */
  #close(code: number, reason: string): void {
    this.#socket.close(code, reason);
    this.#socket.pause();
  }

  #refuse(id: FrameId | null, { document, message }: Refusal): void {
    this.#error(id, document.error.code, message, document.retry_after_millis);
    // A blocked client cannot do anything here either.
    if (document.error.code === 'client_blocked') this.#close(CLOSE_CODES.policy, message);
  }

  #subscribe(data: Extract<ClientFrame, { type: 'subscribe' }>['data']): void {
    const { socket: limits, everyMempoolTransaction } = this.#limits;
    const topic = data.topic as Topic;
    if (!TOPICS.includes(topic) || (topic === 'mempool_transactions' && !everyMempoolTransaction))
      throw new FrameFault('topic_unknown', 'this service does not offer the topic');
    if ((data.addresses !== undefined) !== (topic === 'addresses'))
      throw new FrameFault('frame_malformed', 'the topic `addresses`, and only it, takes addresses');
    if ((data.transaction_id !== undefined) !== (topic === 'transaction'))
      throw new FrameFault('frame_malformed', 'the topic `transaction`, and only it, takes a transaction_id');
    if (this.#subscriptions.size >= limits.subscriptions)
      throw new FrameFault('too_many_subscriptions', `at most ${limits.subscriptions} subscriptions`);
    const { hub, context } = this.#dependencies;
    const payloads = readAddresses(context, data.addresses ?? []).map(({ payload }) => payload);
    if (this.#watched + payloads.length > limits.watchedAddresses)
      throw new FrameFault('too_many_addresses', `at most ${limits.watchedAddresses} watched addresses`);
    if (!this.#dependencies.watched.take(payloads.length))
      throw new FrameFault('too_many_addresses', 'the clients of this service watch as many addresses as they may');
    const number = this.#nextNumber++;
    const subscription: Subscription = {
      number,
      topic,
      addresses: payloads.length,
      lagged: false,
      stop: () => undefined,
      attach: (source) => {
        if (topic === 'addresses') return source.watchAddresses(payloads, subscription);
        if (topic !== 'transaction') return source.subscribe(topic, subscription);
        return source.watchTransaction(data.transaction_id as string, (status) =>
          subscription.deliver(() => `{"type":"transaction_status","data":${status}}`, new Map()),
        );
      },
      deliver: (event, frames) => this.#deliver(subscription, event, frames),
    };
    this.#subscriptions.set(number, subscription);
    this.#watched += payloads.length;
    this.#send(JSON.stringify({ type: 'subscribed', data: { id: data.id, subscription: number, topic } }));
    subscription.stop = subscription.attach(hub);
    const current = hub.current(topic);
    if (current !== undefined) subscription.deliver(current, new Map());
  }

  #unsubscribe(id: FrameId, number: number): void {
    const subscription = this.#subscriptions.get(number);
    if (subscription === undefined)
      throw new FrameFault('subscription_unknown', 'this connection has no such subscription');
    subscription.stop();
    this.#subscriptions.delete(number);
    this.#watched -= subscription.addresses;
    this.#dependencies.watched.giveBack(subscription.addresses);
    this.#send(JSON.stringify({ type: 'unsubscribed', data: { id, subscription: number } }));
  }

  #request(id: FrameId, path: string): void {
    const { requestsInFlight, answerBytes } = this.#limits.socket;
    if (this.#inFlight >= requestsInFlight)
      throw new FrameFault('too_many_in_flight', `at most ${requestsInFlight} requests in flight`);
    if (!path.startsWith('/'))
      throw new FrameFault('path_refused', 'a request names a GET route, such as /v1/chain/head');
    this.#inFlight++;
    // The slot is released when the answer has been sent, so a client that does not read cannot accumulate answers.
    const done = (): void => {
      this.#inFlight--;
      this.#drained();
    };
    void this.#dependencies.read(path).then((answer) => {
      if (this.#socket.readyState !== OPEN) return;
      const body = String(answer.json);
      if (Buffer.byteLength(body) > answerBytes) {
        this.#error(id, 'answer_too_large', `the answer has over ${answerBytes} bytes: ask for less, or over HTTP`);
        done();
        return;
      }
      this.#send(
        `{"type":"response","data":{"id":${JSON.stringify(id)},"status":${answer.status},"body":${body}}}`,
        done,
      );
    });
  }

  #deliver(subscription: Subscription, event: EventText, frames: Map<number, Buffer>): void {
    if (this.#socket.readyState !== OPEN) return;
    const { notices } = this.#dependencies;
    // A subscription that lost notifications gets the notice before anything else.
    if (subscription.lagged || this.#socket.bufferedAmount > MAX_UNSENT || !notices.take()) {
      subscription.lagged = true;
      this.#lag();
      return;
    }
    let frame = frames.get(subscription.number);
    if (frame === undefined) {
      frame = Buffer.from(`{"type":"notification","data":{"subscription":${subscription.number},"event":${event()}}}`);
      frames.set(subscription.number, frame);
    }
    notices.owe(Math.floor(frame.length / NOTICE_BYTES));
    this.#send(frame);
  }

  #lag(): void {
    this.#lagged = true;
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      this.#drained();
    }, LAG_MILLIS).unref();
  }

  #drained(): void {
    if (!this.#lagged || this.#socket.readyState !== OPEN || this.#socket.bufferedAmount > MAX_UNSENT / 2) return;
    this.#lagged = false;
    for (const subscription of this.#subscriptions.values())
      if (subscription.lagged) {
        if (!this.#dependencies.notices.take()) {
          this.#lag();
          return;
        }
        subscription.lagged = false;
        this.#resync(subscription.number, 'stream_lagged');
      }
  }

  /** The node behind the API was restarted: events in between were missed. */
  restart(context: ApiContext, hub: LiveHub): void {
    this.#dependencies = { ...this.#dependencies, context, hub };
    for (const subscription of this.#subscriptions.values()) {
      subscription.stop();
      this.#resync(subscription.number, 'stream_restarted');
      subscription.stop = subscription.attach(hub);
    }
  }

  #resync(subscription: number, reason: ResyncReason): void {
    this.#send(JSON.stringify({ type: 'resync_required', data: { subscription, reason } }));
  }
}

function readFrame(text: string, found: (id: FrameId) => void): ClientFrame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FrameFault('frame_malformed', 'the frame is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new FrameFault('frame_malformed', 'a frame is {type, data}');
  const { type, data, ...rest } = value as Record<string, unknown>;
  const id = (data as { id?: unknown } | null | undefined)?.id;
  if (typeof id === 'number' || (typeof id === 'string' && id.length <= 64)) found(id);
  if (Object.keys(rest).length > 0) throw new FrameFault('frame_malformed', 'a frame has only type and data');
  if (typeof type !== 'string' || !Object.hasOwn(CLIENT_FRAMES, type))
    throw new FrameFault('frame_type_unknown', `frame types are ${Object.keys(CLIENT_FRAMES).join(', ')}`);
  const problem = check(CLIENT_FRAMES[type as ClientFrameType], data, 'data');
  if (problem !== undefined) throw new FrameFault('frame_malformed', `${problem.field} ${problem.problem}`);
  return value as ClientFrame;
}
