/**
 * The source of templates and the destination of found blocks: one or more nodes, of which the first healthy one serves
 * and all get every block. A template is checked before anyone hashes on it; a node that gives a broken one, or is
 * unavailable, is skipped until it works again. Nodes may disagree: the serving one counts, for cuts and their rewards
 * too.
 */
import type { AnchorPolicy } from '../../node/mining/anchor-choice.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { type Network, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { LaterClock } from '../../runtime/clock/clock.ts';
import type { TemplatePart } from './origin-job.ts';
import { type CheckedTemplate, checkTemplate, type TemplateAnswer } from './template.ts';

export type WorkReward = {
  readonly blockId: string;
  readonly transactionId: string;
  readonly outputIndex: number;
  readonly amount: bigint;
};
export type CutNews = { readonly height: number; readonly cutId: string; readonly rewards: readonly WorkReward[] };

export type CandidateAnswer =
  | { readonly state: 'accepted' | 'known' | 'late' }
  | { readonly state: 'refused'; readonly reason: string };

export type NodeEvents = {
  /** The node is reachable and finalized up to this height. */
  head(height: number, cutId: string): void;
  cut(cut: CutNews): void;
  lost(reason: string): void;
};

/** One node, embedded or over HTTP. Calls reject when the node cannot be reached. */
export interface NodeSource {
  readonly name: string;
  template(draw: number): Promise<TemplateAnswer>;
  submit(header: Bytes, body: Bytes): Promise<CandidateAnswer>;
  /** Runs until `signal` is aborted, also across failures of the node. */
  follow(events: NodeEvents, signal: AbortSignal): void;
  close(): Promise<void>;
}

export type TemplateSet = {
  readonly templates: readonly CheckedTemplate[];
  readonly headHeight: number;
  readonly clean: boolean;
  readonly node: string;
  readonly anchors: AnchorPolicy;
  /** The cut at which it was made, where its anchors may be older. */
  readonly cutId?: string;
  /** Set where several sessions of another server serve; one without templates has ended. */
  readonly part?: TemplatePart;
};

export type UpstreamEvents = {
  templates(set: TemplateSet): void;
  /** A node told of a cut, whether it serves or not. */
  told(cutId: string): void;
  cut(cut: CutNews): void;
  /** Whether any node serves. */
  healthy(isHealthy: boolean): void;
};

export type UpstreamOptions = {
  readonly network: Network;
  /** Distinct templates per cut; connections are spread over them. */
  readonly draws: number;
  /** What the sources ask their nodes for. With `best` each draw has an anchor of its own, so there are several even without transactions. */
  readonly anchors: AnchorPolicy;
  /** How often the current template is compared with a fresh one, and by which factor its fees must rise. */
  readonly refreshMillis: number;
  readonly feeFactor: number;
  readonly retryMillis: number;
};

export const UPSTREAM_DEFAULTS = {
  draws: 4,
  anchors: 'newest' as AnchorPolicy,
  refreshMillis: 5_000,
  feeFactor: 1.1,
  retryMillis: 1_000,
};

export type UpstreamDependencies = {
  readonly sources: readonly NodeSource[];
  readonly now: LaterClock;
  readonly log: {
    info(message: string, fields?: Readonly<Record<string, unknown>>): void;
    warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  };
};

type Followed = {
  readonly source: NodeSource;
  isReachable: boolean;
  /** Whether it was logged as unavailable; also true at the start, before the first connection. */
  isLoggedAway: boolean;
  /** Its last template was refused or could not be fetched; tried again with its next cut or after a while. */
  isBroken: boolean;
  height: number;
  cutId: string;
  /** Its newest cuts: when it takes over, those that the previous node did not report are reported. */
  readonly cuts: CutNews[];
  /** Another node has a different cut at the same height. */
  disagrees: boolean;
  /** Blocks on their way to it. */
  sending: number;
  /** Consecutive blocks that did not reach it. */
  unreached: number;
};

/** Cuts remembered of each node, and anchors of what was published: more than the window of a job. */
const KEPT_CUTS = REGISTRATION_WINDOW + 32;

/** Blocks on their way to one node at once; each is a body of up to a mebibyte, and its text of twice that. */
const MAX_SENDING = 16;

export type NodeFigures = {
  readonly name: string;
  readonly healthy: boolean;
  readonly serving: boolean;
  readonly disagrees: boolean;
  readonly height: number;
};

export type NodeAnswer = { readonly node: string; readonly answer: CandidateAnswer };

