/**
 * A listener thread without its sockets: the conversations, the templates they mine on, fan-out, share checks, and the
 * calls to the main thread, batched per turn of the event loop. One timer serves all connections.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Network } from '../../protocol/network.ts';
import type { RefusalCode } from '../../protocol/stratum/errors.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import { addressList, clientKey } from '../../runtime/clients/client-address.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import { Excess } from '../../runtime/clients/excess.ts';
import { FairShare } from '../../runtime/clients/fair-share.ts';
import { monotonicMillis, type SteadyMillis } from '../../runtime/clock/clock.ts';
import { FarmPlaces } from '../farms/farm-places.ts';
import { isSamePart, MOST_PARTS, type TemplatePart } from '../nodes/origin-job.ts';
import { ServedTemplate } from '../nodes/served-template.ts';
import type { StratumLimits } from '../options.ts';
import type { StratumService } from '../service.ts';
import { exemption, type Fault } from '../session/ban-score.ts';
import { ConnectionCounter, numbersOf, stepsOf } from '../session/extranonce.ts';
import { TemplateShelf } from '../session/job-book.ts';
import { KnownAddresses } from '../session/known-addresses.ts';
import { type Banned, coverOf, isNetworkKey, operatorKey } from '../session/operator-ban.ts';
import type { PendingShare } from '../session/pending-share.ts';
import type { Session } from '../session/session.ts';
import { newSessionId } from '../session/session-id.ts';
import type { SessionRecord } from '../session/session-record.ts';
import type { ConnectionNumbers, SessionDesk } from '../session/surroundings.ts';
import { type ReceiptDelivery, ReceiptFanOut } from '../shares/receipts.ts';
import { ShareCheck } from '../shares/share-check.ts';
import type {
  Balance,
  ConnectionList,
  ConnectionRow,
  ConnectionSearch,
  ListenerFigures,
  Member,
  Publication,
} from '../threads/hub.ts';
import { ConnectionCount } from './connection-count.ts';
import type { Conversation, ConversationDesk, Peer } from './conversation.ts';
import type { DeskDependencies, DeskOptions } from './desk-options.ts';
import { FanOut } from './fan-out.ts';
import { HeldSessions } from './held-sessions.ts';
import { givesWay, lapseOf } from './lapse.ts';
import { Logins } from './logins.ts';
import { bump, Reports } from './reports.ts';
import { V1Conversation } from './v1-conversation.ts';
import { V2Conversation } from './v2-conversation.ts';

/** The one timer: acknowledgements of v2 go out at each tick, every connection is checked once in SWEEP_TICKS. */
export const TICK_MILLIS = 50;
const SWEEP_TICKS = 20;
/** Sessions are noted again once in this many sweeps: what the log holds of before may be deleted after that (session-log.ts). */
const KEEP_SWEEPS = 60;
/** Connections looked at for one that gives its place to a new one. */
const LOOKED_AT = 64;
/** Sessions drop their old jobs once in this many sweeps. */
const FORGET_SWEEPS = 30;
const ofDraw = (templates: readonly ServedTemplate[], draw: number): ServedTemplate | undefined =>
  templates[draw % Math.max(1, templates.length)];

export class Desk implements ConversationDesk {
  readonly network: Network;
  readonly server: string;
  readonly limits: StratumLimits;
  readonly shelf: TemplateShelf<ServedTemplate>;
  readonly thread: number;
  readonly bootId: Bytes;
  readonly asksSink: boolean;
  readonly counts: ConnectionCount;
  readonly isExempt: (address: string) => boolean;
  readonly readAddress: SessionDesk['readAddress'];
  ready = false;
  headHeight = 0;
  readonly verifications: FairShare;
  readonly #dependencies: DeskDependencies;
  readonly #conversations = new Set<Conversation>();
  /** Those that are not logged in, by client: only these are ended by a ban by score. */
  readonly #newcomers = new Map<string, Set<Conversation>>();
  readonly #sessions: HeldSessions;
  readonly #logins: Logins;
  readonly #reports: Reports;
  readonly #counter: ConnectionCounter;
  readonly #check: ShareCheck;
  readonly #fanOut: FanOut;
  readonly #receipts: ReceiptFanOut<Conversation>;
  #newest: ServedTemplate[] = [];
  #before: ServedTemplate[] = [];
  /** Where accounts have templates of their own: the draws of these. */
  readonly #parts = new Map<string, number>();
  #touched: Conversation[] = [];
  readonly #keepsSessions: boolean;
  #notes: Bytes[] = [];
  #acknowledging = new Set<V2Conversation>();
  readonly #excess = new Excess<Conversation>();
  readonly #farms = new FarmPlaces<Conversation>();
  #sweep: Iterator<Conversation> | null = null;
  #sweeps = 0;
  #placeSearch: Iterator<Conversation> | null = null;
  #opened = 0;
  readonly bans: BoundedMap<string, number>;
  readonly #operatorBans = new Map<
    string,
    { readonly untilMillis: number; readonly covers: (client: Banned) => boolean }
  >();
  /** Whether any network of them has the address; undefined until it is needed again. One list is much quicker than each by itself. */
  #isInBanned: ((address: string) => boolean) | undefined;

