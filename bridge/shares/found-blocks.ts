/**
 * Found blocks: each is recorded by the sink, then sent to all nodes at once, again while no node can be reached, and
 * tracked until the cut that pays its anchor pays it too, or its window closes. Results are reported to the sink and
 * kept for the statistics.
 */
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { MAX_CUT_BLOCKS } from '../../protocol/ledger/cut.ts';
import { registrationWindowEnd } from '../../protocol/ledger/header.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { CandidateAnswer, CutNews, Upstream } from '../nodes/upstream.ts';
import type { BlockFate, FoundBlock, ShareSink } from './sink.ts';

export type BlockEntry = {
  readonly id: string;
  readonly service: string;
  readonly account: Bytes;
  readonly worker: string;
  readonly anchorHeight: number;
  readonly atMillis: number;
  fate: BlockFate | { readonly state: 'sent' };
};

export type FoundBlocksDependencies = {
  readonly upstream: Pick<Upstream, 'submit'>;
  readonly sink: Pick<ShareSink, 'block' | 'blockFate' | 'knowsFinder'>;
  /** A node has answered. */
  readonly sent?: (blockId: Bytes) => void;
  readonly log: {
    info(message: string, fields?: Readonly<Record<string, unknown>>): void;
    warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
    error(message: string, fields?: Readonly<Record<string, unknown>>): void;
  };
  /** Rejects when the signal is aborted. */
  readonly sleep: (millis: number, signal?: AbortSignal) => Promise<unknown>;
};

/**
 * How long sending waits for the sink. A reward whose block was not recorded has to be matched to its finder later, and
 * recording takes milliseconds; but a block must not be late because a disk hangs.
 */
const BOOK_MILLIS = 250;
/**
 * How long it waits when the finder is not on record, because the first share of a connection is a block. If it were
 * sent first and this process ended, the finder of its reward would be unknown. This is a small part of the 96 cuts in
 * which a block can be registered; a disk that hangs for longer has failed, and a block that is not sent is certainly
 * lost.
 */
const FIRST_BOOK_MILLIS = 20_000;
/** Delay between attempts to record a block whose finder is not on record. */
const BOOK_AGAIN_MILLIS = 500;
const RETRY_MILLIS = { first: 250, most: 10_000 };
/** Finished blocks kept for the statistics. */
const KEPT = 1_000;
/**
 * Blocks without a final state: as many as a whole window of cuts can register. There can be more only if a node sends
 * a target that every hash meets; then the oldest are dropped.
 */
const MAX_OPEN = MAX_CUT_BLOCKS * REGISTRATION_WINDOW;

export class FoundBlocks {
  readonly #dependencies: FoundBlocksDependencies;
  readonly #open = new Map<string, BlockEntry>();
  #done: BlockEntry[] = [];
  readonly #sending = new Set<Promise<void>>();
  #height = 0;
  #closed = false;
  readonly counts = { found: 0, accepted: 0, late: 0, refused: 0, paid: 0, expired: 0 };
  paidAtoms = 0n;