export interface Upstream {
  start(events: UpstreamEvents): void;
  /**
   * The answer of each node; a node that could not be reached is missing. Resolves when one has accepted the block: it
   * is sent to the others too, without waiting for them.
   */
  submit(header: Bytes, body: () => Bytes): Promise<readonly NodeAnswer[]>;
  figures(): readonly NodeFigures[];
  close(): Promise<void>;
}

export class NodeUpstream implements Upstream {
  readonly #options: UpstreamOptions;
  readonly #dependencies: UpstreamDependencies;
  readonly #nodes: Followed[];
  readonly #ending = new AbortController();
  #events: UpstreamEvents | null = null;
  #serving: Followed | null = null;
  #published: { height: number; cutId: string; fees: bigint; atMillis: number; node: Followed } | null = null;
  /** The cuts that published templates build on, by height: they distinguish a lagging node from one of another chain. */
  readonly #anchors = new Map<number, string>();
  #fetching = false;
  #again = false;
  #lastCut = 0;
  #timer: NodeJS.Timeout | null = null;
  readonly #submitting = new Set<Promise<unknown>>();

  constructor(options: UpstreamOptions, dependencies: UpstreamDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#nodes = dependencies.sources.map((source) => ({
      source,
      isReachable: false,
      isLoggedAway: false,
      isBroken: false,
      height: 0,
      cutId: '',
      cuts: [],
      disagrees: false,
      sending: 0,
      unreached: 0,
    }));
  }

  start(events: UpstreamEvents): void {
    this.#events = events;
    for (const node of this.#nodes) node.source.follow(this.#eventsOf(node), this.#ending.signal);
    this.#timer = setInterval(() => this.#tick(), this.#options.retryMillis);
  }

  #eventsOf(node: Followed): NodeEvents {
    return {
      head: (height, cutId) => this.#advance(node, height, cutId),
      cut: (cut) => {
        node.cuts.push(cut);
        if (node.cuts.length > KEPT_CUTS) node.cuts.shift();
        this.#advance(node, cut.height, cut.cutId);
        if (node === this.#serving) this.#tellCuts(node);
      },
      lost: (reason) => {
        if (this.#ending.signal.aborted) return;
        if (!node.isLoggedAway) this.#dependencies.log.warn('node is away', { node: node.source.name, reason });
        node.isLoggedAway = true;
        node.isReachable = false;
        this.#choose();
      },
    };
  }

  #advance(node: Followed, height: number, cutId: string): void {
    this.#events?.told(cutId);
    if (!node.isReachable) this.#dependencies.log.info('node is there', { node: node.source.name, height });
    node.isReachable = true;
    node.isLoggedAway = false;
    node.isBroken = false;
    node.height = height;
    node.cutId = cutId;
    this.#compare(node);
    this.#choose();
    if (node === this.#serving) void this.#fetch();
  }

  /**
   * Reports every cut once, from the serving node: rewards of another chain do not count here. Only up to the height of
   * the node's last valid template: a false height would expire every waiting block, and hide the real cuts.
   */
  #tellCuts(node: Followed): void {
    const through = this.#published?.node === node ? this.#published.height : -1;
    for (const cut of node.cuts) {
      if (cut.height <= this.#lastCut || cut.height > through) continue;
      this.#lastCut = cut.height;
      this.#events?.cut(cut);
    }
  }

  #compare(node: Followed): void {
    for (const other of this.#nodes) {
      if (other === node || !other.isReachable || other.height !== node.height) continue;
      const disagrees = other.cutId !== node.cutId;
      if (disagrees && !node.disagrees) {
        const [first, second] = [other.source.name, node.source.name];
        this.#dependencies.log.warn('nodes disagree', { height: node.height, first, second });
      }
      node.disagrees = disagrees;
      other.disagrees = disagrees;
    }
  }

  #choose(): void {
    const best = this.#nodes.find((node) => node.isReachable && !node.isBroken) ?? null;
    if (best === this.#serving) return;
    this.#serving = best;
    this.#events?.healthy(best !== null);
    if (best === null) {
      this.#dependencies.log.warn('no node serves');
      return;
    }
    this.#dependencies.log.info('node serves', { node: best.source.name, height: best.height });
    this.#tellCuts(best);
    void this.#fetch();
  }

  #tick(): void {
    for (const node of this.#nodes) node.isBroken = false;
    this.#choose();
    const { height, cutId, atMillis } = this.#published ?? { height: -1, cutId: '', atMillis: 0 };
    const serving = this.#serving;
    if (serving === null) return;
    const isBehind = serving.height !== height || serving.cutId !== cutId;
    const age = this.#dependencies.now() - atMillis;
    // A clock that jumped back must not stop the comparison of fees.
    if (isBehind || age >= this.#options.refreshMillis || age < 0) void this.#fetch();
  }

  /** One fetch at a time; if something changes meanwhile, one more follows. */
  async #fetch(): Promise<void> {
    if (this.#fetching) {
      this.#again = true;
      return;
    }
    this.#fetching = true;
    try {
      do {
        this.#again = false;
        const node = this.#serving;
        if (node !== null && !this.#ending.signal.aborted) await this.#fetchFrom(node);
      } while (this.#again);
    } finally {
      this.#fetching = false;
    }
  }

  async #fetchFrom(node: Followed): Promise<void> {
    const { height, cutId } = node;
    const { draws, feeFactor, anchors } = this.#options;
    const last = this.#published;
    const isSame = last !== null && last.node === node && last.height === height && last.cutId === cutId;
    try {
      const first = await this.#template(node, 0);
      if (isSame && Number(first.fees) < Number(last.fees) * feeFactor + 1) {
        this.#published = { ...last, atMillis: this.#dependencies.now() };
        return;
      }
      // Without transactions or anchors to choose from, all draws are the same template.
      const others =
        first.body.transactions.length < 2 && anchors === 'newest'
          ? []
          : await Promise.all(Array.from({ length: draws - 1 }, (_, i) => this.#template(node, i + 1)));
      if (node !== this.#serving) return;
      const clean = last !== null && this.#isOtherChain(height, cutId, last.height);
      if (clean) {
        this.#anchors.clear();
        this.#lastCut = Math.min(this.#lastCut, height);
      }
      this.#anchors.set(height, cutId);
      for (const old of this.#anchors.keys()) if (old <= height - KEPT_CUTS) this.#anchors.delete(old);
      this.#published = { height, cutId, fees: first.fees, atMillis: this.#dependencies.now(), node };
      this.#tellCuts(node);
      this.#events?.templates({
        templates: [first, ...others],
        headHeight: height,
        clean,
        node: node.source.name,
        anchors,
        ...(anchors === 'best' ? { cutId } : {}),
      });
    } catch (error) {
      if (this.#ending.signal.aborted) return;
      this.#dependencies.log.warn('no template', { node: node.source.name, error });
      node.isBroken = true;
      this.#choose();
    }
  }

  /** A node that is only behind will accept the current jobs later; one on another chain never will. */
  #isOtherChain(height: number, cutId: string, lastHeight: number): boolean {
    const known = this.#anchors.get(height);
    return known === undefined ? height + REGISTRATION_WINDOW <= lastHeight : known !== cutId;
  }

  async #template(node: Followed, draw: number): Promise<CheckedTemplate> {
    const { network } = this.#options;
    const answer = await node.source.template(draw);
    const chain = { network, headHeight: node.height, nowMillis: this.#dependencies.now() };
    const checked = checkTemplate(answer, chain);
    if (!checked.ok) throw new Error(`template refused: ${checked.reason}`);
    return checked.template;
  }

  async submit(header: Bytes, body: () => Bytes): Promise<readonly NodeAnswer[]> {
    // A node that hangs must not accumulate bodies: it is skipped until some of its answers have come or are overdue.
    const free = this.#nodes.filter((node) => node.sending < MAX_SENDING);
    if (free.length === 0) return [];
    const bytes = body();
    const answers: NodeAnswer[] = [];
    const accepted = Promise.withResolvers<void>();
    const all = free.map(async (node) => {
      const answer = await this.#submitTo(node, header, bytes);
      if (answer === undefined) return;
      answers.push({ node: node.source.name, answer });
      if (answer.state === 'accepted' || answer.state === 'known') accepted.resolve();
    });
    const told = Promise.all(all);
    this.#submitting.add(told);
    void told.finally(() => this.#submitting.delete(told));
    await Promise.race([accepted.promise, told]);
    return [...answers];
  }

  async #submitTo(node: Followed, header: Bytes, body: Bytes): Promise<CandidateAnswer | undefined> {
    node.sending++;
    try {
      const answer = await node.source.submit(header, body);
      node.unreached = 0;
      return answer;
    } catch (error) {
      if (node.unreached === 0)
        this.#dependencies.log.warn('block did not reach node', { node: node.source.name, error });
      node.unreached++;
      return undefined;
    } finally {
      node.sending--;
    }
  }

  figures(): readonly NodeFigures[] {
    return this.#nodes.map((node) => ({
      name: node.source.name,
      healthy: node.isReachable && !node.isBroken,
      serving: node === this.#serving,
      disagrees: node.disagrees,
      height: node.height,
    }));
  }

  async close(): Promise<void> {
    this.#ending.abort();
    if (this.#timer !== null) clearInterval(this.#timer);
    await Promise.all(this.#submitting);
    await Promise.all(this.#nodes.map(({ source }) => source.close()));
  }
}
