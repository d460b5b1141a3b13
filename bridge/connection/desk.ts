/**
 * A listener thread without its sockets: the conversations, the templates they mine on, fan-out, share checks, and the
 * calls to the main thread, gathered per turn of the event loop. One timer serves all connections.
 */
import type { Verifier } from '../../kernels/verifier.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { Network } from '../../protocol/network.ts';
import type { RefusalCode } from '../../protocol/stratum/errors.ts';
import { clientKey } from '../../runtime/client-address.ts';
import { clientFaults } from '../../runtime/client-fault.ts';
import { type Bucket, fullBucket, take } from '../../runtime/token-bucket.ts';
import { ServedTemplate } from '../nodes/served-template.ts';
import type { StratumLimits } from '../options.ts';
import type { StratumService } from '../service.ts';
import type { Fault } from '../session/ban-score.ts';
import { ConnectionCounter } from '../session/extranonce.ts';
import { TemplateShelf } from '../session/job-book.ts';
import type { Session } from '../session/session.ts';
import type { ConnectionNumbers, PendingShare } from '../session/session-desk.ts';
import type { SessionRecord } from '../session/session-record.ts';
import type { AnswerId } from '../session/voice.ts';
import { type ReceiptDelivery, ReceiptFanOut } from '../shares/receipts.ts';
import { ShareCheck } from '../shares/share-check.ts';
import type { RefusedShare, WorkerEvent } from '../shares/sink.ts';
import type { Hub, ListenerFigures, Member, Publication } from '../threads/hub.ts';
import { type Conversation, type ConversationDesk, type Peer, V1Conversation, V2Conversation } from './conversation.ts';
import { FanOut } from './fan-out.ts';

export type DeskOptions = {
  readonly network: Network;
  readonly server: string;
  readonly limits: StratumLimits;
  readonly thread: number;
  readonly bootId: Bytes;
  /** Shared by all threads of a server (extranonce.ts). */
  readonly connectionNumbers: SharedArrayBuffer;
};

export type DeskDependencies = {
  readonly hub: Hub;
  readonly verifier: Pick<Verifier, 'hashMany'>;
  /** Milliseconds since 1970, never going back (runtime/clock.ts). */
  readonly now: () => number;
  /** After what this turn of the event loop still has to read. */
  readonly soon: (run: () => void) => void;
  readonly randomBytes: (count: number) => Bytes;
  readonly log: (
    level: 'error' | 'warn' | 'info' | 'debug',
    message: string,
    fields: Readonly<Record<string, unknown>>,
  ) => void;
};

/** The one timer: acknowledgements of v2 go out at each tick, every connection is looked at once in SWEEP_TICKS. */
export const TICK_MILLIS = 50;
const SWEEP_TICKS = 20;
/** Old jobs are forgotten by each session once in so many sweeps. */
const FORGET_SWEEPS = 30;
/** A peer that was told goodbye and does not close is cut off. */
const GOODBYE_MILLIS = 3_000;
const EXPORT_WAIT_MILLIS = 2_000;

type Counts = Record<string, number>;
const bump = (counts: Counts, key: string): void => {
  counts[key] = (counts[key] ?? 0) + 1;
};
const ofDraw = (templates: readonly ServedTemplate[], draw: number): ServedTemplate | undefined =>
  templates[draw % Math.max(1, templates.length)];
const conversationOf = (session: Session): Conversation => session.voice as Conversation;

