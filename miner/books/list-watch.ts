/**
 * Judges a pool's credit lists for a miner, by the one verifier (books rule 13), and checks where the pool books the blocks that this miner found: a
 * block itself shows its service (rule 22). With a node of the miner's own the ledger is asked too: rewards, targets, and the payouts that
 * commit the books. Reads come in as calls, so a page uses it too.
 */
import { type BooksSources, gatherEvidence, gatherRecord } from '../../protocol/books-evidence.ts';
import type { BooksService } from '../../protocol/books-slice.ts';
import {
  type BooksVerdict,
  judgeProof,
  judgeRecord,
  type NotChecked,
  type PublishedTerms,
  termsAt,
} from '../../protocol/books-verdict.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { PoolProof } from '../../protocol/pool-proof.ts';
import { sliceOfHeight } from '../../protocol/pplns.ts';
import type { Receipt } from '../../protocol/receipt.ts';

export type ListAlarmKind = 'list_false' | 'ledger_other' | 'address_other' | 'block_service';

/** A block that this miner found, and what its job said. */
export type FoundBlock = { readonly block: string; readonly service: BooksService; readonly height: number };

type Awaited = FoundBlock & { rounds: number };

export type ListWatchDependencies = {
  /** Reads `api/v1/PATH` of the pool. */
  readonly pool: (path: string) => Promise<unknown>;
  readonly node: BooksSources['node'];
  readonly alarm: (kind: ListAlarmKind, what: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly note: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  readonly nowMillis: () => number;
};

/** Newest slices that are looked at for lists, and lists that are judged in one round. */
const PAGE = 50;
const MAX_LISTS = 4;
/** How often a list that cannot be judged yet, and a block that is in no list yet, is looked at again. */
const MAX_TRIES = 5;
const MAX_ROUNDS = 240;
const MAX_KEPT = 256;
const MAX_BLOCKS = 32;
/**
 * A pool keeps answers for five seconds (rule 26), so documents that are read together may be of different moments. What
 * looks false is read again after this long, before the pool is accused.
 */
const AGAIN_MILLIS = 10_000;
/** A block is in the slice of its anchor; where the terms changed since, it may be in the next slice to either side. */
const AROUND = [0, -1, 1] as const;

export class ListWatch {
  readonly #address: string;
  readonly #dependencies: ListWatchDependencies;
  readonly #services = new Set<BooksService>();
  /** `service/slice` of lists that were judged, or that were there before the first look at their service. */
  readonly #judged = new Set<string>();
  readonly #looked = new Set<BooksService>();
  readonly #tries = new Map<string, number>();
  #blocks: Awaited[] = [];
  /** The address that the miner's own jobs pay; null where the server named none. */
  #poolAddress: string | null = null;
  #isNodeMissed = false;
  /** What looked false once, and when. */
  readonly #suspected = new Map<string, number>();
  proven = 0;
  unchecked = 0;

  constructor(address: string, dependencies: ListWatchDependencies) {
    this.#address = address;
    this.#dependencies = dependencies;
  }

  works(service: BooksService): void {
    this.#services.add(service);
  }

  pays(address: string | null): void {
    this.#poolAddress = address;
  }

  found(block: FoundBlock): void {
    this.#blocks = [...this.#blocks, { ...block, rounds: 0 }].slice(-MAX_BLOCKS);
  }

  async round(): Promise<void> {
    const { pool, alarm } = this.#dependencies;
    const terms = (await pool('terms')) as PublishedTerms;
    if (this.#poolAddress !== null && terms.address !== this.#poolAddress)
      alarm('address_other', String(terms.address), { published: terms.address, paid: this.#poolAddress });
    for (const service of this.#services) await this.#lists(service);
    await this.#ownBlocks(terms);
  }

  async #lists(service: BooksService): Promise<void> {
    const page = (await this.#dependencies.pool(`slices/${service}?limit=${PAGE}`)) as {
      slices: readonly { slice: number; credits: unknown }[];
    };
    const listed = page.slices.filter(({ credits }) => credits !== null).map(({ slice }) => slice);
    if (listed.length > PAGE || !listed.every((slice) => Number.isSafeInteger(slice) && slice >= 0))
      throw new Error('the pool’s slices have no such form');
    // Only the newest of what was there before. By name: a bound by number could be set out of reach with one made-up slice.
    if (!this.#looked.has(service)) for (const slice of listed.slice(1)) this.#judged.add(`${service}/${slice}`);
    this.#looked.add(service);
    const due = listed.filter((slice) => !this.#judged.has(`${service}/${slice}`));
    for (const slice of due.reverse().slice(0, MAX_LISTS)) await this.#list(service, slice);
  }

  async #list(service: BooksService, slice: number): Promise<void> {
    const { alarm, note, node } = this.#dependencies;
    const verdict = await this.#verdict(service, slice);
    const name = `${service}/${slice}`;
    if (!this.#isSure(`list ${name}`, verdict)) return;
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
    this.#tries.delete(name);
    this.#judged.add(name);
    for (const oldest of this.#judged)
      if (this.#judged.size > MAX_KEPT) this.#judged.delete(oldest);
      else break;
  }

  /** Something looks false, and has to be read again. */
  get isSuspicious(): boolean {
    return this.#suspected.size > 0;
  }

  /** Whether a verdict can be acted on: one of false must come twice, some time apart. */
  #isSure(what: string, { verdict }: BooksVerdict): boolean {
    const since = this.#suspected.get(what);
    const now = this.#dependencies.nowMillis();
    if (verdict === 'false' && (since === undefined || now - since < AGAIN_MILLIS)) {
      this.#suspected.set(what, since ?? now);
      for (const oldest of this.#suspected.keys()) if (this.#suspected.size > MAX_KEPT) this.#suspected.delete(oldest);
      return false;
    }
    this.#suspected.delete(what);
    return true;
  }

  async #verdict(service: BooksService, slice: number): Promise<BooksVerdict> {
    const { pool, node } = this.#dependencies;
    let proof: PoolProof;
    try {
      proof = (await pool(`proofs/${service}/${slice}?address=${this.#address}`)) as PoolProof;
    } catch {
      return unchecked('records');
    }
    return judged(async () => {
      const isAsked = proof?.service === service && proof.slice === slice && proof.address === this.#address;
      if (!isAsked) throw new ProtocolError('out_of_range', 'the proof is of something else');
      return judgeProof(proof, await gatherEvidence(proof, { pool, node, poolAddress: this.#poolAddress }));
    });
  }

  /**
   * A record that the pool signed must be the one that it publishes, and that its payouts commit on the ledger. `open`: it
   * could not be checked yet.
   */
  async signed(receipt: Receipt): Promise<'settled' | 'open'> {
    const { pool, node, alarm } = this.#dependencies;
    if (node === null) return 'settled';
    const { service, slice } = receipt;
    const verdict = await judged(async () => judgeRecord(receipt, await gatherRecord(receipt, { pool, node })));
    if (!this.#isSure(`record ${service}/${slice}`, verdict)) return 'open';
    if (verdict.verdict === 'false')
      alarm('ledger_other', `${service}/${slice}`, { service, slice, reason: verdict.reason });
    return verdict.verdict === 'unchecked' ? 'open' : 'settled';
  }

  /** Where the pool puts the blocks that were found here. */
  async #ownBlocks(terms: PublishedTerms): Promise<void> {
    const left: Awaited[] = [];
    for (const block of this.#blocks) {
      const place = await this.#placeOf(block, terms);
      if (place === undefined && ++block.rounds < MAX_ROUNDS) left.push(block);
      if (place !== undefined && place !== block.service)
        this.#dependencies.alarm('block_service', block.block, {
          ...{ block: block.block, service: block.service, booked: place },
        });
    }
    this.#blocks = left;
  }

  async #placeOf({ block, service, height }: Awaited, { terms }: PublishedTerms): Promise<BooksService | undefined> {
    const own = termsAt(terms[service], Number.MAX_SAFE_INTEGER);
    if (own === undefined) return undefined;
    const slice = sliceOfHeight(height, own.slice_cuts);
    for (const beside of AROUND)
      for (const each of ['pplns', 'solo'] as const) {
        const path = `slices/${each}/${Math.max(0, slice + beside)}/blocks`;
        const answer = (await this.#dependencies.pool(path).catch(() => undefined)) as
          | { blocks: readonly { block_id: string }[] }
          | undefined;
        if (answer?.blocks.some(({ block_id: id }) => id === block)) return each;
      }
    return undefined;
  }

  save(): unknown {
    return { looked: [...this.#looked], judged: [...this.#judged], blocks: this.#blocks };
  }

  /** A state that it cannot read is ignored. */
  restore(saved: unknown): void {
    const state = saved as { looked: BooksService[]; judged: string[]; blocks: Awaited[] } | undefined;
    if (!Array.isArray(state?.judged) || !Array.isArray(state.blocks) || !Array.isArray(state.looked)) return;
    for (const each of state.looked) this.#looked.add(each);
    for (const each of state.judged) this.#judged.add(each);
    this.#blocks = [...state.blocks];
  }
}

const unchecked = (...missing: NotChecked[]): BooksVerdict => ({ verdict: 'unchecked', credit: 0n, missing });

/** A pool's document of another form is false. */
async function judged(judge: () => Promise<BooksVerdict>): Promise<BooksVerdict> {
  try {
    return await judge();
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof TypeError || error instanceof RangeError)
      return { verdict: 'false', reason: 'malformed' };
    throw error;
  }
}
