/**
 * Reads what a pool shows of its books, its terms, slices, lists and payments, and puts it to the checks, round by round.
 * Credit lists are judged by the one verifier (books rule 13). With a node of the miner's own the ledger is asked too:
 * rewards, targets, and the payouts that commit the books. Reads are passed in as functions, so a page can use it too.
 */
import { type BooksSources, gatherEvidence, gatherRecord } from '../../protocol/books/books-evidence.ts';
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import { sliceCutsOf } from '../../protocol/books/books-terms.ts';
import { type BooksVerdict, judgeProof, judgeRecord } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { type Finding, Suspicions } from './books-alarms.ts';
import type { ListName } from './credit-lists.ts';
import { booksBehind, ChainHeights, ChainPace, type Heights, readNodeHeight } from './heights.ts';
import { KnownLists } from './known-books.ts';
import type { FoundBlock } from './own-blocks.ts';
import { PaymentWatch } from './payments.ts';
import { judged, poolReads, type Terms, type Watching } from './pool-reads.ts';
import { dueSlices } from './rewards.ts';
import type { SignedRecord } from './signed-books.ts';
import { checkSliceLength, checkTerms } from './terms.ts';
import { UnjudgedLists } from './unchecked-time.ts';

/** Newest slices checked for lists. */
const PAGE = 50;
/** How often a list that cannot be judged yet is checked again. */
const MAX_TRIES = 5;

export class ListWatch {
  readonly known: KnownLists;
  readonly #address: string;
  readonly #watching: Watching;
  readonly #services = new Set<BooksService>();
  readonly #payments: PaymentWatch;
  readonly #heights: ChainHeights;
  readonly #pace: ChainPace;
  readonly #suspicions: Suspicions;
  readonly #unjudged: UnjudgedLists;
  /** The address that the miner's own jobs pay; null where the server named none. */
  #poolAddress: string | null = null;
  /** The terms read at the beginning of the round: one document for storing them and for judging lists. */
  #termsOfRound: Terms | undefined;
  /** Proofs that were read in this round, so that all checks of a list use one document. */
  readonly #proofs = new Map<string, Promise<Judged>>();
  #isNodeMissed = false;
  /**
   * The newest closed slice by the pool's height of the last round, capped at what the ledger allows; undefined if it
   * gave none.
   */
  closed: number | undefined;
  /** Lists that were proven, and those of which a part could not be checked. */
  proven = 0;
  unchecked = 0;

  /** `threshold`: the account's payout threshold in atoms, given by the user. */
  constructor(address: string, watching: Watching, threshold?: bigint, known = new KnownLists(watching)) {
    this.known = known;
    this.#address = address;
    this.#watching = { ...watching, pool: poolReads(watching.pool) };
    this.#payments = new PaymentWatch(address, threshold, this.#watching, known.payments);
    this.#heights = new ChainHeights(watching);
    this.#pace = new ChainPace(watching);
    this.#suspicions = new Suspicions(watching.nowMillis);
    this.#unjudged = new UnjudgedLists(watching.nowMillis);
  }

  works(service: BooksService): void {
    this.#services.add(service);
  }

  pays(address: string | null): void {
    this.#poolAddress = address;
  }

  /** The height of a job. The pool claims it too, but jobs with a false height find no blocks. */
  worked(height: number): void {
    this.#heights.worked(height);
  }

  found(block: FoundBlock): void {
    this.known.blocks.found(block);
  }

  /** Why payments cannot be judged, while something is owed. */
  get paymentLapse(): string | undefined {
    return this.#payments.lapse;
  }

  /** Why rewards are not checked; undefined if they are. */
  get lapse(): string | undefined {
    return this.#heights.lapse;
  }

  /** Why the lists count as not checked although the pool answered. */
  get unjudged(): string | undefined {
    return this.#unjudged.why;
  }

  /** More work is left than fits into a round: the next one follows soon. */
  get isBehind(): boolean {
    return this.known.lists.isBehind || this.known.rewards.isBehind;
  }

  /** Something looks false and must be read again. */
  get isSuspicious(): boolean {
    return this.#suspicions.size > 0;
  }

