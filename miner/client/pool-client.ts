/**
 * Keeps a miner supplied with work from a list of pools: opens connections, drives their sessions, goes to the next
 * pool when one fails and returns to an earlier one as soon as that gives work again. A probe of an earlier pool runs
 * beside the active connection and takes over with its first job, so no work is lost. Loads in browsers.
 */
import { ProtocolError } from '../../protocol/errors.ts';
import type { ErrorReply } from '../../protocol/stratum/errors.ts';
import type { Reconnect, Subscribed } from '../../protocol/stratum/messages.ts';
import { type MonotonicClock, monotonicMillis } from '../../runtime/clock/clock.ts';
import type { Refusal } from '../miner-error.ts';
import { type BooksOfPools, LinkBooks } from './link-books.ts';
import { PoolOrder } from './pool-order.ts';
import { type Endpoint, followReconnect, showEndpoint } from './pool-url.ts';
import { Refusals } from './refusals.ts';
import { Session } from './session.ts';
import { isDistrust, isRestart, isWorthless } from './session-ends.ts';
import {
  type PoolJob,
  SESSION_DEFAULTS,
  type SessionAction,
  type SessionMemory,
  type SessionOptions,
  type SessionTimes,
  type Share,
  type Verdict,
} from './session-events.ts';
import { withShare } from './session-resume.ts';
import { type Connect, isFramed, type Transport } from './transport.ts';
import type { Wire } from './wire.ts';
import { WireV1 } from './wire-v1.ts';
import { WireV2 } from './wire-v2.ts';

export type PoolClientOptions = {
  readonly pools: readonly Endpoint[];
  readonly session: SessionOptions;
  readonly times?: Partial<SessionTimes & ClientTimes>;
};

export const CLIENT_DEFAULTS = {
  tickMillis: 250,
  /** How long a replaced connection stays open: for late hits on its job, and for pending answers. */
  drainMillis: 5_000,
} as const;

type ClientTimes = { readonly [K in keyof typeof CLIENT_DEFAULTS]: number };

export type NoteLevel = 'info' | 'warn' | 'error' | 'debug';

export type PoolClientEvents = {
  /** Work, or none: no pool gives any, and shares of the last job could no longer be submitted. */
  onJob(job: PoolJob | undefined, pool: number | undefined): void;
  onVerdict(share: Share, verdict: Verdict, error: ErrorReply | undefined, blockId: Uint8Array | undefined): void;
  readonly books?: BooksOfPools;
};

