/**
 * Judges a pool's credit lists for a miner, by the one verifier (books rule 13), and checks where the pool books the
 * blocks that this miner found: a block itself shows its service (rule 22). With a node of the miner's own the ledger
 * is asked too: rewards, targets, and the payouts that commit the books. Reads are passed in as functions, so a page
 * can use it too.
 */
import { type BooksSources, gatherEvidence, gatherRecord } from '../../protocol/books/books-evidence.ts';
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import { sliceCutsOf } from '../../protocol/books/books-terms.ts';
import { type BooksVerdict, judgeProof, judgeRecord } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { ListEvidence } from '../../protocol/evidence/list-evidence.ts';
import type { UnpaidEvidence } from '../../protocol/evidence/unpaid-evidence.ts';
import { booksBehind, ChainHeights, type Heights } from './chain-heights.ts';
import { dueSlices } from './due-rewards.ts';
import { JudgedLists } from './judged-lists.ts';
import { type FoundBlock, OwnBlocks } from './own-blocks.ts';
import { PaymentWatch } from './payment-watch.ts';
import { judged, poolReads, type Terms } from './pool-reads.ts';
import { RewardWatch } from './reward-watch.ts';
import type { SignedRecord } from './signed-records.ts';
import { Suspicions } from './suspicions.ts';
import { LISTS_A_ROUND, TermsWatch } from './terms-watch.ts';
import { UnjudgedLists } from './unjudged-lists.ts';

export type ListAlarmKind =
  | 'list_false'
  | 'list_changed'
  | 'ledger_other'
  | 'address_other'
  | 'block_service'
  | 'block_finder'
  | 'block_unowned'
  | 'block_fee'
  | 'rewards_hidden'
  | 'rewards_withheld'
  | 'rewards_crowded'
  | 'terms_changed'
  | 'fee_unannounced'
  | 'window_unannounced'
  | 'terms_false'
  | 'slices_short'
  | 'unpaid';

export type ListWatchDependencies = {
  /** Reads `api/v1/PATH` of the pool. */
  readonly pool: (path: string) => Promise<unknown>;
  readonly node: BooksSources['node'];
  readonly alarm: (
    kind: ListAlarmKind,
    what: string,
    fields: Readonly<Record<string, unknown>>,
    evidence?: ListEvidence | UnpaidEvidence,
  ) => void;
  readonly note: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Monotonic, with any origin. */
  readonly nowMillis: () => number;
  /** The wall clock: timestamps of cuts are compared with it. */
  readonly wallMillis: () => number;
};

/** Newest slices checked for lists. */
const PAGE = 50;
/** How often a list that cannot be judged yet is checked again. */
const MAX_TRIES = 5;
const MAX_KEPT = 256;

export class ListWatch {
  readonly #address: string;
  readonly #dependencies: ListWatchDependencies;
  readonly #services = new Set<BooksService>();
  /** Lists that were judged, or that existed before the first round of their service. */
  readonly #judged: JudgedLists;
  /** Lists that existed before the first round and still have to be judged, at low priority. */
  readonly #early = new Set<string>();
  readonly #looked = new Set<BooksService>();
  readonly #tries = new Map<string, number>();
  readonly #blocks: OwnBlocks;
  readonly #terms: TermsWatch;
  readonly #rewards: RewardWatch;
  readonly #payments: PaymentWatch;
  readonly #heights: ChainHeights;
  /** The address that the miner's own jobs pay; null where the server named none. */
  #poolAddress: string | null = null;
  /** The terms read at the beginning of the round: one document for storing them and for judging lists. */
  #termsOfRound: Terms | undefined;
  #isNodeMissed = false;
  readonly #suspicions: Suspicions;
  readonly #unjudged: UnjudgedLists;
  /** Proofs that were read in this round, so that all checks of a list use one document. */
  readonly #proofs = new Map<string, Promise<Judged>>();
  /**
   * `service/slice` of lists that are there and were not judged yet, oldest first. Tracked individually: the page of
   * the newest slices soon shows others.
   */
  readonly #awaited = new Set<string>();
  /**
   * `service/slice` of lists whose proofs were not delivered. They are requested until they are, also when newer slices
   * have displaced them.
   */
  readonly #refused = new Set<string>();
  proven = 0;
  unchecked = 0;

  /** `threshold`: the account's payout threshold in atoms, given by the user. */
  constructor(address: string, dependencies: ListWatchDependencies, threshold?: bigint) {
    this.#address = address;
    this.#dependencies = { ...dependencies, pool: poolReads(dependencies.pool) };
    const proofOf = (service: BooksService, slice: number) => this.#proof(service, slice);
    this.#blocks = new OwnBlocks(address, { ...this.#dependencies, proofOf });
    this.#unjudged = new UnjudgedLists(dependencies.nowMillis);
    this.#suspicions = new Suspicions(dependencies.nowMillis);
    this.#judged = new JudgedLists(this.#suspicions, dependencies.alarm);
    this.#heights = new ChainHeights(dependencies);
    this.#terms = new TermsWatch(this.#dependencies, this.#suspicions);
    const blocksOf = (service: BooksService, slice: number) => this.#blocksOf(service, slice);
    const onList = (service: BooksService, slice: number) => this.#await(`${service}/${slice}`);
    this.#payments = new PaymentWatch(address, threshold, this.#dependencies);
    this.#rewards = new RewardWatch({ ...this.#dependencies, blocksOf, onList }, this.#suspicions);
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
    this.#blocks.found(block);
  }