  async round(): Promise<void> {
    const { pool, node, alarm, wallMillis } = this.#watching;
    // An error in one part must not prevent the checks of the others.
    let failure: unknown;
    this.#suspicions.begin();
    this.#termsOfRound = undefined;
    this.#proofs.clear();
    const terms = await (pool('terms') as Promise<Terms>).catch((error: unknown) => {
      if (error instanceof PoolSilence) throw error;
      failure = error;
    });
    this.#termsOfRound = terms ? this.known.terms.held(terms) : undefined;
    if (terms && this.#poolAddress !== null && terms.address !== this.#poolAddress)
      alarm('address_other', terms.address, { published: terms.address, paid: this.#poolAddress });
    const own = terms && node !== null ? await readNodeHeight(terms, node, wallMillis) : null;
    const heights = terms ? this.#heights.of(terms, own) : undefined;
    if (terms) this.closed = closedSlice(terms, heights?.said ?? heights?.known);
    const parts = [...this.#services].map((service) => () => this.#lists(service, heights));
    if (terms && heights) parts.push(...this.#partsOf(terms, heights));
    this.#suspicions.dropUnseen();
    for (const part of parts)
      await part().catch((error: unknown) => {
        failure ??= error;
      });
    if (failure !== undefined) throw failure;
  }

  #partsOf(terms: Terms, heights: Heights): (() => Promise<void>)[] {
    const { known } = this;
    const { nowMillis } = this.#watching;
    const height = heights.said ?? heights.known;
    const proofOf = (service: BooksService, slice: number) => this.#proof(service, slice);
    const blockReads = { ...this.#watching, address: this.#address, proofOf };
    const blocksOf = (service: BooksService, slice: number) => this.#blocksOf(service, slice);
    const onList = (service: BooksService, slice: number) => known.lists.await(`${service}/${slice}`);
    const sources = { ...this.#watching, blocksOf, onList };
    return [
      () => this.#raise(checkTerms(terms, heights, this.#suspicions)),
      async () => {
        if (known.terms.isLongBehind(this.isBehind, nowMillis()))
          await this.#raise(checkSliceLength(terms, await this.#pace.cutMillis()));
      },
      () => this.#raise(known.terms.checkChange(terms, height, nowMillis())),
      () => this.#notices(terms, height),
      () => this.#raise(known.blocks.check(terms, blockReads)),
      () =>
        this.#payments.round({
          lapse: this.lapse,
          closed: this.closed,
          height: heights.known,
          payer: this.#poolAddress ?? terms.address,
        }),
      // A pool without lists shows nothing that could be false: they must be there in time.
      ...[...this.#services].map(
        (service) => () => this.#raise(known.rewards.check(service, terms, heights, sources, this.#suspicions)),
      ),
      async () => {
        const behind = booksBehind(heights);
        if (behind !== undefined) throw new Error(behind);
      },
    ];
  }

  async #raise(findings: Iterable<Finding> | AsyncIterable<Finding>): Promise<void> {
    for await (const finding of findings) this.#watching.alarm(...finding);
  }

  async #notices(terms: Terms, height: number | undefined): Promise<void> {
    if (height === undefined) return;
    // Another pool may not have this route.
    const pool = await this.#watching.pool('pool').catch(() => undefined);
    await this.#raise(this.known.terms.checkNotices(terms, pool, height));
  }

  async #lists(service: BooksService, heights: Heights | undefined): Promise<void> {
    const { lists } = this.known;
    const page = (await this.#watching.pool(`slices/${service}?limit=${PAGE}`)) as {
      slices: readonly { slice: number; credits: { root?: unknown } | null }[];
    };
    const shown = page.slices.map(({ slice }) => slice);
    const isDescending = shown.every((slice, i) => isWhole(slice) && (i === 0 || slice < (shown[i - 1] as number)));
    if (shown.length > PAGE || !isDescending) throw new Error('the pool’s slices have no such form');
    const slices = this.#slicesOf(service, heights);
    if (slices !== undefined && heights?.isApart === false && (shown[0] ?? 0) > slices.open)
      throw new Error('the pool shows slices that are not closed');
    const listed = page.slices.filter(({ credits }) => credits !== null).map(({ slice }) => slice);
    for (const { slice, credits } of page.slices)
      if (typeof credits?.root === 'string') this.#shown(service, slice, { credit_root: credits.root });
    lists.listed(service, listed, heights?.known === undefined ? -1 : slices?.due);
    let failure: unknown;
    for (const slice of lists.due(service))
      await this.#list(service, slice).catch((error: unknown) => {
        lists.refuse(`${service}/${slice}`);
        failure ??= error;
      });
    if (failure !== undefined) throw failure;
  }

  /** The slices due by all known heights, and open by any of them; undefined if not known. */
  #slicesOf(service: BooksService, heights: Heights | undefined): { due: number; open: number } | undefined {
    const { least, said, known } = heights ?? {};
    if (this.#termsOfRound === undefined || least === undefined) return undefined;
    return dueSlices(this.#termsOfRound, service, { height: least, said: Math.max(least, said ?? 0, known ?? 0) });
  }

  /** Compares what the pool shows of a list with the one that was judged. */
  #shown(service: BooksService, slice: number, list: Partial<ListName>, document?: PoolProof): void {
    const { lists } = this.known;
    const name = `${service}/${slice}`;
    const isOther = lists.isOther(name, list);
    const what = `${list.list_id === undefined ? 'shown' : 'given'} ${name}`;
    if (this.#suspicions.isSure(what, isOther) && isOther)
      this.#watching.alarm(...lists.changed(service, slice, list, document));
  }

  async #list(service: BooksService, slice: number): Promise<void> {
    const { alarm, note, node } = this.#watching;
    const { lists, payments } = this.known;
    const { proof, verdict } = await this.#proof(service, slice);
    const name = `${service}/${slice}`;
    lists.delivered(name);
    if (!this.#suspicions.isSure(`list ${name}`, verdict.verdict === 'false')) return;
    if (verdict.verdict === 'unchecked') {
      if (lists.tried(name) < MAX_TRIES && node !== null) return;
      this.unchecked++;
      if (node !== null)
        note('a credit list could not be checked', { service, slice, missing: verdict.missing.join(' ') });
      else if (!this.#isNodeMissed) note('credit lists are checked without the ledger (--node-api)', {});
      this.#isNodeMissed = true;
    } else if (verdict.verdict === 'false') alarm('list_false', name, { service, slice, reason: verdict.reason });
    else this.proven++;
    if (verdict.verdict !== 'false') payments.credited(service, slice, verdict.credit);
    if (node !== null) this.#unjudged.settled(service, slice, verdict.verdict === 'unchecked' ? verdict.missing : []);
    lists.settle(name, proof, verdict.verdict === 'false');
  }

  get #sources(): BooksSources {
    const { pool, node } = this.#watching;
    return {
      pool: async (path) => (path === 'terms' ? this.#termsOfRound : undefined) ?? (await pool(path)),
      node,
      poolAddress: this.#poolAddress,
    };
  }

  #proof(service: BooksService, slice: number): Promise<Judged> {
    const name = `${service}/${slice}`;
    const read = this.#proofs.get(name) ?? this.#readProof(service, slice);
    this.#proofs.set(name, read);
    return read;
  }

  async #readProof(service: BooksService, slice: number): Promise<Judged> {
    const { pool } = this.#watching;
    const proof = (await pool(`proofs/${service}/${slice}?address=${this.#address}`)) as PoolProof;
    const verdict = await judged<BooksVerdict>(async () => {
      const isAsked = proof?.service === service && proof.slice === slice && proof.address === this.#address;
      if (!isAsked) throw new ProtocolError('out_of_range', 'the proof is of something else');
      return judgeProof(proof, await gatherEvidence(proof, this.#sources));
    }, MALFORMED);
    this.#shown(service, slice, { list_id: proof?.list_id, credit_root: proof?.credit_root }, proof);
    return { proof, verdict };
  }

  /** Blocks of a list, from the judged document itself: the pool could show another one to readers of the list. */
  async #blocksOf(service: BooksService, slice: number): Promise<ReadonlySet<string>> {
    const { proof, verdict } = await this.#proof(service, slice);
    return new Set(verdict.verdict === 'false' ? [] : proof.blocks.map(({ block_id: id }) => id));
  }

  /**
   * A record that the pool signed must be the one that it publishes, and that its payouts commit on the ledger. `kept`:
   * it is the published one, but no payout commits to it yet, so the pool could still publish another. `open`: it could
   * not be checked.
   */
  async signed(record: SignedRecord): Promise<'settled' | 'kept' | 'open'> {
    const { node, alarm } = this.#watching;
    const { service, slice } = record;
    this.#suspicions.begin();
    const judge = async () => judgeRecord(record, await gatherRecord(record, this.#sources));
    const verdict = await judged(judge, MALFORMED);
    if (!this.#suspicions.isSure(`record ${service}/${slice}`, verdict.verdict === 'false')) return 'open';
    if (verdict.verdict === 'false') {
      alarm('ledger_other', `${service}/${slice}`, { service, slice, reason: verdict.reason });
      return 'settled';
    }
    if (verdict.verdict === 'proven') return verdict.committed === null ? 'kept' : 'settled';
    return node === null && verdict.missing.every((each) => each === 'commitments') ? 'kept' : 'open';
  }
}

function closedSlice({ terms }: Terms, said: number | undefined): number | undefined {
  const cuts = sliceCutsOf(terms);
  return cuts === undefined || said === undefined ? undefined : Math.floor(said / cuts) - 1;
}

type Judged = { readonly proof: PoolProof; readonly verdict: BooksVerdict };

const MALFORMED: BooksVerdict = { verdict: 'false', reason: 'malformed' };
