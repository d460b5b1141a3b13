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
import type { Logger } from '../../../runtime/log/log.ts';
import type { Adopt } from '../../chain/adopted-cut.ts';
import type { Checkpoint } from '../../chain/checkpoints.ts';
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
import { EpochProof } from './epoch-proof.ts';
import { askHurried, HASTE_MILLIS, type ReadAnswer } from './hurried-ask.ts';
import {
  ANSWER_BYTES,
  batchEnd,
  type CutsAnswer,
  decodeCutsAnswer,
  decodeHeadersAnswer,
  encodeSyncQuestion,
  type SyncQuestion,
} from './sync-messages.ts';
import { unknownVersion } from './unknown-cut.ts';
import { WakeUp } from './wake-up.ts';

/** Delay after all peers failed. */
const PAUSE_MILLIS = 2_000;
/** So often a question for cuts goes to whoever waits longest. */
const IN_TURN_MILLIS = 5_000;
/** So long after the question an answer that brings less than its peer has makes room for one that brings all. */
const SHORT_MILLIS = 4_000;
const LOG_MILLIS = 10_000;
/** Twelve cuts: a head that is as old does not move. */
const STANDS_MILLIS = 30_000;
/** Peers that are asked for headers beside the one that sent cuts. */
const MAX_OTHERS = 8;
/** Peers that are asked at one time what they have. */
const LOOKS = 5;
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
  steady(): number;
  /** Without news for this long, a peer is asked. */
  readonly probeMillis: number;
  /** The chain has cuts of a version that this release does not know; syncing stops. */
  updateRequired(version: number): void;
};

export class CutSync {
  readonly heights: PeerHeights;
  readonly #with: CutSyncDependencies;
  readonly #epochs: EpochProof;
  readonly #checkpoints: CheckpointProof;
  readonly #news = new WakeUp();
  readonly #ending = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  #queued = 0;
  /** Looks whether a block or cut that is fetched came by another way. */
  #look: (() => void) | undefined;
  /** Peers that were asked to prove their height. */
  readonly #confirming = new Set<PeerName>();
  /** Peers that were asked what they have. */
  readonly #looking = new Set<PeerName>();
  #loggedAt = 0;
  /** When headers were last proven, of which a proof may need many. */
  #headersAt = Number.NEGATIVE_INFINITY;
  #anyAt = Number.NEGATIVE_INFINITY;
  #inTurnAt = Number.NEGATIVE_INFINITY;
  /** The head that was last waited at, and since when. */
  #stands = { height: -1, since: 0 };
  /** A proven cut that broke a rule here, and who sent its blocks: they come anew, from others where there are others. */
  #doubted: { readonly cutId: Bytes; readonly senders: ReadonlySet<PeerName> } | undefined;