  async round(): Promise<void> {
    const { pool, alarm } = this.#dependencies;
    // An error in one part must not prevent the checks of the others.
    let failure: unknown;
    this.#suspicions.begin();
    this.#termsOfRound = undefined;
    this.#proofs.clear();
    const terms = await (pool('terms') as Promise<Terms>).catch((error: unknown) => {
      if (error instanceof PoolSilence) throw error;
      failure = error;
    });
    this.#termsOfRound = terms ? this.#terms.held(terms) : undefined;
    if (terms && this.#poolAddress !== null && terms.address !== this.#poolAddress)
      alarm('address_other', terms.address, { published: terms.address, paid: this.#poolAddress });
    const heights = terms ? await this.#heights.of(terms) : undefined;
    if (terms) this.closed = closedSlice(terms, heights?.said ?? heights?.known);
    const parts = [...this.#services].map((service) => () => this.#lists(service, heights));
    if (terms && heights) {
      parts.push(
        async () => this.#terms.noteFault(terms, heights),
        () => this.#terms.noteShort(terms, this.isBehind),
        ...this.#partsOf(terms, heights),
      );
    }
    this.#suspicions.dropUnseen();
    for (const part of parts)
      await part().catch((error: unknown) => {
        failure ??= error;
      });
    if (failure !== undefined) throw failure;
  }

  #partsOf(terms: Terms, heights: Heights): (() => Promise<void>)[] {
    return [
      async () => this.#terms.noteChange(terms, heights),
      () => this.#terms.noteNotices(terms, heights),
      () => this.#blocks.round(terms),
      () =>
        this.#payments.round({
          lapse: this.lapse,
          closed: this.closed,
          height: heights.known,
          payer: this.#poolAddress ?? terms.address,
        }),
      // A pool without lists shows nothing that could be false: they must be there in time.
      ...[...this.#services].map((service) => () => this.#rewards.round(service, terms, heights)),
      async () => {
        const behind = booksBehind(heights);
        if (behind !== undefined) throw new Error(behind);
      },
    ];
  }

  /**
   * The newest closed slice by the pool's height of the last round, capped at what the ledger allows; undefined if it
   * gave none.
   */
  closed: number | undefined;

  /** Why payments cannot be judged, while something is owed. */
  get paymentLapse(): string | undefined {
    return this.#payments.lapse;
  }

  /** Why rewards are not checked; undefined if they are. */
  get lapse(): string | undefined {
    return this.#heights.lapse;
  }

  async #lists(service: BooksService, heights: Heights | undefined): Promise<void> {
    const page = (await this.#dependencies.pool(`slices/${service}?limit=${PAGE}`)) as {
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
      if (typeof credits?.root === 'string') this.#judged.shown(service, slice, { credit_root: credits.root });
    if (!this.#looked.has(service)) this.#lookFirst(service, listed, heights?.known === undefined ? -1 : slices?.due);
    this.#looked.add(service);
    for (const slice of listed.reverse()) this.#await(`${service}/${slice}`);
    const due = [...this.#awaited].filter((name) => name.startsWith(`${service}/`));
    // Done last, so that they delay no others.
    const refused = [...this.#refused].filter((name) => name.startsWith(`${service}/`));
    let failure: unknown;
    for (const name of [...due.slice(0, LISTS_A_ROUND), ...refused.slice(0, LISTS_A_ROUND)])
      await this.#list(service, Number(name.split('/')[1])).catch((error: unknown) => {
        this.#awaited.delete(name);
        this.#early.delete(name);
        this.#refuse(name);
        failure ??= error;
      });
    if (failure !== undefined) throw failure;
  }

  /**
   * Of the lists that existed before, only the newest is judged, and all that are not yet due according to the node: a
   * future list must not count as an old one. Without a node only the pool says what is due (`due` is -1): then all are
   * judged. Tracked individually: with a limit by number, one false slice could exclude all others.
   */
  #lookFirst(service: BooksService, listed: readonly number[], due = -1): void {
    for (const [i, slice] of listed.entries()) {
      const name = `${service}/${slice}`;
      if (i > 0 && slice <= due) this.#judged.add(name, null);
      else if (this.#await(name) && i > 0) this.#early.add(name);
    }
  }

  /** The slices due by all known heights, and open by any of them; undefined if not known. */
  #slicesOf(service: BooksService, heights: Heights | undefined): { due: number; open: number } | undefined {
    const { least, said, known } = heights ?? {};
    if (this.#termsOfRound === undefined || least === undefined) return undefined;
    return dueSlices(this.#termsOfRound, service, { height: least, said: Math.max(least, said ?? 0, known ?? 0) });
  }

  /** False if there is no room: the present lists are finished first, and it is reported again (`RewardWatch`). */
  #await(name: string): boolean {
    if (this.#judged.has(name) || this.#refused.has(name) || this.#awaited.has(name)) return true;
    if (this.#awaited.size + this.#refused.size >= MAX_KEPT) return false;
    this.#awaited.add(name);
    return true;
  }

  async #list(service: BooksService, slice: number): Promise<void> {
    const { alarm, note, node } = this.#dependencies;
    const { proof, verdict } = await this.#proof(service, slice);
    const name = `${service}/${slice}`;
    // Kept until it is settled.
    this.#refused.delete(name);
    this.#awaited.add(name);
    if (!this.#suspicions.isSure(`list ${name}`, verdict.verdict === 'false')) return;
    if (verdict.verdict === 'unchecked') {
      const tries = (this.#tries.get(name) ?? 0) + 1;
      this.#tries.set(name, tries);
      if (node !== null && tries < MAX_TRIES) return;
      this.unchecked++;
      if (node !== null)
        note('a credit list could not be checked', { service, slice, missing: verdict.missing.join(' ') });
      else if (!this.#isNodeMissed) note('credit lists are checked without the ledger (--node-api)', {});
      this.#isNodeMissed = true;
    } else if (verdict.verdict === 'false') alarm('list_false', name, { service, slice, reason: verdict.reason });
    else this.proven++;
    if (verdict.verdict !== 'false') this.#payments.credited(service, slice, verdict.credit);
    if (node !== null) this.#unjudged.settled(service, slice, verdict.verdict === 'unchecked' ? verdict.missing : []);
    this.#tries.delete(name);
    this.#awaited.delete(name);
    this.#early.delete(name);
    this.#judged.add(name, proof, verdict.verdict === 'false' ? undefined : proof);
  }

  /** Why the lists count as not checked although the pool answered. */
  get unjudged(): string | undefined {
    return this.#unjudged.why;
  }

  /** More work is left than fits into a round: the next one follows soon. */
  get isBehind(): boolean {
    return [...this.#awaited].filter((name) => !this.#early.has(name)).length > LISTS_A_ROUND || this.#rewards.isBehind;
  }

  /** Something looks false and must be read again. */
  get isSuspicious(): boolean {
    return this.#suspicions.size > 0;
  }

  #refuse(name: string): void {
    // Moved to the end, behind the others.
    this.#refused.delete(name);
    this.#refused.add(name);
  }

  get #sources(): BooksSources {
    const { pool, node } = this.#dependencies;
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
    const { pool } = this.#dependencies;
    const proof = (await pool(`proofs/${service}/${slice}?address=${this.#address}`)) as PoolProof;
    const verdict = await judged<BooksVerdict>(async () => {
      const isAsked = proof?.service === service && proof.slice === slice && proof.address === this.#address;
      if (!isAsked) throw new ProtocolError('out_of_range', 'the proof is of something else');
      return judgeProof(proof, await gatherEvidence(proof, this.#sources));
    }, MALFORMED);
    this.#judged.shown(service, slice, { list_id: proof?.list_id, credit_root: proof?.credit_root }, proof);
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
    const { node, alarm } = this.#dependencies;
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

  save(): unknown {
    return {
      looked: [...this.#looked],
      ...this.#judged.save(),
      blocks: this.#blocks.save(),
      payments: this.#payments.save(),
      terms: this.#terms.save(),
      ...this.#rewards.save(),
      awaited: [...this.#refused, ...this.#awaited],
    };
  }

  /** A malformed state is ignored. */
  restore(saved: unknown): void {
    const state = (saved ?? {}) as Readonly<Record<string, unknown>>;
    if (!Array.isArray(state.judged) || !Array.isArray(state.looked)) return;
    for (const each of state.looked as BooksService[]) this.#looked.add(each);
    this.#judged.restore(state.judged, state.heads);
    for (const each of Array.isArray(state.awaited) ? state.awaited : [])
      if (/^(pplns|solo)[/][0-9]{1,15}$/.test(String(each))) this.#await(String(each));
    this.#blocks.restore(state.blocks);
    this.#terms.restore(state.terms);
    this.#rewards.restore(state);
    this.#payments.restore(state.payments);
  }
}

function closedSlice({ terms }: Terms, said: number | undefined): number | undefined {
  const cuts = sliceCutsOf(terms);
  return cuts === undefined || said === undefined ? undefined : Math.floor(said / cuts) - 1;
}

type Judged = { readonly proof: PoolProof; readonly verdict: BooksVerdict };

const MALFORMED: BooksVerdict = { verdict: 'false', reason: 'malformed' };
