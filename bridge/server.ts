/**
 * The stratum server as a whole, as the bridge and the pool start it: listener threads (or none: then the main thread
 * listens), the hub between them, templates from the upstream, blocks to it, shares to the sink.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { type Bytes, equalBytes, toHex } from '../protocol/bytes.ts';
import { REGISTRATION_WINDOW } from '../protocol/network.ts';
import { type SteadyClock, steadyNow } from '../runtime/clock/clock.ts';
import { ConnectionCount, connectionCountMemory } from './connection/connection-count.ts';
import { Desk } from './connection/desk.ts';
import type { DeskOptions } from './connection/desk-options.ts';
import { insistFreePorts } from './connection/free-ports.ts';
import { Listener, type ListenerOptions } from './connection/listener.ts';
import { MOST_PARTS } from './nodes/origin-job.ts';
import { RepeatedTemplates } from './nodes/repeated-templates.ts';
import { DrawnAnchors, type KeptTemplate, TemplateStore } from './nodes/template-store.ts';
import { ToldCuts } from './nodes/told-cuts.ts';
import type { TemplateSet } from './nodes/upstream.ts';
import type { PaidPool, StratumService } from './service.ts';
import { BanList } from './session/ban-score.ts';
import { BOOT_ID_BYTES, beginGenerations, connectionNumberMemory } from './session/extranonce.ts';
import { MAX_SERIAL } from './session/job-book.ts';
import type { KeptPublication } from './session/session-entries.ts';
import { SessionLog } from './session/session-log.ts';
import { LocalSessionShelf } from './session/session-shelf.ts';
import { type BlockEntry, FoundBlocks } from './shares/found-blocks.ts';
import type { ReceiptDelivery } from './shares/receipts.ts';
import type {
  StratumFigures,
  StratumServer,
  StratumServerDependencies,
  StratumServerOptions,
} from './stratum-server.ts';
import type {
  BoundAddress,
  CertificatePem,
  ConnectionList,
  ConnectionSearch,
  EarlierTemplates,
  ListenerControl,
  Publication,
  PublishedTemplate,
} from './threads/hub.ts';
import { connectionsOf, figuresOf, startListenerThread } from './threads/listener-threads.ts';
import { MainHub } from './threads/main-hub.ts';

/** How long miners keep working without a node before they get code 31. */
const NODE_AWAY_MILLIS = 60_000;
const READY_POLL_MILLIS = 250;
/** The next dataset is prepared this many cuts ahead: an hour. */
const PREPARE_AHEAD_CUTS = 1_440;
const LOCAL_THREAD = 0;
/** Between the ids of jobs of two processes. */
const SERIAL_GAP = 1_000;
/** How long jobs on a new template wait for its note in the session log: it takes less than a millisecond. */
const NOTE_MILLIS = 250;

/** The templates of one session at another server, or all. */
type Part = {
  /** They wait for their dataset. */
  waiting: readonly KeptTemplate[];
  publication: Publication | null;
  /** On its way to the session log. */
  noting: Publication | null;
  /** The chain has changed, and the listeners do not know it yet. */
  cleanDue: boolean;
  /** The session at the other server: its generations are its own. */
  origin: string | undefined;
};
const NEW_PART: Part = { waiting: [], publication: null, noting: null, cleanDue: false, origin: undefined };
const ALL = { draw: 0 };