  constructor(options: DeskOptions, dependencies: DeskDependencies) {
    this.network = options.network;
    this.server = options.server;
    this.limits = options.limits;
    this.thread = options.thread;
    this.bootId = options.bootId;
    this.asksSink = options.asksSink;
    this.#keepsSessions = options.keepsSessions;
    this.bans = new BoundedMap(options.limits.bans.capacity);
    this.counts = new ConnectionCount(options.counts, options.ownCounts);
    this.isExempt = exemption(options.allow);
    this.readAddress = new KnownAddresses(options.network.name).read;
    this.#dependencies = dependencies;
    this.shelf = new TemplateShelf(options.limits.jobs);
    this.#counter = new ConnectionCounter(options.bootId, options.thread, options.connectionNumbers);
    const { hub, members, verifier, now, soon, log } = dependencies;
    this.#sessions = new HeldSessions({ hub, members, now, areKept: options.limits.resumeMillis > 0 });
    this.#logins = new Logins(options.thread, {
      hub,
      sessions: this.#sessions,
      soon,
      log,
      over: (conversation, run) => this.#over(conversation, run),
    });
    this.#reports = new Reports(hub, options.thread);
    this.verifications = new FairShare(options.limits.submitsOverall, dependencies.now());
    this.#check = new ShareCheck({
      verifier,
      hub,
      soon,
      onSpoken: () => this.#flushTouched(),
      onFault: (error) => log('warn', 'shares could not be judged', { error }),
    });
    const fanning = {
      soon,
      now: monotonicMillis,
      onDefect: (conversation: Conversation, error: unknown) => this.defect(conversation, error),
    };
    this.#fanOut = new FanOut(this.#conversations, fanning);
    this.#receipts = new ReceiptFanOut(fanning);
  }

  now(): SteadyMillis {
    return this.#dependencies.now();
  }

  // --- connections ----------------------------------------------------------------------------------------------------

  open(service: StratumService, form: 'v1' | 'v2', peer: Peer, address: string): Conversation {
    const Form = form === 'v1' ? V1Conversation : V2Conversation;
    const conversation = new Form(service, this, peer, address);
    this.#conversations.add(conversation);
    const { client } = conversation;
    this.#newcomers.set(client, (this.#newcomers.get(client) ?? new Set()).add(conversation));
    this.#opened++;
    const left = this.banLeft(address);
    if (left > 0) conversation.session.ban(left);
    return conversation;
  }

  /** The peer is gone. Its session can be resumed for a while. */
  gone(conversation: Conversation, reason: string): void {
    if (!this.#conversations.delete(conversation)) return;
    if (!conversation.isEnding) this.#reports.ended(reason);
    conversation.isEnding = true;
    const { session } = conversation;
    this.#isKnown(conversation);
    this.#fanOut.forget(conversation);
    this.#receipts.forget(conversation);
    this.#excess.forget(conversation);
    this.#farms.release(conversation);
    session.leave();
    if (conversation.isWorking) this.counts.addWorking(conversation.client, -1);
    if (conversation instanceof V2Conversation) this.#acknowledging.delete(conversation);
    if (!this.#sessions.has(session)) return;
    this.#tellLeft(session);
    this.#sessions.retire(conversation);
  }

  /** It has logged in, or is gone. */
  #isKnown(conversation: Conversation): void {
    const others = this.#newcomers.get(conversation.client);
    if (others?.delete(conversation) === true && others.size === 0) this.#newcomers.delete(conversation.client);
  }

  get log(): DeskDependencies['log'] {
    return this.#dependencies.log;
  }

  /** The ban of an address does not hold while a session of it works, here or on another thread: it may be a NAT. */
  banLeft(address: string): number {
    const key = clientKey(address);
    const until = this.bans.size === 0 ? undefined : this.bans.get(key);
    const left = until === undefined || this.counts.works(key) ? 0 : Math.max(0, Math.ceil(until - this.now()));
    return Math.max(left, this.operatorBanLeft(address, null));
  }

  operatorBanLeft(address: string, account: Bytes | null): number {
    this.#isInBanned ??= addressList([...this.#operatorBans.keys()].filter(isNetworkKey));
    const isIn = this.#isInBanned(address);
    let left = 0;
    for (const [key, { covers, untilMillis }] of this.#operatorBans)
      if ((isIn || !isNetworkKey(key)) && covers({ address, account }))
        left = Math.max(left, Math.ceil(untilMillis - this.now()));
    return left;
  }

  /** A time that is over lifts the ban. */
  ban(key: string, untilMillis: number): void {
    this.bans.delete(key);
    if (this.#operatorBans.delete(key)) this.#isInBanned = undefined;
    const left = Math.ceil(untilMillis - this.now());
    if (left <= 0) return;
    const covers = coverOf(key);
    if (covers === undefined) this.bans.set(key, untilMillis);
    else {
      this.#operatorBans.set(key, { untilMillis, covers });
      this.#isInBanned = undefined;
    }
    if (covers === undefined && this.counts.works(key)) return;
    let closed = 0;
    // Many rigs share an address: one by score spares those that mine. Strangers earn bans faster than all connections could be looked at.
    for (const conversation of covers === undefined ? (this.#newcomers.get(key) ?? []) : this.#conversations) {
      const { session, address, isEnding } = conversation;
      if (isEnding || covers?.({ address, account: session.member?.account ?? null }) === false) continue;
      session.ban(left);
      conversation.flush();
      closed++;
    }
    if (covers !== undefined && closed > 0)
      this.log('info', 'connections closed by a ban of the operator', { key, closed });
  }

  /** All places are taken, and a client comes: ends a connection that nobody works on. Returns false where none was found. */
  makeRoom(client: string): boolean {
    const others = this.counts.of(client);
    const ofAddress = (key: string): number => this.counts.of(key);
    for (let looked = 0; looked < LOOKED_AT; looked++) {
      this.#placeSearch ??= this.#conversations.values();
      const next = this.#placeSearch.next();
      if (next.done === true) {
        this.#placeSearch = null;
        continue;
      }
      const conversation = next.value;
      if (!givesWay(conversation, others, ofAddress, this.now())) continue;
      this.#cutOff(conversation, 'gave its place to another');
      return true;
    }
    return false;
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

  /** All of one turn of the event loop go in one message. */
  note(entry: () => Bytes | null): void {
    if (!this.#keepsSessions) return;
    const bytes = entry();
    if (bytes === null) return;
    if (this.#notes.push(bytes) === 1) this.#dependencies.soon(() => this.#sendNotes());
  }

  #sendNotes(): void {
    const notes = this.#notes;
    this.#notes = [];
    // Copied: a small one would take its whole pool of memory along to another thread.
    if (notes.length > 0) this.#dependencies.hub.keep(new Uint8Array(Buffer.concat(notes)));
  }

  wantsReceipts(conversation: Conversation): void {
    this.#receipts.ask(conversation);
  }

  get toldCuts(): number {
    return this.#counter.toldCuts;
  }

  newNumbers(mark = 0): ConnectionNumbers {
    return numbersOf(this.#counter.next(mark));
  }

  partOf(account: string): number {
    return this.#parts.get(account) ?? -1;
  }

  takeGeneration(first: number, part: number): number | undefined {
    return this.#counter.generation(first, part);
  }

  drawSteps(): number {
    return stepsOf(this.#dependencies.randomBytes(2));
  }

  takePrefix(): number {
    return this.#counter.takePrefix();
  }

  freePrefix(prefix: number): void {
    this.#counter.freePrefix(prefix);
  }

  newSessionId(): string {
    return newSessionId(this.thread, this.#dependencies.randomBytes);
  }

  resume(conversation: Conversation, id: string): void {
    this.#logins.resume(conversation, id);
  }

  own(conversation: Conversation, member: Member): void {
    this.#logins.own(conversation, member);
  }

  joined(conversation: Conversation, member: Member): void {
    this.#isKnown(conversation);
    this.#sessions.hold(conversation);
    this.#reports.worker('joined', member, this.now());
  }

  check(share: PendingShare): void {
    this.#check.add(share);
  }

  exceeds(conversation: Conversation): void {
    if (!conversation.isEnding) this.#excess.add(conversation, this.now());
  }

  faultOfAddress(conversation: Conversation, fault: Fault): void {
    if (!this.counts.works(conversation.client)) this.#dependencies.hub.fault(conversation.address, fault);
  }

  works(conversation: Conversation): void {
    if (!this.#conversations.has(conversation)) return;
    conversation.isWorking = true;
    this.counts.addWorking(conversation.client, 1);
  }

  balance(conversation: Conversation, { service, account }: Member, tell: (balance: Balance | null) => void): void {
    void this.#dependencies.hub
      .balance(service, account)
      .catch(() => null)
      .then((balance) =>
        this.#over(conversation, () => {
          tell(balance);
          conversation.proceed();
        }),
      );
  }

  admitRigs(conversation: Conversation, asked: number): number {
    if (!this.#conversations.has(conversation)) return 0;
    const { rigs, idle } = this.#farms.take(conversation, conversation.client, asked, this.now());
    for (const other of idle) this.#over(other, () => other.end('its farm found nothing, and others need its places'));
    return rigs;
  }

  farmWorked(conversation: Conversation): void {
    this.#farms.worked(conversation, this.now());
  }

  rigJoined(conversation: Conversation, member: Member): void {
    if (this.#conversations.has(conversation)) this.#reports.worker('joined', member, this.now());
  }

  rigsLeft(members: readonly Member[]): void {
    for (const member of members) this.#reports.worker('left', member, this.now());
    this.#dependencies.members?.left(members);
  }

  refusedShare(member: Pick<Member, 'service' | 'account' | 'worker'>, code: RefusalCode, isOfWorker: boolean): void {
    this.#reports.refused(member, { code, isOfWorker }, this.now());
  }

  touched(conversation: Conversation): void {
    this.#touched.push(conversation);
  }

  acknowledgeSoon(conversation: Conversation): void {
    this.#acknowledging.add(conversation as V2Conversation);
  }

  ended(conversation: Conversation, reason: string): void {
    this.#reports.ended(reason);
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

  #tellLeft({ mining }: Session): void {
    for (const member of mining?.present ?? []) this.#reports.worker('left', member, this.now());
  }

  // --- what the main thread says -----------------------------------------------------------------------------------------

  publish({ templates, headHeight, clean, part, earlier = [] }: Publication): void {
    this.headHeight = headHeight;
    if (clean) this.shelf.clear((template) => isSamePart(template, part));
    for (const each of earlier)
      this.shelf.add(
        new Map(each.templates.map((template) => [template.serial, new ServedTemplate(template)])),
        Math.min(each.atMillis, this.now()),
      );
    const served = templates.map((template) => new ServedTemplate(template));
    if (part !== undefined) this.#setPart(part, served[0]);
    if (served.length === 0) return;
    this.shelf.add(new Map(served.map((template) => [template.serial, template])), this.now(), (older) =>
      isSamePart(older, part),
    );
    if (part === undefined) {
      this.#before = this.#newest;
      this.#newest = served;
    }
    this.#fanOut.start(clean);
  }

  /** None: the account has no templates any more. */
  #setPart({ account, draw }: TemplatePart, template: ServedTemplate | undefined): void {
    const [newest, before] = [Array.from(this.#newest), Array.from(this.#before)];
    newest.length = before.length = MOST_PARTS;
    before[draw] = newest[draw] as ServedTemplate;
    newest[draw] = template as ServedTemplate;
    this.#newest = newest;
    this.#before = before;
    if (template === undefined) this.#parts.delete(account);
    else this.#parts.set(account, draw);
  }

  /** Closes the session's connection and returns its state. */
  async takeSession(id: string): Promise<SessionRecord | null> {
    const conversation = this.#sessions.take(id);
    if (conversation === undefined) return null;
    const { session } = conversation;
    if (this.#conversations.has(conversation)) {
      conversation.end('resumed by another connection');
      conversation.peer.destroy();
      this.gone(conversation, 'resumed');
      this.#tellLeft(session);
    }
    return await this.#sessions.giveAway(session);
  }

  /** All connections end, and may come back at once. */
  dismiss(reason: string): void {
    for (const conversation of [...this.#conversations]) this.#over(conversation, () => conversation.end(reason));
  }

  async drain(): Promise<void> {
    for (const conversation of [...this.#conversations]) {
      const [low = 0, high = 0] = this.#dependencies.randomBytes(2);
      // Spread over time, because all of them reconnect to the next server.
      conversation.session.drain(1_000 + (((high << 8) | low) % 4_000));
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
    this.#reports.send();
  }

  close(): void {
    for (const conversation of this.#conversations) conversation.peer.destroy();
  }

  // --- the timer ---------------------------------------------------------------------------------------------------------

  tick(): void {
    const now = this.now();
    this.#reports.send();
    // Also without verdicts: otherwise the list would retain closed connections.
    this.#flushTouched();
    for (const conversation of this.#acknowledging)
      this.#over(conversation, () => {
        conversation.acknowledge();
        conversation.flush();
      });
    this.#acknowledging.clear();
    this.#sessions.settle();
    this.#excess.settle(now);
    this.#fanOut.sendDelayed();
    this.#receipts.sendDelayed();
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
    // Nearly in the order of their ends; one that is over holds nobody up meanwhile.
    for (const [key, until] of this.bans)
      if (until <= now) this.bans.delete(key);
      else break;
    for (const [key, { untilMillis }] of this.#operatorBans) if (untilMillis <= now) this.ban(key, untilMillis);
  }

  #look(conversation: Conversation, now: number): void {
    const { session, peer } = conversation;
    if (peer.queued === 0)
      conversation.stalledSinceMillis = conversation.isEnding ? conversation.stalledSinceMillis : 0;
    else conversation.stalledSinceMillis ||= now;
    const isJobless = this.ready && session.mining !== null && this.newest(session.mining.draw) === undefined;
    conversation.joblessSinceMillis = isJobless ? conversation.joblessSinceMillis || now : 0;
    const lapse = lapseOf(conversation, now, this.limits);
    if (lapse.kind === 'cut off') this.#cutOff(conversation, lapse.reason);
    else if (lapse.kind === 'end') {
      // Not the miner's fault if it was waiting for the server or was asked to retry.
      if (lapse.isLoginTimeout && !session.isPutOff) session.fault('login_timeout');
      conversation.end(lapse.reason);
    } else if (session.mining !== null && !conversation.isEnding) {
      const { mining } = session;
      mining.retarget(now);
      if (this.#sweeps % FORGET_SWEEPS === 0) mining.forget(this.shelf.oldest);
      // Spread: all at once would be much for one second.
      if ((this.#sweeps + mining.member.handle) % KEEP_SWEEPS === 0) session.keep();
      conversation.flush();
    }
  }

  #cutOff(conversation: Conversation, reason: string): void {
    conversation.peer.destroy();
    this.gone(conversation, reason);
  }

  /** Runs work for one connection outside of its own messages: an error ends that connection only. */
  #over(conversation: Conversation, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.defect(conversation, error);
    }
  }

  defect(conversation: Conversation, error: unknown): void {
    conversation.isEnding = true;
    conversation.peer.destroy();
    clientFaults.report('stratum', error, {
      error: (message, fields = {}) => this.#dependencies.log('error', message, fields),
    });
  }

  connections({ text, most }: ConnectionSearch): ConnectionList {
    const key = operatorKey(text);
    const covers = key === undefined ? undefined : coverOf(key);
    const part = text.toLowerCase();
    const has = (one: string | undefined) => one?.toLowerCase().includes(part) === true;
    const found = [...this.#conversations].filter(({ address, session: { member } }) =>
      covers === undefined
        ? has(member?.worker) || has(member?.agent) || has(address)
        : covers({ address, account: member?.account ?? null }),
    );
    const rows = found
      .slice(-most)
      .reverse()
      .map(({ address, sinceMillis, session }): ConnectionRow => {
        const { member, service } = session;
        const tally = session.tally.state();
        return {
          address,
          service: service.name,
          miner: member === null ? null : { account: member.account, worker: member.worker, agent: member.agent },
          ageMillis: this.now() - sinceMillis,
          accepted: tally.accepted,
          stale: tally.stale,
          rejected: Object.values(tally.rejected).reduce((sum, count) => sum + count, 0),
        };
      });
    return { all: this.#conversations.size, found: found.length, rows };
  }

  figures(): Omit<ListenerFigures, 'byTransport' | 'refusedConnections'> {
    let [mining, farms, farmRigs] = [0, 0, 0];
    const byService: Record<string, number> = {};
    for (const { session } of this.#conversations)
      if (session.mining !== null) {
        mining++;
        bump(byService, session.service.name);
        const { farm } = session.mining;
        if (farm === null) continue;
        farms++;
        farmRigs += farm.named;
      }
    return {
      thread: this.thread,
      connections: this.#conversations.size,
      mining,
      byService,
      farms,
      farmRigs,
      opened: this.#opened,
      closed: { ...this.#reports.closed },
      jobsSent: this.#fanOut.sent,
      jobsSkipped: this.#fanOut.skipped,
      fanOutMillis: this.#fanOut.lastMillis,
      verifying: this.#check.open,
      answers: { ...this.#reports.answers },
    };
  }
}
