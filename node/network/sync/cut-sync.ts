/**
 * Follows the chain over its peers (network.md, Sync): cuts in batches that end where certificates are kept, proven
 * before anything is fetched for them, then their blocks from several peers, executed in order with every header
 * compared. Each cut is on disk before the next, so a node that is killed continues from there.
 */
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import type { ProposedCut } from '../../../protocol/consensus/proposal.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import type { Certificate } from '../../../protocol/ledger/cut.ts';
import { epochOf } from '../../../protocol/staking/limits.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import type { Adopt } from '../../chain/adopted-cut.ts';
import type { Member } from '../../chain/certificate.ts';
import { type Checkpoint, nextCheckpoint } from '../../chain/checkpoints.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import type { RefutedCut } from '../../chain/refuted-cut.ts';
import { TOLERATED_CUTS } from '../../chain/tip.ts';
import { nameOf } from '../../ledger/registration.ts';
import { blame, isBusy, type PeerAsking, PeerFault } from '../peers/peer-fault.ts';
import { PeerHeights } from '../peers/peer-heights.ts';
import type { PeerName } from '../thread/host-types.ts';
import { BlockFetch } from './block-fetch.ts';
import { CheckpointProof, ContradictedError } from './checkpoint-proof.ts';
import { brokenChain, isCertified, type Place, UnprovenError } from './cut-proof.ts';
import { type AskHeaders, EpochProof } from './epoch-proof.ts';
import { Search } from './search.ts';
import {
  ANSWER_BYTES,
  batchEnd,
  type CutsAnswer,
  type CutsOutline,
  decodeCutsAnswer,
  decodeHeadersAnswer,
  encodeSyncQuestion,
  MAX_CUTS,
  readCutsOutline,
} from './sync-messages.ts';
import { unknownVersion } from './unknown-cut.ts';
import { WakeUp } from './wake-up.ts';

/** Delay after a failure that is not a peer's, and of looks at what came by another way. */
const PAUSE_MILLIS = 2_000;
const LOG_MILLIS = 10_000;
/** Answers that wait for headers wait no longer for one part of them: their peers may have better ones by then. */
const HEADERS_MILLIS = 10_000;
/** From a peer whose answer took longer and did not come less is asked next time, and more where four times as much would have come. */
const LONG_MILLIS = 10_000;
/** Of a whole question: the certificates of all but the last cut are most of an answer. */
const WITHOUT_CERTIFICATES = 1 / 4;
/** Twelve cuts: a head that is as old does not move. */
const STANDS_MILLIS = 30_000;
/** Signatures of a cut's blocks are checked in the workers meanwhile; the rest are checked during execution. */
const SETTLED_MILLIS = 5_000;
/** A cut whose own certificate was deleted: the one at the end of its batch proved it. */
const PROVEN_LATER: Certificate = { round: 0, signatures: [] };

export type CutSyncDependencies = {
  readonly ledger: CutLedger;
  /** Takes a proven cut into the ledger. */
  readonly adopt: Adopt;
  /** Cuts also come from neighbours of the overlay: peers are asked when these are late. */
  readonly hasNeighbours: boolean;
  readonly network: PeerAsking;
  readonly log: Logger;
  /** Ascending. */
  readonly checkpoints: readonly Checkpoint[];
  readonly steady: SteadyClock;
  /** A head that stands for so long may be an old one. */
  readonly probeMillis: number;
  /** Whether the head is young, by the clock. */
  isAtTip(): boolean;
  /** The chain has cuts of a version that this release does not know; syncing stops. */
  updateRequired(version: number): void;
};