  constructor(dependencies: CutSyncDependencies) {
    this.#with = dependencies;
    this.heights = new PeerHeights(dependencies.steady);
    const ask = <T>(peer: PeerName, question: SyncQuestion, read: ReadAnswer<T>) =>
      this.#askSoon(peer, question, async (sender, answer) => {
        const found = await read(sender, answer);
        if (found === undefined) return undefined;
        // It counts as cuts do: the way may be long.
        this.heights.brought(sender, true);
        this.#headersAt = dependencies.steady();
        return found;
      });
    this.#epochs = new EpochProof(dependencies.ledger, ask);
    this.#checkpoints = new CheckpointProof({ ...dependencies, ask });
  }

  /** Cuts that are proven but not executed yet. */
  get queued(): number {
    return this.#queued;
  }

  start(): void {
    this.#running = this.#run();
    this.#timer = setInterval(() => this.#lookAround(), PAUSE_MILLIS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    this.wake();
    this.#ending.resolve();
    this.arrived();
    await this.#running;
  }

  /** New cuts may be available. */
  wake(): void {
    this.#news.wake();
  }

  /** A block or a cut came by another way. */
  arrived(): void {
    this.#look?.();
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      const { ledger, probeMillis, steady } = this.#with;
      const { height } = ledger.head();
      let peer = this.#isDue(height) ? this.#next(height) : undefined;
      if (peer === undefined) {
        const isClaimed = this.#isDue(height);
        const began = steady();
        if (this.#stands.height !== height) this.#stands = { height, since: began };
        if (this.heights.isPruned(height, began - this.#stands.since >= STANDS_MILLIS)) this.#tellPruned(height);
        await this.#news.wait(isClaimed ? PAUSE_MILLIS : probeMillis);
        const head = ledger.head().height;
        const isQuiet = head === height && steady() - began >= probeMillis;
        if (this.#with.hasNeighbours && !isQuiet && !this.#isDue(head)) continue;
        peer = this.heights.next(head) ?? this.#any();
      }
      if (peer !== undefined && !this.#closed) await this.#advance(peer);
    }
  }

  /** From time to time whoever waits longest: those that always bring a little, and soon, would keep all others away. */
  #next(height: number): PeerName | undefined {
    const isInTurn = this.#with.steady() - this.#inTurnAt >= IN_TURN_MILLIS;
    if (isInTurn) this.#inTurnAt = this.#with.steady();
    return this.heights.next(height, undefined, undefined, isInTurn);
  }

  /** From time to time one of those that rest or claim nothing: what wakes the loop may be any number of strangers. */
  #any(): PeerName | undefined {
    const { probeMillis, steady } = this.#with;
    if (steady() - this.#anyAt < Math.min(PAUSE_MILLIS, probeMillis)) return undefined;
    this.#anyAt = steady();
    return this.heights.any();
  }

  /** Whether a peer claims enough that it is asked. */
  #isDue(height: number): boolean {
    return this.heights.isClaimed(this.#with.hasNeighbours ? height + TOLERATED_CUTS : height);
  }

  /**
   * While somebody claims more: what the others have by now. Gossip tells it only of who announces a cut first, and that
   * may always be those who never send it.
   */
  #lookAround(): void {
    const head = this.#with.ledger.head().height;
    if (this.#closed || !this.#isDue(head)) return;
    const question = encodeSyncQuestion({ type: 'cuts', from: head + 1, count: 1 });
    for (const peer of this.heights.unheard(LOOKS, this.#looking)) {
      this.#looking.add(peer);
      const asked = this.#with.network.ask(peer, 'sync', question);
      // Who does not answer is blamed where the answer is needed.
      asked
        .then(
          (answer) => this.#hear(peer, answer),
          () => undefined,
        )
        .finally(() => this.#looking.delete(peer));
    }
  }

  #hear(peer: PeerName, bytes: Uint8Array): void {
    try {
      const { head, bodiesFrom } = decodeCutsAnswer(bytes);
      this.heights.says(peer, head, bodiesFrom);
    } catch (error) {
      // One of another version is read where it is asked for.
      if (!(error instanceof ProtocolError && error.code === 'unsupported_version')) this.#blame(error, peer);
    }
  }

  #blame(error: unknown, peer: PeerName): void {
    const { network, log } = this.#with;
    log.debug('a peer did not deliver', { peer, reason: (error as Error).message });
    blame(network, peer, error);
  }

  /** From this peer; also from another one that says it can answer, if this one is slow or its answer does not count. */
  #askSoon<T>(first: PeerName, question: SyncQuestion, read: ReadAnswer<T>): Promise<T | undefined> {
    const { ledger, network, steady } = this.#with;
    const { height } = ledger.head();
    // A question for cuts lasts until there are some; one for headers belongs to cuts that a stranger may have invented.
    const isOfHeaders = question.type === 'headers';
    const least = isOfHeaders ? Math.max(question.to, height + 1) : height + 1;
    let others = isOfHeaders ? MAX_OTHERS : Number.POSITIVE_INFINITY;
    const isMoving = () => !isOfHeaders && steady() - this.#headersAt < HASTE_MILLIS;
    return askHurried(first, encodeSyncQuestion(question), {
      ask: async (peer, bytes) => {
        const since = steady();
        const answer = await network.ask(peer, 'sync', bytes);
        this.heights.answered(peer, steady() - since);
        return answer;
      },
      another: (except, inTurn) =>
        isMoving() || others-- <= 0 ? undefined : this.heights.next(height, except, least, inTurn),
      late: (peer) => this.heights.late(peer),
      read,
      failed: (peer, error) => this.#failed(peer, error),
    });
  }

  #failed(peer: PeerName, error: unknown): void {
    if (this.#closed) return;
    // What is wrong may have come from another peer than the cuts. Of those that did not prove them each was told of already.
    if (isBusy(error)) this.heights.busy(peer);
    else if (!(error instanceof UnprovenError))
      this.heights.failed(error instanceof PeerFault ? error.peer : peer, this.#with.ledger.head().height + 1);
    this.#blame(error, peer);
  }

  async #advance(first: PeerName): Promise<void> {
    const head = this.#with.ledger.head();
    const from = head.height + 1;
    const count = batchEnd(from) - head.height;
    const claims = this.heights.claims();
    const since = this.#with.steady();
    const read = async (peer: PeerName, bytes: Uint8Array) => {
      const found = await this.#read(peer, bytes, head, claims.get(peer) ?? 0);
      // Otherwise those that bring one cut, and soon, would always come before one that is slow and brings all.
      if (found !== undefined && found !== 'over' && !found.isWhole) await this.#waitUntil(since + SHORT_MILLIS);
      return found;
    };
    const batch = await this.#askSoon(first, { type: 'cuts', from, count }, read);
    if (batch === undefined || batch === 'over') return;
    try {
      // Meanwhile some of these cuts may have arrived by another way.
      await this.#execute(batch.answer, batch.peer);
      this.heights.brought(batch.peer, batch.isWhole);
    } catch (error) {
      this.#failed(batch.peer, error);
    }
  }

  /** Or until this node stops. */
  async #waitUntil(millis: number): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, millis - this.#with.steady());
    await Promise.race([late.promise, this.#ending.promise]);
    clearTimeout(timer);
  }

  /** Proven cuts after the head. Undefined if this peer has none; `over` where nobody's would help any more. */
  async #read(peer: PeerName, bytes: Uint8Array, head: Place, claimed: number): Promise<Batch | 'over' | undefined> {
    const from = head.height + 1;
    try {
      const answer = decodeCutsAnswer(bytes);
      this.heights.says(peer, answer.head, answer.bodiesFrom);
      const last = answer.cuts.at(-1);
      if (last === undefined) {
        const claim = Math.max(claimed, answer.head);
        if (answer.bodiesFrom > from) {
          if (claim >= from) this.heights.brought(peer, false);
          return undefined;
        }
        if (claim >= from) throw new PeerFault(peer, 'false_height', `it claimed ${claim} and has no cut ${from}`);
        if (answer.head >= head.height) this.#confirm(peer, head);
        return undefined;
      }
      await this.#prove(peer, answer, last, from);
      this.heights.proved(peer, last.header.height);
      // Cut by cut, a chain would take days: an answer ends where the batch, the epoch or the peer's chain does.
      const end = Math.min(batchEnd(from), this.#epochEnd(from), Math.max(claimed, answer.head));
      return { peer, answer, isWhole: last.header.height >= end || bytes.length >= ANSWER_BYTES };
    } catch (error) {
      if (error instanceof ProtocolError && error.code === 'unsupported_version' && (await this.#isUnknown(peer, from)))
        return 'over';
      if (error instanceof MovedOnError) return 'over';
      if (error instanceof ContradictedError) {
        this.#end(error);
        return 'over';
      }
      throw error;
    }
  }

  #epochEnd(height: number): number {
    const { intervalCuts } = this.#with.ledger;
    return (epochOf(height, intervalCuts) + 1) * intervalCuts - 1;
  }

  /** The chain went where this node cannot follow. */
  #end(error: Error): void {
    this.#closed = true;
    this.#with.ledger.fail(error);
  }

  /** Whether the committee made a cut final that this release cannot read. */
  async #isUnknown(peer: PeerName, from: number): Promise<boolean> {
    const { ledger, updateRequired } = this.#with;
    const [head, committee] = [ledger.head(), ledger.committee(from)];
    const claim = this.heights.get(peer)?.claim ?? 0;
    const to = Math.min(claim, batchEnd(from), this.#epochEnd(from));
    if (to < from || committee === undefined || head.height !== from - 1) return false;
    const question = { type: 'headers', to, count: to - from + 1 } as const;
    const answer = await this.#askSoon(peer, question, (_, bytes) => decodeHeadersAnswer(bytes));
    const version = answer && (await unknownVersion(answer, head, ledger.chainId, committee.members));
    if (version === undefined) return false;
    this.#closed = true;
    updateRequired(version);
    return true;
  }

  /** Beside the sync: only this peer can answer, and it must not hold up what others have. */
  #confirm(peer: PeerName, head: Place): void {
    if ((this.heights.get(peer)?.proven ?? -1) >= head.height || this.#confirming.has(peer)) return;
    this.#confirming.add(peer);
    this.#show(peer, head)
      .catch((error) => this.#failed(peer, error))
      .finally(() => this.#confirming.delete(peer));
  }

  /** The peer has nothing newer: it proves its height by the newest cut, which it could not name otherwise. */
  async #show(peer: PeerName, head: Place): Promise<void> {
    const question = encodeSyncQuestion({ type: 'cuts', from: head.height, count: 1 });
    const { cuts, bodiesFrom } = decodeCutsAnswer(await this.#with.network.ask(peer, 'sync', question));
    const [cut] = cuts;
    // It began with a snapshot of this cut, and serves those after it.
    if (cut === undefined && bodiesFrom > head.height) return;
    if (cut === undefined) throw new PeerFault(peer, 'false_height', `it has no cut ${head.height}`);
    if (!equalBytes(cut.cutId, head.cutId)) throw new PeerFault(peer, 'false_proof', `another cut ${head.height}`);
    this.heights.proved(peer, head.height);
  }

  async #prove(peer: PeerName, { cuts, certificates }: CutsAnswer, last: ProposedCut, from: number): Promise<void> {
    const { ledger } = this.#with;
    const committee = ledger.committee(from);
    const head = ledger.head();
    if (head.height !== from - 1 || committee === undefined) throw new MovedOnError('the chain went on meanwhile');
    await this.#checkpoints.lead(peer, from);
    const broken = brokenChain(head, cuts);
    if (broken !== undefined) throw new PeerFault(peer, 'false_proof', broken);
    if (epochOf(last.header.height, ledger.intervalCuts) !== epochOf(from, ledger.intervalCuts))
      throw new PeerFault(peer, 'malformed', 'cuts of two epochs');
    const places = cuts.map(({ header, cutId }) => ({ height: header.height, cutId }));
    const isVouchedFor = await this.#checkpoints.proves(peer, places);
    if (!isVouchedFor && !certificates.has(last.header.height)) {
      const proven = await this.#epochs.idOf(peer, last.header.height, from);
      if (!equalBytes(proven, last.cutId))
        throw new PeerFault(peer, 'false_proof', 'the epoch ends with another chain');
    }
    for (const place of places) {
      const certificate = certificates.get(place.height);
      if (certificate === undefined) continue;
      if (!(await isCertified(ledger.chainId, place, certificate, committee.members)))
        throw new PeerFault(peer, 'false_proof', `the certificate of cut ${place.height} does not verify`);
    }
  }

  async #execute({ cuts, certificates }: CutsAnswer, peer: PeerName): Promise<void> {
    const { ledger, network } = this.#with;
    const [first, last] = [cuts[0] as ProposedCut, cuts.at(-1) as ProposedCut].map(({ header }) => header.height) as [
      number,
      number,
    ];
    const lacking = cuts.flatMap(({ blockIds }) => blockIds).filter((id) => !ledger.isHere(id));
    const fetch = new BlockFetch(lacking, {
      peers: () => this.#sources([peer, ...this.heights.having(first, last).filter((other) => other !== peer)]),
      ask: (other, question) => network.ask(other, 'sync', question),
      blame: (error, other) => this.#blame(error, other),
      pace: this.heights.pace,
      isHere: (id) => ledger.isHere(id),
    });
    const fetched = new Set(lacking.map(nameOf));
    try {
      for (const [i, cut] of cuts.entries()) {
        this.#queued = cuts.length - i;
        if (this.#closed) return;
        if (this.#isFinal(cut)) continue;
        this.#look = () => fetch.look(this.#closed || this.#isFinal(cut));
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
      }
      this.#tell();
    } finally {
      this.#queued = 0;
      this.#look = undefined;
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

/** `isWhole`: all that one answer of the peer could bring. */
type Batch = { readonly peer: PeerName; readonly answer: CutsAnswer; readonly isWhole: boolean };

/** The ledger changed meanwhile: the next question begins where it is now. */
class MovedOnError extends Error {}