export async function createStratumServer(
  options: StratumServerOptions,
  dependencies: StratumServerDependencies,
): Promise<StratumServer> {
  const server = new MainServer(options, dependencies);
  try {
    await server.start();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

class MainServer implements StratumServer {
  readonly bootId: Bytes;
  addresses: readonly BoundAddress[] = [];
  epochLength: number | undefined;
  readonly #options: StratumServerOptions;
  readonly #dependencies: StratumServerDependencies;
  readonly #now: SteadyClock;
  readonly #listeners = new Map<number, ListenerControl>();
  readonly #bans: BanList;
  readonly #blocks: FoundBlocks;
  readonly #hub: MainHub;
  readonly #counts: SharedArrayBuffer;
  readonly #connectionNumbers = connectionNumberMemory();
  readonly #toldCuts: ToldCuts;
  readonly #templates: TemplateStore;
  readonly #repeated: RepeatedTemplates;
  #certificate: CertificatePem | null;
  /** Where it was changed since the start. */
  #pool: PaidPool | undefined;
  /** By their draws; one alone, unless templates are those of several sessions at another server (nodes/origin-job.ts). */
  readonly #parts = new Map<number, Part>();
  #published = 0;
  readonly #anchors = new DrawnAnchors();
  #healthy = false;
  #unhealthySince = 0;
  /** The state that the listeners were sent. */
  #isReady = false;
  /** The state that the log and the figures show: 'ready' appears there only when every listener is ready. */
  #isAnnounced = false;
  #poll: NodeJS.Timeout | null = null;
  #sessionLog: SessionLog | undefined;
  /** Set until the first publication. */
  #kept: readonly KeptPublication[] = [];
  /** The templates of before the restart and the first ones after it, while jobs on them are known: for further listeners. */
  #earlier: readonly EarlierTemplates[] = [];
  #forgetting: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(options: StratumServerOptions, dependencies: StratumServerDependencies) {
    const { sink, upstream, log } = dependencies;
    this.#options = options;
    this.#dependencies = dependencies;
    this.#certificate = options.certificate;
    this.#now = dependencies.now ?? steadyNow;
    this.#toldCuts = new ToldCuts(this.#connectionNumbers, this.#now);
    this.bootId = options.bootId ?? Uint8Array.from(randomBytes(BOOT_ID_BYTES));
    const { graceMillis, memoryMillis } = options.limits.jobs;
    this.#repeated = new RepeatedTemplates(2 * (graceMillis + memoryMillis));
    this.#templates = new TemplateStore(options.limits.jobs);
    this.#bans = new BanList(options.limits.bans, options.allow);
    this.#counts = connectionCountMemory(options.limits.connections);
    const sleep = (millis: number, signal?: AbortSignal) => wait(millis, undefined, { signal });
    this.#blocks = new FoundBlocks({
      upstream,
      sink,
      log: log.child('blocks'),
      sleep,
      sent: (blockId) => this.#sessionLog?.sent(blockId),
    });
    this.#hub = new MainHub({
      sink,
      shelf: dependencies.sessions ?? new LocalSessionShelf(options.limits, this.#now),
      sessionLog: () => this.#sessionLog,
      bans: this.#bans,
      blocks: this.#blocks,
      now: this.#now,
      template: (serial) => this.#templates.get(serial),
      listener: (thread) => this.#listeners.get(thread),
      onBan: (key, until) => {
        this.#each((listener) => listener.ban(key, until));
        dependencies.onBan?.(key, until);
      },
      log,
    });
  }

  /** Without a disk to write to, sessions end with the process. */
  async #openSessionLog(): Promise<void> {
    const { sessionsDirectory: directory, limits } = this.#options;
    const { log, sink } = this.#dependencies;
    if (directory === undefined || limits.resumeMillis === 0) return;
    try {
      const stored = sink.stored?.bind(sink);
      this.#sessionLog = await SessionLog.open(
        { directory, bootId: this.bootId, limits },
        { now: this.#now, log, stored },
      );
    } catch (error) {
      return log.warn('sessions cannot be kept for a restart', { error });
    }
    const { kept } = this.#sessionLog;
    // Ids of jobs must not come again in a session. After years of starts they begin anew, and jobs of before are dead.
    if (kept.newestSerial > MAX_SERIAL / 2) kept.forgetJobs();
    else {
      this.#kept = kept.publications(limits.jobs);
      const templates = this.#kept.flatMap((publication) => publication.templates);
      // One that was published and not noted any more has used an id.
      this.#templates.restore(templates, kept.newestSerial + SERIAL_GAP);
    }
    this.#forgetting = setTimeout(() => kept.clear(), limits.resumeMillis + limits.bans.banMillis);
    this.#forgetting.unref();
    if (kept.size > 0) log.info('sessions of before can be resumed', { sessions: kept.size });
  }

  async start(): Promise<void> {
    const { threads } = this.#options;
    await this.#openSessionLog();
    if (threads === 0) {
      this.addresses = await this.#local(this.#options.services).listen();
    } else {
      await insistFreePorts(this.#options.services);
      for (let thread = 1; thread <= threads; thread++) await this.#startThread(thread);
    }
    this.#dependencies.upstream.start({
      templates: (set) => void this.#publish(set),
      told: (cutId) => void this.#toldCuts.tell(cutId),
      cut: (cut) => this.#blocks.onCut(cut),
      healthy: (isHealthy) => {
        if (!isHealthy && this.#healthy) this.#unhealthySince = performance.now();
        this.#healthy = isHealthy;
        this.#decideReady();
      },
    });
    this.#poll = setInterval(() => this.#decideReady(), READY_POLL_MILLIS);
  }

  /** The first thread chooses where port 0 was asked for; the others, and its successors, take the same ports. */
  async #startThread(thread: number): Promise<void> {
    const { log, verifier } = this.#dependencies;
    const services = this.#options.services.map((service) => this.#bound(service));
    const desk = this.#deskOptions(thread);
    const listener = startListenerThread(
      {
        desk,
        listener: this.#listenerOptions(services, this.#options.threads > 1 || this.addresses.length > 0),
      },
      {
        hub: this.#hub,
        verifier,
        log: log.child(`listener-${thread}`),
        onExit: (reason) => {
          new ConnectionCount(this.#counts, desk.ownCounts).giveBackAll();
          void this.#replaceThread(thread, reason);
        },
      },
    );
    const addresses = await listener.listen().catch((error) => listener.close().then(() => Promise.reject(error)));
    // The server was closed meanwhile, and closes only what it knows.
    if (this.#closing) return listener.close();
    if (this.addresses.length === 0) this.addresses = addresses;
    this.#listeners.set(thread, listener);
    this.#greet(listener);
  }

  async #replaceThread(thread: number, reason: string): Promise<void> {
    this.#listeners.delete(thread);
    if (this.#closing) return;
    this.#dependencies.log.error('listener thread died, starting another', { thread, reason });
    await this.#startThread(thread).catch((error: unknown) =>
      this.#dependencies.log.error('listener thread did not start', { thread, error }),
    );
  }

  #bound(service: StratumService): StratumService {
    const at = (kind: 'tcp' | 'ws') =>
      this.addresses.find((address) => address.service === service.name && address.kind === kind);
    const [tcp, ws] = [at('tcp'), at('ws')];
    return {
      ...service,
      ...(service.listen === undefined || tcp === undefined ? {} : { listen: { host: tcp.host, port: tcp.port } }),
      ...(service.listenWs === undefined || ws === undefined ? {} : { listenWs: { host: ws.host, port: ws.port } }),
    };
  }

  #deskOptions(thread: number): DeskOptions {
    const { network, server, limits, allow } = this.#options;
    const asksSink = this.#dependencies.sink.own !== undefined;
    return {
      network,
      server,
      limits,
      thread,
      bootId: this.bootId,
      asksSink,
      keepsSessions: this.#sessionLog !== undefined,
      counts: this.#counts,
      ownCounts: connectionCountMemory(limits.connections),
      allow,
      connectionNumbers: this.#connectionNumbers,
    };
  }

  #listenerOptions(services: readonly StratumService[], sharePorts: boolean): ListenerOptions {
    const { wsOrigins, proxies } = this.#options;
    const { streams = 'handles' } = this.#options;
    return { services, wsOrigins, proxies, sharePorts, streams, certificate: this.#certificate };
  }

  /**
   * The listener of the main thread: the only one with 0 threads; it also takes the WebSocket upgrades from other web
   * servers.
   */
  #local(services: readonly StratumService[]): Listener {
    const existing = this.#listeners.get(LOCAL_THREAD);
    if (existing instanceof Listener) return existing;
    const { verifier, log } = this.#dependencies;
    const desk = new Desk(this.#deskOptions(LOCAL_THREAD), {
      hub: this.#hub,
      verifier,
      now: this.#now,
      soon: setImmediate,
      randomBytes,
      log: (level, message, fields) => log[level](message, fields),
    });
    const listener = new Listener(this.#listenerOptions(services, false), desk);
    this.#listeners.set(LOCAL_THREAD, listener);
    this.#greet(listener);
    return listener;
  }

  #greet(listener: ListenerControl): void {
    for (const { publication } of this.#parts.values())
      if (publication !== null) listener.publish({ ...publication, earlier: this.#earlier });
    // It was changed while the thread started.
    if (this.#pool !== undefined) listener.setPool(this.#pool);
    void listener.setReady(this.#isReady);
    for (const { key, untilMillis } of this.#bans.bans(this.#now())) listener.ban(key, untilMillis);
  }

  #each(run: (listener: ListenerControl) => void): void {
    for (const listener of this.#listeners.values()) run(listener);
  }

  handleUpgrade(name: string, request: IncomingMessage, socket: Duplex, head: Bytes, client: string): void {
    const service = this.#options.services.find((each) => each.name === name);
    if (service === undefined || this.#closing) return void socket.destroy();
    this.#local([]).handleUpgrade(service, request, socket, head, client);
  }

  // --- templates --------------------------------------------------------------------------------------------------------

  /** The set itself is not retained: while a dataset is built, newer ones arrive. */
  async #publish({ templates, ...about }: TemplateSet): Promise<void> {
    const kept = templates.map((template) => this.#templates.put(template));
    // Before it waits for a dataset or a disk: another server may have sent it by then.
    const told = kept.map(({ header }) => this.#toldCuts.tell(about.cutId ?? toHex(header.anchorId)));
    const { draw } = about.part ?? ALL;
    const part = this.#parts.get(draw) ?? { ...NEW_PART };
    for (const { serial } of part.waiting) this.#templates.forget(serial);
    part.waiting = kept;
    this.#parts.set(draw, part);
    if (kept.length > 0) return await this.#publishKept(kept, { ...about, told }, part);
    if (about.part === undefined) return;
    this.#parts.delete(draw);
    const { headHeight, part: of } = about;
    this.#each((listener) => listener.publish({ templates: [], headHeight, clean: true, part: of }));
  }

  get #publication(): Publication | null {
    return this.#parts.get(ALL.draw)?.publication ?? null;
  }

  async #publishKept(
    kept: readonly KeptTemplate[],
    { headHeight, clean, node, anchors, told, part: of }: Omit<TemplateSet, 'templates'> & { told: readonly number[] },
    part: Part,
  ): Promise<void> {
    const { verifier, log } = this.#dependencies;
    const [first] = kept;
    if (first === undefined) return;
    const repeats = kept.map(({ headerBytes, origin }) =>
      this.#repeated.isRepeat(headerBytes, performance.now(), origin?.extranonceHead),
    );
    try {
      await Promise.all([...new Set(kept.map(({ epoch }) => epoch))].map((epoch) => verifier.prepare(epoch)));
    } catch (error) {
      return log.error('the dataset could not be prepared', { epoch: first.epoch, error });
    }
    if (part.waiting !== kept) return;
    part.waiting = [];
    this.#templates.publish(
      kept.map(({ serial }) => serial),
      headHeight,
      performance.now(),
      of,
    );
    const origin = first.origin?.session;
    const { draw: place } = of ?? ALL;
    if (origin !== part.origin) beginGenerations(this.#connectionNumbers, place);
    part.origin = origin;
    const cutHeight = Math.max(headHeight, ...kept.map(({ anchorHeight }) => anchorHeight));
    part.cleanDue ||= clean;
    const publication: Publication = {
      headHeight,
      clean: part.cleanDue,
      ...(of === undefined ? {} : { part: of }),
      templates: kept.map(({ serial, headerBytes, epoch, origin }, draw) => ({
        serial,
        header: headerBytes,
        epoch,
        draw: of?.draw ?? draw,
        draws: of === undefined ? kept.length : MOST_PARTS,
        isFresh: anchors === 'best' || (repeats[draw] as boolean),
        cutHeight,
        told: told[draw] as number,
        ...(origin === undefined ? {} : { origin }),
      })),
    };
    part.noting = publication;
    // Jobs go out when the next process would know them too, unless the disk hangs.
    const noted = this.#sessionLog?.templates(publication, kept);
    if (noted !== undefined) await Promise.race([noted, wait(NOTE_MILLIS, undefined, { ref: false })]);
    // A newer one came meanwhile.
    if (part.noting !== publication) return;
    part.cleanDue = false;
    part.publication = publication;
    this.#published++;
    this.#anchors.note(
      kept.map(({ anchorHeight }) => anchorHeight),
      cutHeight,
    );
    this.epochLength = first.epochLength;
    const earlier = this.#takeKept(first, headHeight);
    this.#each((listener) => listener.publish(earlier.length === 0 ? publication : { ...publication, earlier }));
    if (earlier.length > 0) this.#earlier = [...earlier, { templates: publication.templates, atMillis: this.#now() }];
    else if (this.#isForgotten(this.#earlier.at(-1)) || publication.clean) this.#earlier = [];
    this.#decideReady();
    log.debug('templates published', { node, height: headHeight, draws: kept.length, fees: first.fees });
    this.#prepareAhead(first);
  }

  /**
   * The templates of before the restart, if they are of the same chain and epoch; their blocks can be sent from now on. A
   * job on another chain earns nothing, and a dataset of an old epoch is not built for the last seconds of a few jobs.
   */
  #takeKept(first: KeptTemplate, headHeight: number): readonly EarlierTemplates[] {
    const kept = this.#kept;
    const newest = kept.at(-1);
    if (newest === undefined) return [];
    const away = this.#sessionLog?.kept.back(this.#now()) ?? 0;
    this.#kept = [];
    const isOther = ({ serial }: PublishedTemplate): boolean => {
      const template = this.#templates.get(serial);
      // Its window has closed meanwhile.
      if (template === undefined) return false;
      const { epoch, anchorHeight, header } = template;
      const isOtherCut = anchorHeight === first.anchorHeight && !equalBytes(header.anchorId, first.header.anchorId);
      return epoch !== first.epoch || header.networkId !== first.header.networkId || isOtherCut;
    };
    const templates = kept.flatMap((publication) => publication.templates);
    if (headHeight + REGISTRATION_WINDOW > newest.headHeight && !templates.some(isOther)) {
      for (const block of this.#sessionLog?.kept.blocks ?? [])
        if (this.#templates.get(block.serial) !== undefined) this.#hub.send(block);
      return kept.map(({ templates: each, atMillis }) => ({
        templates: each.map(published),
        atMillis: atMillis + away,
      }));
    }
    for (const { serial } of templates) this.#templates.forget(serial);
    this.#sessionLog?.kept.forgetJobs();
    return [];
  }

  #isForgotten(earlier: EarlierTemplates | undefined): boolean {
    const { graceMillis, memoryMillis } = this.#options.limits.jobs;
    return earlier !== undefined && this.#now() - earlier.atMillis > graceMillis + memoryMillis;
  }

  #prepareAhead({ anchorHeight, epoch, epochLength }: KeptTemplate): void {
    if (epochLength === undefined) return;
    const ahead = Math.min(PREPARE_AHEAD_CUTS, Math.ceil(epochLength / 2));
    if (Math.floor((anchorHeight + ahead) / epochLength) <= epoch) return;
    this.#dependencies.verifier
      .prepare(epoch + 1)
      .catch((error: unknown) => this.#dependencies.log.warn('the next dataset could not be prepared', { error }));
  }

  #decideReady(): void {
    // Miners that are asked to leave keep working until they do, and their shares count: so listeners get no further
    // state.
    if (this.#closing) return;
    const { sink } = this.#dependencies;
    const isServed = this.#healthy || performance.now() - this.#unhealthySince < NODE_AWAY_MILLIS;
    const isReady = this.#publication !== null && isServed && sink.accepting;
    if (isReady === this.#isReady) return;
    this.#isReady = isReady;
    const told = [...this.#listeners.values()].map((listener) => listener.setReady(isReady));
    void Promise.all(told).then(() => this.#announce());
  }

  #announce(): void {
    if (this.#isAnnounced === this.#isReady) return;
    this.#isAnnounced = this.#isReady;
    const { sink, log } = this.#dependencies;
    log.info(this.#isReady ? 'ready' : 'not ready', { healthy: this.#healthy, sink: sink.accepting });
  }

  // --- control ------------------------------------------------------------------------------------------------------------

  setCertificate(certificate: CertificatePem): void {
    this.#certificate = certificate;
    this.#each((listener) => listener.setCertificate(certificate));
  }

  setPool(pool: PaidPool): void {
    this.#pool = pool;
    // The listener of this thread has the same services, and compares.
    this.#each((listener) => listener.setPool(pool));
    for (const service of this.#options.services) service.pool = pool;
  }

  receipts(delivery: ReceiptDelivery): void {
    this.#each((listener) => listener.receipts(delivery));
  }

  async figures(): Promise<StratumFigures> {
    const current = this.#publication?.templates[0];
    const template = current === undefined ? undefined : this.#templates.get(current.serial);
    return {
      ready: this.#isAnnounced,
      bootId: this.bootId,
      headHeight: this.#publication?.headHeight ?? 0,
      listeners: await figuresOf(this.#listeners.values()),
      nodes: this.#dependencies.upstream.figures(),
      blocks: { ...this.#blocks.counts, paidAtoms: this.#blocks.paidAtoms },
      templates: {
        published: this.#published,
        anchors: this.#anchors.figures,
        fees: template?.fees ?? 0n,
        transactions: template?.transactions.length ?? 0,
        kept: this.#templates.figures,
      },
      bans: this.bans().length,
    };
  }

  connections(search: ConnectionSearch): Promise<ConnectionList> {
    return connectionsOf(this.#listeners.values(), search);
  }

  blocks(limit: number): readonly BlockEntry[] {
    return this.#blocks.list(limit);
  }

  bans(): readonly { readonly key: string; readonly untilMillis: number }[] {
    return this.#bans.bans(this.#now());
  }

  ban(key: string, untilMillis: number): void {
    this.#bans.ban(key, untilMillis);
    this.#each((listener) => listener.ban(key, untilMillis));
  }

  unban(key: string): boolean {
    this.#each((listener) => listener.ban(key, 0));
    return this.#bans.unban(key);
  }

  async drain(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.#isReady = false;
    this.#announce();
    await Promise.all([...this.#listeners.values()].map((listener) => listener.drain()));
  }

  async close(): Promise<void> {
    this.#closing = true;
    if (this.#poll !== null) clearInterval(this.#poll);
    await Promise.all([...this.#listeners.values()].map((listener) => listener.close()));
    clearTimeout(this.#forgetting);
    await this.#blocks.close();
    await this.#dependencies.upstream.close();
    await this.#hub.settled();
    await this.#sessionLog?.close();
  }
}

/** A listener needs no bodies. */
const published = ({
  serial,
  header,
  epoch,
  draw,
  draws,
  isFresh,
  cutHeight,
  told,
}: PublishedTemplate): PublishedTemplate => ({
  serial,
  header,
  epoch,
  draw,
  draws,
  isFresh,
  cutHeight,
  told,
});