export class Desk implements ConversationDesk {
  readonly network: Network;
  readonly server: string;
  readonly limits: StratumLimits;
  readonly shelf: TemplateShelf<ServedTemplate>;
  readonly thread: number;
  readonly bootId: Bytes;
  ready = false;
  headHeight = 0;
  readonly #dependencies: DeskDependencies;
  readonly #conversations = new Set<Conversation>();
  /** Sessions that mine or were resumed, or ended with submits still being verified. */
  readonly #bySession = new Map<string, Conversation>();
  readonly #retiring = new Set<Conversation>();
  /** Sessions that were given away before all their submits were verified. */
  readonly #leaving = new Set<Session>();
  readonly #counter: ConnectionCounter;
  readonly #check: ShareCheck;
  readonly #fanOut: FanOut;
  readonly #receipts: ReceiptFanOut<Conversation>;
  #newest: ServedTemplate[] = [];
  #before: ServedTemplate[] = [];
  #touched: Conversation[] = [];
  #acknowledging = new Set<V2Conversation>();
  #owning: Session[] = [];
  #refused: RefusedShare[] = [];
  #events: WorkerEvent[] = [];
  #overall: Bucket;
  #sweep: Iterator<Conversation> | null = null;
  #sweeps = 0;
  #draining = false;
  #opened = 0;
  readonly #closed: Counts = {};
  readonly #answers: Counts = {};
  readonly bans = new Map<string, number>();