export class CutSync {
  readonly heights: PeerHeights;
  readonly #with: CutSyncDependencies;
  readonly #epochs: EpochProof;
  readonly #checkpoints: CheckpointProof;
  readonly #news = new WakeUp();
  #running: Promise<void> | undefined;
  #closed = false;
  #queued = 0;
  /** Peers that were asked to prove their height. */
  readonly #confirming = new Set<PeerName>();
  #loggedAt = 0;
  readonly #search: Search;
  /** Since when cuts are missing and no answer brought a whole batch. */
  #missingSince: number | undefined;
  /** The longest proven chain beyond the head. */
  #ready: Batch | undefined;
  #executing: Batch | undefined;
  /** Looks whether a block or cut that is fetched came by another way. */
  #fetch: (() => void) | undefined;
  /** Ends searches for headers. */
  readonly #waiting = new Set<() => void>();
  /** Of cuts that were proven lately: answers that come late need no other proof. */
  readonly #proven = new BoundedMap<number, Bytes>(4 * MAX_CUTS);
  /** The newest head, and since when it is. */
  #stands = { height: -1, since: 0 };
  /** What comes of the answer that is unpacked: its last cut is proven. */
  #unpacking: Promise<void> = Promise.resolve();
  /** A proven cut that broke a rule here, and who sent its blocks: they come anew, from others where there are others. */
  #doubted: { readonly cutId: Bytes; readonly senders: ReadonlySet<PeerName> } | undefined;