  constructor(dependencies: FoundBlocksDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * First the sink, then the nodes. The body is encoded for each attempt: it is a mebibyte, and it may take long until
   * a node can be reached.
   */
  add(block: FoundBlock, body: () => Bytes): void {
    const id = toHex(block.blockId);
    const { service, account, worker, anchorHeight, atMillis } = block;
    const entry: BlockEntry = { id, service, account, worker, anchorHeight, atMillis, fate: { state: 'sent' } };
    this.#open.set(id, entry);
    if (this.#open.size > MAX_OPEN) this.#giveUp();
    this.counts.found++;
    const isKnown = this.#dependencies.sink.knowsFinder?.(block) ?? true;
    const booked = this.#book(entry, block, isKnown);
    const isBooked = new AbortController();
    void booked.then(() => isBooked.abort());
    const limit = this.#dependencies
      .sleep(isKnown ? BOOK_MILLIS : FIRST_BOOK_MILLIS, isBooked.signal)
      .catch(() => undefined);
    const sending = Promise.race([booked, limit]).then(() => this.#send(entry, block, body));
    this.#sending.add(sending);
    void sending.finally(() => this.#sending.delete(sending));
    this.#dependencies.log.info('block found', { block: id, service, worker, anchor: anchorHeight });
  }

  async #book(entry: BlockEntry, block: FoundBlock, isKnown: boolean): Promise<void> {
    const { sink, log, sleep } = this.#dependencies;
    for (let isFirst = true; ; isFirst = false) {
      try {
        await sink.block(block);
        return;
      } catch (error) {
        if (isFirst) log.error('a block could not be written to the books', { block: entry.id, error });
      }
      if (isKnown || this.#isOver(entry)) return;
      await sleep(BOOK_AGAIN_MILLIS);
    }
  }

  /** No node accepts it any more, or its result is known. */
  #isOver(entry: BlockEntry): boolean {
    const isOpen = !this.#closed && this.#open.has(entry.id);
    return !isOpen || this.#height >= registrationWindowEnd(entry.anchorHeight);
  }

  #giveUp(): void {
    const [oldest] = this.#open.values();
    if (oldest === undefined) return;
    this.counts.expired++;
    this.#finish(oldest, { state: 'expired', height: this.#height });
  }

  async #send(entry: BlockEntry, { header, blockId }: FoundBlock, body: () => Bytes): Promise<void> {
    for (let wait = RETRY_MILLIS.first; ; wait = Math.min(2 * wait, RETRY_MILLIS.most)) {
      const answers = await this.#dependencies.upstream.submit(header, body);
      const best = bestOf(answers.map(({ answer }) => answer));
      if (best !== undefined) {
        this.#dependencies.sent?.(blockId);
        if (best.state === 'refused')
          this.#dependencies.log.error('block refused', { block: entry.id, reason: best.reason });
        this.counts[best.state === 'known' ? 'accepted' : best.state]++;
        return this.#tell(entry, best);
      }
      if (this.#isOver(entry)) return;
      await this.#dependencies.sleep(wait);
    }
  }

  /** A cut pays the blocks of one anchor: a block that is not among them will never be paid. */
  onCut(cut: CutNews): void {
    this.#height = Math.max(this.#height, cut.height);
    for (const { blockId, transactionId, outputIndex, amount } of cut.rewards) {
      const entry = this.#open.get(blockId);
      if (entry === undefined) continue;
      this.counts.paid++;
      this.paidAtoms += amount;
      this.#finish(entry, { state: 'paid', height: cut.height, transactionId, outputIndex, amount });
    }
    for (const entry of this.#open.values())
      if (registrationWindowEnd(entry.anchorHeight) <= this.#height) {
        this.counts.expired++;
        this.#finish(entry, { state: 'expired', height: cut.height });
      }
  }

  #finish(entry: BlockEntry, fate: BlockFate): void {
    this.#open.delete(entry.id);
    this.#done.push(entry);
    if (this.#done.length > 2 * KEPT) this.#done = this.#done.slice(-KEPT);
    this.#tell(entry, fate);
  }

  #tell(entry: BlockEntry, fate: BlockFate): void {
    if (entry.fate.state === 'paid' || entry.fate.state === 'expired') return;
    entry.fate = fate;
    this.#dependencies.log.info('block fate', { block: entry.id, state: fate.state });
    this.#dependencies.sink.blockFate(Uint8Array.from(Buffer.from(entry.id, 'hex')), fate).catch((error: unknown) =>
      this.#dependencies.log.error('the state of a block could not be written to the books', {
        block: entry.id,
        error,
      }),
    );
  }

  /** Newest first. */
  list(limit: number): readonly BlockEntry[] {
    return [...this.#done, ...this.#open.values()].sort((a, b) => b.atMillis - a.atMillis).slice(0, limit);
  }

  /** Waits until blocks being sent have an answer; those that no node accepts are given up. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#sending);
  }
}

const RANK = { accepted: 3, known: 2, late: 1, refused: 0 } as const;

function bestOf(answers: readonly CandidateAnswer[]): CandidateAnswer | undefined {
  return answers.toSorted((a, b) => RANK[b.state] - RANK[a.state])[0];
}