  constructor(options: DeskOptions, dependencies: DeskDependencies) {
    this.network = options.network;
    this.server = options.server;
    this.limits = options.limits;
    this.thread = options.thread;
    this.bootId = options.bootId;
    this.#dependencies = dependencies;
    this.shelf = new TemplateShelf(options.limits.jobs);
    this.#counter = new ConnectionCounter(options.bootId, options.thread, options.connectionNumbers);
    const { hub, verifier, soon, log } = dependencies;
    this.#overall = fullBucket(options.limits.submitsOverall, dependencies.now());
    this.#check = new ShareCheck({
      verifier,
      hub,
      soon,
      onSpoken: () => this.#flushTouched(),
      onFault: (error) => log('warn', 'shares could not be judged', { error }),
      onDefect: (session, error) => this.#defect(conversationOf(session), error),
    });
    const fanning = {
      soon,
      now: () => performance.now(),
      onDefect: (conversation: Conversation, error: unknown) => this.#defect(conversation, error),
    };
    this.#fanOut = new FanOut(this.#conversations, fanning);
    this.#receipts = new ReceiptFanOut(fanning);
  }

  now(): number {
    return this.#dependencies.now();
  }

  // --- connections ----------------------------------------------------------------------------------------------------

  open(service: StratumService, form: 'v1' | 'v2', peer: Peer, address: string): Conversation {
    const Form = form === 'v1' ? V1Conversation : V2Conversation;
    const conversation = new Form(service, this, peer, address);
    this.#conversations.add(conversation);
    this.#opened++;
    const left = this.banLeft(address);
    if (left > 0) conversation.session.ban(left);
    return conversation;
  }

  /** The peer is gone. Its session can be resumed for a while. */
  gone(conversation: Conversation, reason: string): void {
    if (!this.#conversations.delete(conversation)) return;
    if (!conversation.isEnding) bump(this.#closed, reason);
    conversation.isEnding = true;
    const { session } = conversation;
    this.#fanOut.forget(conversation);
    this.#receipts.forget(conversation);
    if (conversation instanceof V2Conversation) this.#acknowledging.delete(conversation);
    if (!this.#bySession.has(session.id)) return;
    if (session.isMining) this.#tellWorker(session, 'left');
    if (session.pending > 0) this.#retiring.add(conversation);
    else this.#handOver(session);
  }

  #handOver(session: Session): void {
    if (!this.#bySession.delete(session.id)) return;
    const record = session.record();
    this.#dependencies.hub.left([session.member as Member]);
    if (record !== null && this.limits.resumeMillis > 0) this.#dependencies.hub.ended(record);
  }

  get log(): DeskDependencies['log'] {
    return this.#dependencies.log;
  }

  banLeft(address: string): number {
    const until = this.bans.size === 0 ? undefined : this.bans.get(clientKey(address));
    return until === undefined ? 0 : Math.max(0, Math.ceil(until - this.now()));
  }

  ban(key: string, untilMillis: number): void {
    this.bans.set(key, untilMillis);
    for (const conversation of this.#conversations)
      if (!conversation.session.isMining && clientKey(conversation.address) === key) {
        conversation.session.ban(Math.max(0, Math.ceil(untilMillis - this.now())));
        conversation.flush();
      }
  }

  receipts(delivery: ReceiptDelivery): void {
    this.#receipts.deliver(delivery);
  }

  // --- what sessions ask for -------------------------------------------------------------------------------------------

  newest(draw: number): ServedTemplate | undefined {
    return ofDraw(this.#newest, draw);
  }

  before(draw: number): ServedTemplate | undefined {
    return ofDraw(this.#before, draw);
  }

  wantsReceipts(session: Session): void {
    this.#receipts.ask(conversationOf(session));
  }

  newNumbers(mark = 0): ConnectionNumbers {
    const owner = this.#counter.next(mark);
    const view = new DataView(owner.buffer, owner.byteOffset + owner.length - 4);
    const number = view.getUint32(0, true);
    return { owner, prefix: number & 0xffff, handle: number };
  }

  /** The first byte names the thread, so that the main thread knows whom to ask for a session; the rest is random. */
  newSessionId(): string {
    const bytes = this.#dependencies.randomBytes(16).slice();
    bytes[0] = this.thread;
    return toHex(bytes);
  }

  resume(session: Session, id: string): void {
    void this.#dependencies.hub
      .resume(id, this.thread)
      .catch(() => null)
      .then((record) => {
        const conversation = conversationOf(session);
        if (conversation.isEnding) {
          if (record !== null) this.#dependencies.hub.ended(record);
          return;
        }
        this.#over(conversation, () => {
          session.resumed(record);
          // From here on it can be lost or taken like one that mines, though it still has to authorize.
          if (session.isResumed) this.#bySession.set(session.id, conversation);
          conversation.proceed();
        });
      });
  }

  own(session: Session): void {
    this.#owning.push(session);
    if (this.#owning.length === 1) this.#dependencies.soon(() => void this.#ownAll());
  }

  async #ownAll(): Promise<void> {
    const sessions = this.#owning;
    this.#owning = [];
    let isOwned = true;
    try {
      await this.#dependencies.hub.own(sessions.map((session) => session.member as Member));
    } catch (error) {
      isOwned = false;
      this.#dependencies.log('warn', 'logins are put off: the sink cannot keep what they find', { error });
    }
    for (const session of sessions) {
      const conversation = conversationOf(session);
      if (conversation.isEnding) {
        if (session.member !== null) this.#dependencies.hub.left([session.member]);
        continue;
      }
      this.#over(conversation, () => {
        if (isOwned) session.owned();
        else session.notOwned();
        conversation.proceed();
      });
    }
  }

  joined(session: Session): void {
    this.#bySession.set(session.id, conversationOf(session));
    if (session.isResumed) this.#dependencies.hub.rejoin(session.member as Member);
    this.#tellWorker(session, 'joined');
  }

  check(share: PendingShare<Session>): void {
    this.#check.add(share);
  }

  admits(): boolean {
    const bucket = take(this.#overall, this.limits.submitsOverall, this.now());
    if (bucket === undefined) return false;
    this.#overall = bucket;
    return true;
  }

  faultOfAddress(session: Session, fault: Fault): void {
    this.#dependencies.hub.fault(conversationOf(session).address, fault);
  }

  balance(session: Session, id: AnswerId): void {
    const { account } = session.member as Member;
    void this.#dependencies.hub
      .balance(session.service.name, account)
      .catch(() => null)
      .then((balance) =>
        this.#over(conversationOf(session), () => {
          session.balanced(id, balance);
          conversationOf(session).proceed();
        }),
      );
  }

  refusedShare(session: Session, code: RefusalCode): void {
    bump(this.#answers, String(code));
    const { service, account, worker } = session.member as Member;
    this.#refused.push({ service, account, worker, code, atMillis: Math.floor(this.now()) });
  }

  touched(conversation: Conversation): void {
    this.#touched.push(conversation);
  }

  acknowledgeSoon(conversation: Conversation): void {
    this.#acknowledging.add(conversation as V2Conversation);
  }

  ended(conversation: Conversation, reason: string): void {
    bump(this.#closed, reason);
    conversation.flush();
    conversation.peer.end();
    conversation.stalledSinceMillis = this.now();
  }

  #flushTouched(): void {
    const touched = this.#touched;
    this.#touched = [];
    for (const conversation of touched)
      if (conversation.isTouched) this.#over(conversation, () => conversation.flush());
  }

  #tellWorker(session: Session, kind: 'joined' | 'left'): void {
    const { service, account, worker, agent, handle } = session.member as Member;
    const connection = `${this.thread}-${handle}`;
    this.#events.push({ kind, service, account, worker, agent, connection, atMillis: Math.floor(this.now()) });
  }

  /** What only figures are made of goes to the main thread at each tick: a message for each was a tenth of a login. */
  #tell(): void {
    const [refused, events] = [this.#refused, this.#events];
    this.#refused = [];
    this.#events = [];
    if (refused.length > 0) this.#dependencies.hub.refused(refused);
    if (events.length > 0) this.#dependencies.hub.worker(events);
  }

  // --- what the main thread says -----------------------------------------------------------------------------------------

  publish({ templates, headHeight, clean }: Publication): void {
    this.headHeight = headHeight;
    if (clean) this.shelf.clear();
    const served = templates.map((template) => new ServedTemplate(template));
    if (served.length === 0) return;
    this.shelf.add(new Map(served.map((template) => [template.serial, template])), this.now());
    this.#before = this.#newest;
    this.#newest = served;
    this.#fanOut.start(clean);
  }

  /** Closes the session's connection and gives its state away. */
  async takeSession(id: string): Promise<SessionRecord | null> {
    const conversation = this.#bySession.get(id);
    if (conversation === undefined) return null;
    const { session } = conversation;
    // Nobody else may have it from here on: neither a second resume nor the shelf of ended sessions.
    this.#bySession.delete(id);
    this.#retiring.delete(conversation);
    if (this.#conversations.has(conversation)) {
      conversation.end('resumed by another connection');
      conversation.peer.destroy();
      this.gone(conversation, 'resumed');
      if (session.isMining) this.#tellWorker(session, 'left');
    }
    const until = this.now() + EXPORT_WAIT_MILLIS;
    while (session.pending > 0 && this.now() < until) await new Promise((resolve) => setTimeout(resolve, 5));
    // A share of a member that left is refused with all that came beside it.
    if (session.pending > 0) this.#leaving.add(session);
    else this.#dependencies.hub.left([session.member as Member]);
    return session.record();
  }

  async drain(): Promise<void> {
    this.#draining = true;
    for (const { session, conversation } of [...this.#conversations].map((each) => ({
      session: each.session,
      conversation: each,
    }))) {
      const [low = 0, high = 0] = this.#dependencies.randomBytes(2);
      // Not all at once: the next server must greet them.
      session.drain(1_000 + (((high << 8) | low) % 4_000));
      conversation.flush();
    }
    const until = performance.now() + this.limits.drainMillis;
    while (this.#conversations.size > 0 && performance.now() < until)
      await new Promise((resolve) => setTimeout(resolve, 20));
    for (const conversation of this.#conversations) conversation.isEnding = true;
    await this.#check.idle();
    for (const conversation of this.#conversations) {
      if (conversation instanceof V2Conversation) conversation.acknowledge();
      conversation.flush();
      conversation.peer.end();
    }
    this.#tell();
  }

  close(): void {
    for (const conversation of this.#conversations) conversation.peer.destroy();
  }

  // --- the timer ---------------------------------------------------------------------------------------------------------

  tick(): void {
    const now = this.now();
    this.#tell();
    // Also where no share comes by: what is listed here would outlive its connection.
    this.#flushTouched();
    for (const conversation of this.#acknowledging)
      this.#over(conversation, () => {
        conversation.acknowledge();
        conversation.flush();
      });
    this.#acknowledging.clear();
    for (const conversation of this.#retiring)
      if (conversation.session.pending === 0) {
        this.#retiring.delete(conversation);
        this.#handOver(conversation.session);
      }
    for (const session of this.#leaving)
      if (session.pending === 0) {
        this.#leaving.delete(session);
        this.#dependencies.hub.left([session.member as Member]);
      }
    this.#fanOut.pay();
    const part = Math.ceil(this.#conversations.size / SWEEP_TICKS);
    for (let i = 0; i < part; i++) {
      this.#sweep ??= this.#conversations.values();
      const next = this.#sweep.next();
      if (next.done === true) {
        this.#sweep = null;
        this.#sweeps++;
        break;
      }
      const conversation = next.value;
      this.#over(conversation, () => this.#look(conversation, now));
    }
    if (this.bans.size > 0) for (const [key, until] of this.bans) if (until <= now) this.bans.delete(key);
  }

  #look(conversation: Conversation, now: number): void {
    const { session, peer } = conversation;
    if (peer.queued === 0)
      conversation.stalledSinceMillis = conversation.isEnding ? conversation.stalledSinceMillis : 0;
    else conversation.stalledSinceMillis ||= now;
    const stalled = conversation.stalledSinceMillis > 0 ? now - conversation.stalledSinceMillis : 0;
    if (conversation.isEnding) {
      if (stalled > GOODBYE_MILLIS || stalled < 0) this.#cutOff(conversation, 'did not close');
    } else if (peer.queued > this.limits.queueBytes || stalled > this.limits.stallMillis)
      this.#cutOff(conversation, 'does not read');
    else if (!session.isMining) {
      if (now - conversation.sinceMillis > this.limits.loginMillis) {
        // Where it waited for us, or was told to ask again, it is not to blame.
        if (!session.isPutOff) session.fault('login_timeout');
        conversation.end('did not log in');
      }
    } else if (now - session.lastActiveMillis > this.limits.idleMillis) conversation.end('silent for too long');
    else {
      if (!this.#draining) session.retarget(now);
      if (this.#sweeps % FORGET_SWEEPS === 0) session.forget(this.shelf.oldest);
      conversation.flush();
    }
  }

  #cutOff(conversation: Conversation, reason: string): void {
    conversation.peer.destroy();
    this.gone(conversation, reason);
  }

  /** Whatever is done for one connection outside of its own messages: what goes wrong ends it, and nobody else. */
  #over(conversation: Conversation, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#defect(conversation, error);
    }
  }

  #defect(conversation: Conversation, error: unknown): void {
    conversation.isEnding = true;
    conversation.peer.destroy();
    clientFaults.report('stratum', error, {
      error: (message, fields = {}) => this.#dependencies.log('error', message, fields),
    });
  }

  figures(): Omit<ListenerFigures, 'byTransport' | 'refusedConnections'> {
    let mining = 0;
    const byService: Counts = {};
    for (const { session } of this.#conversations)
      if (session.isMining) {
        mining++;
        bump(byService, session.service.name);
      }
    return {
      thread: this.thread,
      connections: this.#conversations.size,
      mining,
      byService,
      opened: this.#opened,
      closed: { ...this.#closed },
      jobsSent: this.#fanOut.sent,
      jobsSkipped: this.#fanOut.skipped,
      fanOutMillis: this.#fanOut.lastMillis,
      verifying: this.#check.open,
      answers: { ...this.#answers },
    };
  }
}