  constructor(dependencies: CutSyncDependencies) {
    this.#with = dependencies;
    this.heights = new PeerHeights(dependencies.steady);
    const { heights } = this;
    this.#search = new Search({
      order: heights.orders.cuts,
      peers: (isLate) => this.#senders(isLate),
      missingSince: () => this.#missing(),
      isServed: () => this.#executing !== undefined || this.#ready !== undefined || !this.#isClaimed(),
      ask: (peer, answered) => this.#askForCuts(peer, answered),
      failed: (peer, error) => this.#failed(peer, error),
    });
    this.#epochs = new EpochProof(dependencies.ledger, this.#askHeaders);
    this.#checkpoints = new CheckpointProof({ ...dependencies, ask: this.#askHeaders });
  }

  /** Cuts that are proven but not executed yet. */
  get queued(): number {
    return this.#queued;
  }

  start(): void {
    this.#running = this.#run();
    this.#search.start();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#search.close();
    for (const end of this.#waiting) end();
    this.wake();
    this.arrived();
    await this.#running;
  }

  /** New cuts may be available. */
  wake(): void {
    if (this.#running === undefined) return;
    this.#search.look();
    this.#news.wake();
  }

  /** A block or a cut came by another way. */
  arrived(): void {
    this.#fetch?.();
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      const batch = this.#ready;
      this.#ready = undefined;
      if (lastOf(batch) > this.#with.ledger.head().height) await this.#advance(batch as Batch);
      else await this.#rest();
    }
  }

  async #advance(batch: Batch): Promise<void> {
    this.#executing = batch;
    try {
      // Meanwhile some of these cuts may have arrived by another way.
      await this.#execute(batch);
    } catch (error) {
      this.#failed(batch.peer, error);
      await this.#news.wait(PAUSE_MILLIS);
    } finally {
      this.#executing = undefined;
    }
    this.#search.look();
  }

  /** Until cuts are proven. */
  async #rest(): Promise<void> {
    const { height } = this.#with.ledger.head();
    if (this.heights.isPruned(height, this.#stood() >= STANDS_MILLIS)) this.#tellPruned(height);
    await this.#news.wait(PAUSE_MILLIS);
  }

  /** How long the head has not moved. */
  #stood(): number {
    const { ledger, steady } = this.#with;
    const { height } = ledger.head();
    if (this.#stands.height !== height) this.#stands = { height, since: steady() };
    return steady() - this.#stands.since;
  }

  #isClaimed(): boolean {
    const { hasNeighbours, ledger } = this.#with;
    const { height } = ledger.head();
    return this.heights.isClaimed(hasNeighbours ? height + TOLERATED_CUTS : height);
  }

  /**
   * Since when cuts seem to be missing, and no answer brought a whole batch. What peers claim is not enough to know
   * that: an honest one may have claimed its last before it was heard no more, and others take theirs back.
   */
  #missing(): number | undefined {
    const { probeMillis, isAtTip, steady } = this.#with;
    const isMissing = !this.#closed && (this.#stood() >= probeMillis || !isAtTip() || this.#isClaimed());
    this.#missingSince = isMissing ? (this.#missingSince ?? steady()) : undefined;
    return this.#missingSince;
  }

  #blame(error: unknown, peer: PeerName): void {
    const { network, log } = this.#with;
    log.debug('a peer did not deliver', { peer, reason: (error as Error).message });
    blame(network, peer, error);
  }

  /**
   * Of peers that say that they have them, again and again: one may be busy, or sync itself. Until they came, nobody says
   * so any more, the head is past them, or a while is over, for cuts that a stranger invented lead to headers that nobody
   * has. `first` is asked once whatever it says.
   */
  #askHeaders: AskHeaders = (first, question, read) => {
    const { ledger, network, steady } = this.#with;
    const since = steady();
    let isFirst = true;
    const open = () => {
      const to = question()?.to ?? Number.POSITIVE_INFINITY;
      return this.heights.names.filter(
        (peer) => (this.heights.get(peer)?.claim ?? -1) >= to || (isFirst && peer === first),
      );
    };
    return new Promise((resolve) => {
      const end = (found?: Awaited<ReturnType<typeof read>>) => {
        search.close();
        this.#waiting.delete(end);
        resolve(found);
      };
      const search = new Search({
        order: this.heights.orders.headers,
        peers: () => {
          const isLate = steady() - since >= HEADERS_MILLIS;
          if (!this.#closed && !isLate && ledger.head().height < (question()?.to ?? 0)) return open();
          end();
          return [];
        },
        prefers: (peer) => peer === first,
        missingSince: () => since,
        ask: async (peer, answered) => {
          const asked = question();
          if (asked === undefined) return 0;
          if (peer === first) isFirst = false;
          const answer = await network.ask(peer, 'sync', encodeSyncQuestion(asked));
          answered();
          const found = await read(peer, answer, asked);
          if (found !== undefined) end(found);
          return found === undefined ? 0 : 1;
        },
        failed: (peer, error) => this.#failed(peer, error),
        stuck: () => {
          if (open().length === 0) end();
        },
      });
      this.#waiting.add(end);
      search.start();
    });
  };

  #failed(peer: PeerName, error: unknown): void {
    if (this.#closed) return;
    // What is wrong may have come from another peer than the cuts. Of those that did not prove them each was told of already.
    if (!isBusy(error) && !(error instanceof UnprovenError))
      this.heights.failed(error instanceof PeerFault ? error.peer : peer, this.#with.ledger.head().height + 1);
    this.#blame(error, peer);
  }

  /**
   * The cuts after the head. What the answer brings is as many as it could bring when it was asked for, in doublings.
   * Where headers have to be read to prove it, nothing of it is kept meanwhile, from however many peers it came: they are
   * asked again.
   */
  async #askForCuts(peer: PeerName, answered: () => void): Promise<number | undefined> {
    const head = this.#with.ledger.head();
    try {
      const given = await this.#receive(peer, head, answered);
      if (typeof given === 'number') return given;
      return await given.proof.then(() => undefined);
    } catch (error) {
      const isVersion = error instanceof ProtocolError && error.code === 'unsupported_version';
      if (isVersion && (await this.#isUnknown(peer, head.height + 1))) return 0;
      if (!(error instanceof ContradictedError)) throw error;
      this.#end(error);
      return 0;
    }
  }

  async #receive(peer: PeerName, head: Place, answered: () => void): Promise<number | Unproven> {
    const { ledger } = this.#with;
    const from = head.height + 1;
    const claimed = this.heights.get(peer)?.claim ?? 0;
    const end = this.#batchEnd(from);
    const bytes = await this.#askInPortion(peer, from, end);
    answered();
    const outline = readCutsOutline(bytes);
    const { last } = outline;
    this.heights.says(peer, outline.head, outline.bodiesFrom);
    if (last === undefined) {
      const claim = Math.max(claimed, outline.head);
      if (claim >= from && outline.bodiesFrom <= from)
        throw new PeerFault(peer, 'false_height', `it claimed ${claim} and has no cut ${from}`);
      if (outline.bodiesFrom <= from && outline.head >= head.height) this.#confirm(peer, head);
      return 0;
    }
    const { height } = last;
    if (height > end) throw new PeerFault(peer, 'malformed', `cut ${height} where ${end} ends what was asked for`);
    const answer = this.#isLonger(height) ? await this.#prove(peer, bytes, outline, last, head) : undefined;
    if (answer !== undefined && 'proof' in answer) return answer;
    const own = ledger.head();
    const known = this.#proven.get(height) ?? (height === own.height ? own.cutId : undefined);
    // The head passed it by another way: nothing shows whether it is the chain's.
    if (known === undefined) return 0;
    if (!equalBytes(known, last.cutId)) throw new PeerFault(peer, 'false_proof', `another cut ${height}`);
    this.heights.proved(peer, height);
    if (answer !== undefined && this.#isLonger(height)) {
      // Cut by cut, a chain would take days.
      this.#ready = { peer, answer, isWhole: height >= end || bytes.length >= ANSWER_BYTES };
      this.#fed(this.#ready);
      this.#news.wake();
    }
    return Math.log2(1 + height - head.height);
  }

  /**
   * Of a peer that is too slow only the last certificate, which is all that is needed, and of one that is too slow for
   * that a quarter of the cuts: fewer would not be shorter. Then the whole again, since of some batches only the last cut
   * can be proven.
   */
  async #askInPortion(peer: PeerName, from: number, end: number): Promise<Uint8Array> {
    const { network, steady } = this.#with;
    const order = this.heights.orders.cuts;
    const portion = order.portionOf(peer);
    const count = Math.min(end - from + 1, (portion / WITHOUT_CERTIFICATES) * MAX_CUTS);
    const question = encodeSyncQuestion({ type: 'cuts', from, count, isBrief: portion < 1 });
    const since = steady();
    try {
      const bytes = await network.ask(peer, 'sync', question);
      if (steady() - since <= (portion < WITHOUT_CERTIFICATES ? LONG_MILLIS : LONG_MILLIS / 4))
        order.took(peer, portion, 'soon');
      return bytes;
    } catch (error) {
      if (steady() - since >= LONG_MILLIS) order.took(peer, portion, portion < WITHOUT_CERTIFICATES ? 'anew' : 'late');
      throw error;
    }
  }

  /** Nobody while cuts are ready; those that say that they have the next one, as long as it is not late. */
  #senders(isLate: boolean): readonly PeerName[] {
    if (this.#executing !== undefined && this.#ready !== undefined) return [];
    const next = this.#with.ledger.head().height + 1;
    return isLate ? this.heights.names : this.heights.names.filter((peer) => this.heights.claims(peer, next));
  }

  #isLonger(height: number): boolean {
    return height > Math.max(this.#with.ledger.head().height, lastOf(this.#executing), lastOf(this.#ready));
  }

  /** As long as whole batches come nobody else is asked. */
  #fed({ isWhole }: Batch): void {
    if (isWhole && this.#missingSince !== undefined) this.#missingSince = this.#with.steady();
  }

  /** Of the batch that begins with this cut: what comes after a checkpoint follows only from the next one. */
  #batchEnd(from: number): number {
    const { ledger, checkpoints } = this.#with;
    const { intervalCuts } = ledger;
    const epochEnd = (epochOf(from, intervalCuts) + 1) * intervalCuts - 1;
    return Math.min(batchEnd(from), epochEnd, nextCheckpoint(checkpoints, from)?.height ?? epochEnd);
  }

  /** The chain went where this node cannot follow. */
  #end(error: Error): void {
    this.#closed = true;
    this.#with.ledger.fail(error);
  }

  /** Whether the committee made a cut final that this release cannot read. */
  async #isUnknown(peer: PeerName, from: number): Promise<boolean> {
    const { ledger, network, updateRequired } = this.#with;
    const [head, committee] = [ledger.head(), ledger.committee(from)];
    const claim = this.heights.get(peer)?.claim ?? 0;
    const to = Math.min(claim, this.#batchEnd(from));
    if (to < from || committee === undefined || head.height !== from - 1) return false;
    const question = { type: 'headers', to, count: to - from + 1 } as const;
    // Only of the peer that shows it: what others send says nothing of that, and they have other questions to answer.
    const bytes = await network.ask(peer, 'sync', encodeSyncQuestion(question));
    const version = await unknownVersion(decodeHeadersAnswer(bytes), head, ledger.chainId, committee.members);
    if (version === undefined) return false;
    this.#closed = true;
    updateRequired(version);
    return true;
  }

  /** Beside the sync: only this peer can answer, and it must not hold up what others have. */
  #confirm(peer: PeerName, head: Place): void {
    // One that showed it is enough: a certificate is long.
    if (this.heights.proven >= head.height || this.#confirming.has(peer)) return;
    this.#confirming.add(peer);
    this.#show(peer, head)
      .catch((error) => this.#failed(peer, error))
      .finally(() => this.#confirming.delete(peer));
  }

  /** The peer has nothing newer: it proves its height by the newest cut, which it could not name otherwise. */
  async #show(peer: PeerName, head: Place): Promise<void> {
    const question = encodeSyncQuestion({ type: 'cuts', from: head.height, count: 1 });
    const { last, bodiesFrom } = readCutsOutline(await this.#with.network.ask(peer, 'sync', question));
    // It began with a snapshot of this cut, and serves those after it.
    if (last === undefined && bodiesFrom > head.height) return;
    if (last === undefined) throw new PeerFault(peer, 'false_height', `it has no cut ${head.height}`);
    if (!equalBytes(last.cutId, head.cutId)) throw new PeerFault(peer, 'false_proof', `another cut ${head.height}`);
    this.heights.proved(peer, head.height);
  }

  /**
   * The last cut first, by its certificate or by headers, and only then is anything of the answer unpacked. Undefined
   * where the head has passed it, or another answer is as long.
   */
  async #prove(
    peer: PeerName,
    bytes: Uint8Array,
    { count, certificate }: CutsOutline,
    last: Place,
    asked: Place,
  ): Promise<CutsAnswer | Unproven | undefined> {
    const { ledger } = this.#with;
    const from = ledger.head().height + 1;
    const { height } = last;
    const way = this.#checkpoints.lead(peer, from);
    if (way !== undefined) return { proof: way };
    if (height !== asked.height + count)
      throw new PeerFault(peer, 'false_proof', `cut ${height} where ${asked.height + count} was asked for`);
    const committee = ledger.committee(from);
    if (height < from || committee === undefined) return undefined;
    // Every node keeps it, and this one has to show it to others.
    if (certificate === undefined && (height + 1) % ledger.intervalCuts === 0)
      throw new PeerFault(peer, 'false_height', `it has no certificate of cut ${height}`);
    const vouched = this.#checkpoints.idOf(peer, height, from);
    if (vouched instanceof Promise) return { proof: vouched };
    if (vouched !== undefined && !equalBytes(vouched, last.cutId)) throw this.#checkpoints.fault(peer, height);
    if (vouched === undefined && certificate === undefined) {
      const proven = this.#epochs.idOf(height);
      if (proven === undefined) return { proof: this.#epochs.load(peer, from) };
      if (!equalBytes(proven, last.cutId))
        throw new PeerFault(peer, 'false_proof', 'the epoch ends with another chain');
    }
    if (certificate !== undefined) await this.#certified(peer, last, certificate, committee.members);
    // One after the other: of many that are as long one is unpacked.
    const unpacked = this.#unpacking.then(() =>
      this.#isLonger(height) ? this.#unpack(peer, bytes, asked, committee.members) : undefined,
    );
    this.#unpacking = unpacked.then(
      () => undefined,
      () => undefined,
    );
    return await unpacked;
  }

  async #certified(peer: PeerName, place: Place, certificate: Certificate, members: readonly Member[]): Promise<void> {
    if (!(await isCertified(this.#with.ledger.chainId, place, certificate, members)))
      throw new PeerFault(peer, 'false_proof', `the certificate of cut ${place.height} does not verify`);
  }

  /** An answer whose last cut is proven. The own head may have moved since it was asked for. */
  async #unpack(peer: PeerName, bytes: Uint8Array, asked: Place, members: readonly Member[]): Promise<CutsAnswer> {
    const answer = decodeCutsAnswer(bytes);
    const broken = brokenChain(asked, answer.cuts);
    if (broken !== undefined) throw new PeerFault(peer, 'false_proof', broken);
    const head = this.#with.ledger.head();
    const places = answer.cuts.map(({ header, cutId }) => ({ height: header.height, cutId }));
    const own = places.find((place) => place.height === head.height);
    if (own !== undefined && !equalBytes(own.cutId, head.cutId))
      throw new PeerFault(peer, 'false_proof', `another cut ${head.height}`);
    const next = places.filter((place) => place.height > head.height);
    for (const place of next.slice(0, -1)) {
      const certificate = answer.certificates.get(place.height);
      if (certificate !== undefined) await this.#certified(peer, place, certificate, members);
    }
    for (const place of next) this.#proven.set(place.height, place.cutId);
    return answer;
  }

  async #execute(batch: Batch): Promise<void> {
    const { ledger, network } = this.#with;
    const { certificates } = batch.answer;
    const cuts = batch.answer.cuts.filter((cut) => !this.#isFinal(cut));
    const [first, last] = [cuts[0], cuts.at(-1)].map((cut) => cut?.header.height ?? 0) as [number, number];
    const lacking = cuts.flatMap(({ blockIds }) => blockIds).filter((id) => !ledger.isHere(id));
    const heightOf = new Map(
      cuts.flatMap(({ blockIds, header: { height } }) => blockIds.map((id) => [nameOf(id), height])),
    );
    const fetch = new BlockFetch(lacking, {
      peers: (id) => {
        const height = heightOf.get(nameOf(id)) ?? first;
        return this.#sources(this.heights.names.filter((peer) => (this.heights.get(peer)?.bodiesFrom ?? 0) <= height));
      },
      claims: (peer) => peer === batch.peer || this.heights.claims(peer, first, last),
      ask: (other, question) => network.ask(other, 'sync', question),
      blame: (error, other) => this.#blame(error, other),
      order: this.heights.orders.blocks,
      isHere: (id) => ledger.isHere(id),
    });
    const fetched = new Set(lacking.map(nameOf));
    try {
      for (const [i, cut] of cuts.entries()) {
        this.#queued = cuts.length - i;
        if (this.#closed) return;
        if (this.#isFinal(cut)) continue;
        this.#fetch = () => fetch.look(this.#closed || this.#isFinal(cut));
        const senders = new Set<PeerName>();
        const impossible = await this.#admit(cut, fetch, fetched, senders);
        // Closed meanwhile: some blocks are missing.
        if (this.#closed) return;
        await ledger.settled(SETTLED_MILLIS, cut.blockIds);
        const certificate = certificates.get(cut.header.height);
        const adopted =
          impossible === undefined || this.#isFinal(cut)
            ? await this.#with.adopt(cut, certificate ?? PROVEN_LATER)
            : { invalid: impossible };
        if (adopted === 'later') throw new Error('a block left the pool, or the node stops');
        if (adopted !== 'final') return await this.#doubt({ cut, certificate, reason: adopted.invalid }, senders);
        this.#doubted = undefined;
        this.#fed(batch);
      }
      this.#tell();
    } finally {
      this.#queued = 0;
      this.#fetch = undefined;
      fetch.close();
    }
  }

  /** Neighbours may bring it meanwhile. Its blocks then wait no more, and cannot be admitted again. */
  #isFinal({ header: { height } }: ProposedCut): boolean {
    return this.#with.ledger.head().height >= height;
  }

  /** Those that did not send the blocks of a cut that was not valid with them, where there are such. */
  #sources(peers: readonly PeerName[]): readonly PeerName[] {
    const others = peers.filter((peer) => this.#doubted?.senders.has(peer) !== true);
    return others.length > 0 ? others : peers;
  }

  /** Nobody's bytes may be the reason to stop: the blocks are dropped and fetched again, and the second verdict counts. */
  async #doubt(refuted: RefutedCut, senders: ReadonlySet<PeerName>): Promise<void> {
    const { ledger, log } = this.#with;
    const { cutId, blockIds, header } = refuted.cut;
    if (this.#doubted !== undefined && equalBytes(this.#doubted.cutId, cutId)) {
      this.#closed = true;
      await ledger.refute(refuted);
      return;
    }
    log.warn('a cut that the committee signed is not valid here: its blocks are fetched again', {
      height: header.height,
      reason: refuted.reason,
    });
    this.#doubted = { cutId, senders };
    await ledger.forget(blockIds);
  }

  /**
   * Parents come before their children in a cut, and are added in this order. Returns why a block of it can be in no
   * such cut.
   */
  async #admit(
    cut: ProposedCut,
    fetch: BlockFetch,
    asked: ReadonlySet<string>,
    senders: Set<PeerName>,
  ): Promise<string | undefined> {
    const { ledger } = this.#with;
    for (const [i, id] of cut.blockIds.entries())
      while (!ledger.isHere(id) && !this.#closed && !this.#isFinal(cut)) {
        // A block that waited here when the batch began, or a parent that was added before, was evicted since.
        if (!asked.has(nameOf(id)) || !cut.blockIds.slice(0, i).every((before) => ledger.isHere(before)))
          throw new Error('a block left the pool');
        const block = await fetch.take(id);
        if (block === undefined) continue;
        senders.add(block.from);
        const admitted = await ledger.admit(block.header, block.body, cut);
        if (admitted === 'here' || this.#isFinal(cut)) break;
        if (typeof admitted === 'object') return admitted.impossible;
        if (admitted === 'wrong_body') this.#blame(new PeerFault(block.from, 'bad_block', 'a wrong body'), block.from);
        else await this.#news.wait(PAUSE_MILLIS);
        fetch.again(id, admitted === 'wrong_body' ? block.from : undefined);
      }
    return undefined;
  }

  #tellPruned(height: number): void {
    const { log, steady } = this.#with;
    if (steady() - this.#loggedAt < LOG_MILLIS) return;
    this.#loggedAt = steady();
    log.warn('all peers that are ahead have pruned the cuts that this node lacks: name a full node with --bootstrap', {
      height,
    });
  }

  #tell(): void {
    const { ledger, log, steady } = this.#with;
    const { height } = ledger.head();
    const behindBy = this.heights.best(height, false) - height;
    if (behindBy <= TOLERATED_CUTS || steady() - this.#loggedAt < LOG_MILLIS) return;
    this.#loggedAt = steady();
    log.info('syncing', { height, behind_by: behindBy, peers: this.heights.count });
  }
}

/** Headers are read that prove an answer, or contradict it: then it is asked for again. */
type Unproven = { readonly proof: Promise<void> };

/** `isWhole`: it ends with a batch or an epoch, or is as long as an answer may be. */
type Batch = { readonly peer: PeerName; readonly answer: CutsAnswer; readonly isWhole: boolean };

const lastOf = (batch: Batch | undefined): number => batch?.answer.cuts.at(-1)?.header.height ?? -1;