export type PoolClientDependencies = {
  readonly connect: Connect;
  readonly now: MonotonicClock;
  readonly random: () => number;
  readonly note: (level: NoteLevel, message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly every: (millis: number, act: () => void) => () => void;
  /** What the session cannot know against a job, such as its epoch: a dataset is expensive, and a pool must not cause many. */
  readonly refusesJob?: (pool: number, job: PoolJob) => Refusal | undefined;
};

export type PoolState = {
  readonly endpoint: string;
  readonly pool: number;
  readonly server: string;
  readonly poolName: string | undefined;
  readonly latencyMillis: number | undefined;
  readonly connectedAt: number;
};

type Link = {
  readonly pool: number;
  readonly endpoint: Endpoint;
  readonly session: Session;
  readonly wire: Wire;
  readonly books: LinkBooks;
  transport: Transport | undefined;
  subscribed: Subscribed | undefined;
  connectedAt: number;
  move: { readonly at: number; readonly to: Endpoint } | undefined;
  drainUntil: number;
  gone: boolean;
};

const REFUSED_JOB_PAUSE = 60_000;

export class PoolClient {
  readonly #options: PoolClientOptions;
  readonly #events: PoolClientEvents;
  readonly #dependencies: PoolClientDependencies;
  readonly #times: SessionTimes & ClientTimes;
  readonly #order: PoolOrder;
  readonly #memories = new Map<number, SessionMemory>();
  readonly #moved = new Map<number, Endpoint>();
  readonly #refusals: readonly Refusals[];
  /** The address that each pool named when it was last logged in to. */
  readonly #payouts = new Map<number, string | undefined>();
  #active: Link | undefined;
  #probe: Link | undefined;
  #draining: Link[] = [];
  #job: { readonly job: PoolJob; readonly pool: number } | undefined;
  #stopTicks: (() => void) | undefined;
  #lastTick = 0;
  #connections = 0;
  #lastRefusal: Refusal | undefined;

  constructor(options: PoolClientOptions, events: PoolClientEvents, dependencies: PoolClientDependencies) {
    this.#options = { ...options, session: { ...options.session, receipts: events.books !== undefined } };
    this.#events = events;
    this.#dependencies = dependencies;
    this.#times = { ...SESSION_DEFAULTS, ...CLIENT_DEFAULTS, ...options.times };
    this.#order = new PoolOrder(options.pools.length);
    this.#refusals = options.pools.map(() => new Refusals(this.#times));
  }

  /** The pool that work comes from, once it is logged in to. */
  get state(): PoolState | undefined {
    const link = this.#active;
    if (link?.subscribed === undefined || link.session.phase !== 'mining') return undefined;
    return {
      endpoint: showEndpoint(link.endpoint),
      pool: link.pool,
      server: link.subscribed.server,
      poolName: link.subscribed.pool?.name,
      latencyMillis: link.session.latencyMillis,
      connectedAt: link.connectedAt,
    };
  }

  /** Connections that were opened, successful or not. */
  get connections(): number {
    return this.#connections;
  }

  /** Shares that wait for their turn to be sent. */
  get waiting(): number {
    return this.#active?.session.waiting ?? 0;
  }

  /** Until the next pool is tried; undefined while one is connected or being tried. */
  get nextTryMillis(): number | undefined {
    return this.#active === undefined ? this.#order.wait(this.#dependencies.now()) : undefined;
  }

  get lastRefusal(): Refusal | undefined {
    return this.#lastRefusal;
  }

  start(): void {
    this.#lastTick = this.#dependencies.now();
    this.#stopTicks = this.#dependencies.every(this.#times.tickMillis, () => this.#tick());
    this.#tick();
  }

  stop(): void {
    this.#stopTicks?.();
    for (const link of [this.#active, this.#probe, ...this.#draining]) if (link !== undefined) this.#drop(link);
    this.#active = undefined;
    this.#probe = undefined;
    this.#draining = [];
  }

  submit(share: Share): void {
    for (const link of [this.#active, ...this.#draining])
      if (link?.session.id === share.session) {
        this.#feed(link, { kind: 'share', share });
        return;
      }
    const active = this.#active;
    const memory = this.#job === undefined ? undefined : this.#memories.get(this.#job.pool);
    if (active !== undefined && active.pool === this.#job?.pool) {
      this.#feed(active, { kind: 'share', share });
      return;
    }
    const kept = memory === undefined ? undefined : withShare(memory, share);
    if (kept === undefined || this.#job === undefined) this.#events.onVerdict(share, 'lost', undefined, undefined);
    else this.#memories.set(this.#job.pool, kept);
  }

  /** One was found for a job that was ended before a device could take up the next. */
  missed(): void {
    if (this.#job !== undefined) this.#refusals[this.#job.pool]?.lost();
  }

  /** Logs in once more with what the options say now: the session is resumed. */
  relogin(): void {
    const link = this.#active;
    if (link === undefined || link.session.phase !== 'mining' || link.move !== undefined) return;
    const now = this.#dependencies.now();
    this.#remember(link, now);
    this.#drop(link);
    this.#active = this.#open(link.pool, now);
  }

  #tick(): void {
    const now = this.#dependencies.now();
    const gap = now - this.#lastTick;
    this.#lastTick = now;
    if (gap < 0 || gap > this.#times.sleepMillis) this.#order.forgetWaits(now);
    for (const link of [this.#active, this.#probe, ...this.#draining])
      if (link !== undefined && !link.gone) this.#feed(link, { kind: 'tick' });
    this.#followMove(now);
    this.#endDrains(now);
    this.#forgetJob(now);
    if (this.#active === undefined) {
      const pool = this.#order.choose(now);
      if (pool !== undefined) this.#active = this.#open(pool, now);
    } else if (this.#active.pool > 0 && this.#probe === undefined && this.#active.session.phase === 'mining') {
      const earlier = this.#order.better(this.#active.pool, now);
      if (earlier !== undefined) this.#probe = this.#open(earlier, now);
    }
  }

  #open(pool: number, now: number): Link {
    const endpoint = this.#moved.get(pool) ?? (this.#options.pools[pool] as Endpoint);
    const framed = isFramed(endpoint);
    const link: Link = {
      pool,
      endpoint,
      session: new Session(this.#sessionOf(endpoint), now, this.#memories.get(pool), this.#times, this.#refusals[pool]),
      wire: endpoint.version === 2 ? new WireV2(framed) : new WireV1(framed),
      books: new LinkBooks(this.#events.books?.of(pool)),
      transport: undefined,
      subscribed: undefined,
      connectedAt: now,
      move: undefined,
      drainUntil: 0,
      gone: false,
    };
    this.#memories.delete(pool);
    this.#connections++;
    this.#dependencies.note('debug', 'connecting', { pool: showEndpoint(endpoint) });
    link.transport = this.#dependencies.connect(endpoint, {
      onOpen: () => {
        if (link.wire.opening !== undefined) link.transport?.send(link.wire.opening);
        this.#feed(link, { kind: 'opened' });
      },
      onData: (data) => this.#receive(link, data),
      onClose: (why) => this.#feed(link, { kind: 'closed', refusal: why }),
    });
    return link;
  }

  /** v1 has no farms. */
  #sessionOf({ version }: Endpoint): SessionOptions {
    const { farmRigs, ...plain } = this.#options.session;
    return version === 2 ? this.#options.session : plain;
  }

  #receive(link: Link, data: Uint8Array | string): void {
    try {
      link.wire.receive(data, (message) => {
        if (!link.gone) this.#feed(link, { kind: 'received', message });
      });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#feed(link, { kind: 'garbage', reason: error.message });
    }
  }

  #feed(link: Link, event: Parameters<Session['handle']>[0]): void {
    if (link.gone && event.kind !== 'share') return;
    for (const action of link.session.handle(event, this.#dependencies.now())) this.#act(link, action);
  }

  #act(link: Link, action: SessionAction): void {
    link.books.act(action);
    switch (action.kind) {
      case 'send':
        link.transport?.send(link.wire.encode(action.message));
        return;
      case 'note':
        this.#dependencies.note('warn', action.message, { pool: showEndpoint(link.endpoint), ...action.fields });
        return;
      case 'forgotten':
        if (link === this.#active) this.#giveUpJobOf(link.pool);
        return;
      case 'ready':
        link.subscribed = action.subscribed;
        this.#dependencies.note('info', 'connected', {
          pool: showEndpoint(link.endpoint),
          server: action.subscribed.server,
          ...(action.subscribed.pool === null ? {} : { name: action.subscribed.pool.name }),
          resumed: action.resumed,
        });
        this.#comparePayout(link, action.subscribed.pool?.address);
        return;
      case 'job':
        this.#onJob(link, action.job);
        return;
      case 'verdict':
        this.#events.onVerdict(action.share, action.verdict, action.error, action.blockId);
        return;
      case 'move':
        this.#onMove(link, action.reconnect);
        return;
      case 'end':
        this.#onEnd(link, action.refusal, action.retryAfterMillis);
        return;
    }
  }

  /**
   * A pool may have a new address, or an attacker in the middle may send their own. Only --expect-payout excludes that.
   */
  #comparePayout(link: Link, now: string | undefined): void {
    const before = this.#payouts.get(link.pool);
    if (this.#payouts.has(link.pool) && before !== now && this.#options.session.pinned === undefined)
      this.#dependencies.note('warn', 'the pool names another address than before', {
        pool: showEndpoint(link.endpoint),
        before: before ?? 'none',
        now: now ?? 'none',
      });
    this.#payouts.set(link.pool, now);
  }

  #onJob(link: Link, job: PoolJob): void {
    if (this.#draining.includes(link)) return;
    const wrong = this.#dependencies.refusesJob?.(link.pool, job);
    if (wrong !== undefined) {
      this.#onEnd(link, wrong, REFUSED_JOB_PAUSE);
      return;
    }
    this.#order.worked(link.pool, this.#dependencies.now());
    if (link === this.#probe) {
      this.#probe = undefined;
      const old = this.#active;
      this.#active = link;
      if (old !== undefined) {
        old.drainUntil = this.#dependencies.now() + this.#times.drainMillis;
        this.#draining.push(old);
        this.#dependencies.note('info', 'returned to an earlier pool', { pool: showEndpoint(link.endpoint) });
      }
    }
    this.#job = { job, pool: link.pool };
    this.#events.onJob(job, link.pool);
  }

  #onMove(link: Link, wish: Reconnect): void {
    const to = followReconnect(link.endpoint, wish);
    const pool = showEndpoint(link.endpoint);
    if ('code' in to) {
      this.#dependencies.note('warn', 'reconnect refused', { pool, reason: to.message, code: to.code });
      return;
    }
    // Only once: repeated messages do not move the miner again.
    if (link.move !== undefined) return;
    const now = this.#dependencies.now();
    const wait = this.#order.moves(link.pool, now, this.#dependencies.random(), wish.waitMillis);
    link.move = { at: now + wait, to };
    this.#dependencies.note('info', 'the server asks to reconnect', {
      pool,
      to: showEndpoint(to),
      waitMillis: Math.round(wait),
    });
  }

  #followMove(now: number): void {
    const link = this.#active;
    if (link?.move === undefined || now < link.move.at) return;
    this.#moved.set(link.pool, link.move.to);
    this.#remember(link, now);
    this.#drop(link);
    this.#active = this.#open(link.pool, now);
  }

  #onEnd(link: Link, why: Refusal, retryAfterMillis: number): void {
    const now = this.#dependencies.now();
    if (this.#draining.includes(link)) {
      this.#endDrain(link, now);
      return;
    }
    this.#remember(link, now);
    this.#drop(link);
    if (link !== this.#active && link !== this.#probe) return;
    const probing = link === this.#probe;
    if (probing) this.#probe = undefined;
    else this.#active = undefined;
    this.#lastRefusal = why;
    // A server reached by a reconnect request that fails is abandoned; the configured one is tried next.
    this.#moved.delete(link.pool);
    const wait = link.move === undefined ? retryAfterMillis : Math.max(retryAfterMillis, link.move.at - now);
    if (link.move !== undefined) this.#moved.set(link.pool, link.move.to);
    this.#order.failed(link.pool, now, this.#dependencies.random(), wait);
    if (isWorthless(why)) this.#order.avoid(link.pool, now);
    const first = this.#order.failures(link.pool) === 1;
    const fields = { pool: showEndpoint(link.endpoint), reason: why.message, code: why.code };
    if (isDistrust(why)) this.#dependencies.note('error', 'pool refused', fields);
    else this.#dependencies.note(probing && !first ? 'debug' : 'warn', 'pool lost', fields);
    // Whoever asks for a reconnect and closes is on its way out; a login that fails like this finds it gone.
    const isOver = link.subscribed === undefined ? isRestart(why) : link.move !== undefined;
    if (!probing && (isDistrust(why) || isOver)) this.#giveUpJobOf(link.pool);
  }

  #remember(link: Link, now: number): void {
    const memory = link.session.memory(now);
    if (memory !== undefined) this.#memories.set(link.pool, memory);
  }

  #drop(link: Link): void {
    link.session.left();
    link.gone = true;
    link.transport?.close();
  }

  #endDrains(now: number): void {
    for (const link of [...this.#draining]) if (now >= link.drainUntil) this.#endDrain(link, now);
  }

  /** Its session is not resumed: what was not answered is lost. */
  #endDrain(link: Link, now: number): void {
    this.#draining = this.#draining.filter((other) => other !== link);
    this.#drop(link);
    for (const share of link.session.memory(now)?.unanswered ?? [])
      this.#events.onVerdict(share, 'lost', undefined, undefined);
  }

  /** A job outlives its connection by its grace. Shares are kept as long as the session could be resumed. */
  #forgetJob(now: number): void {
    for (const [pool, memory] of this.#memories) {
      if (now - memory.brokenAt >= this.#times.graceMillis) this.#giveUpJobOf(pool);
      if (now - memory.brokenAt < this.#times.resumeMillis) continue;
      this.#memories.delete(pool);
      for (const share of memory.unanswered) this.#events.onVerdict(share, 'lost', undefined, undefined);
    }
  }

  #giveUpJobOf(pool: number): void {
    if (this.#job?.pool !== pool) return;
    this.#job = undefined;
    this.#events.onJob(undefined, undefined);
  }
}

/** The clock, chance and timers of the system, for callers that bring none of their own. */
export const systemClock = {
  now: monotonicMillis,
  random: Math.random,
  every: (millis: number, act: () => void): (() => void) => {
    const timer = setInterval(act, millis);
    return () => clearInterval(timer);
  },
};
