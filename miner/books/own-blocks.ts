/**
 * Checks how the pool books the blocks that this miner found: a block itself shows its service (books rule 22), and on
 * solo its reward is the finder's, which only the pool and the finder can check (rule 13).
 */
import { type BooksSources, readBlocks } from '../../protocol/books/books-evidence.ts';
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import { type PublishedTerms, sliceCutsOf, termsAt } from '../../protocol/books/books-terms.ts';
import type { BooksVerdict } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import { isListed } from './due-rewards.ts';

/** A block that this miner found, and what its job said. */
export type FoundBlock = { readonly block: string; readonly service: BooksService; readonly height: number };

type Awaited = FoundBlock & { rounds: number };
type Place = { readonly service: BooksService; readonly slice: number; readonly list: number | null };

export type OwnBlocksDependencies = {
  /** Reads `api/v1/PATH` of the pool. */
  readonly pool: BooksSources['pool'];
  readonly alarm: (
    kind: 'block_service' | 'block_finder' | 'block_unowned' | 'block_fee',
    what: string,
    fields: Readonly<Record<string, unknown>>,
  ) => void;
  readonly note: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** The proof of a list and the verdict over it: one document for all who look at the list in a round. */
  readonly proofOf: (service: BooksService, slice: number) => Promise<{ proof: PoolProof; verdict: BooksVerdict }>;
};

/** How often a block that is in no list yet is checked again. */
const MAX_ROUNDS = 240;
const MAX_BLOCKS = 32;
/** A block is in the slice of its anchor; the height that its job named may lie beside it, in the next slice to either side. */
const AROUND = [0, -1, 1] as const;

export class OwnBlocks {
  readonly #address: string;
  readonly #dependencies: OwnBlocksDependencies;
  #blocks: Awaited[] = [];

  constructor(address: string, dependencies: OwnBlocksDependencies) {
    this.#address = address;
    this.#dependencies = dependencies;
  }

  found(block: FoundBlock): void {
    this.#blocks = [...this.#blocks, { ...block, rounds: 0 }].slice(-MAX_BLOCKS);
  }

  /** A round in which the pool did not answer does not count for a block: a pool must not escape the check by not answering. */
  async round(terms: PublishedTerms): Promise<void> {
    let failure: unknown;
    const left: Awaited[] = [];
    for (const block of this.#blocks)
      try {
        const state = await this.#stateOf(block, terms);
        if (state === 'settled') continue;
        if (state === 'no_list') left.push(block);
        else if (++block.rounds < MAX_ROUNDS) left.push(block);
        else this.#giveUp(block, state);
      } catch (error) {
        failure ??= error;
        left.push(block);
      }
    this.#blocks = left;
    if (failure !== undefined) throw failure;
  }

  async #stateOf(found: Awaited, terms: PublishedTerms): Promise<'settled' | 'not_booked' | 'no_list' | 'not_listed'> {
    const { block, service } = found;
    const place = await this.#placeOf(found, terms);
    if (place === undefined) return 'not_booked';
    if (place.service !== service) {
      this.#dependencies.alarm('block_service', block, { block, service, booked: place.service });
      return 'settled';
    }
    if (service === 'pplns') return 'settled';
    if (place.list === null) return 'not_booked';
    if (!isWhole(place.list)) return 'not_listed';
    // There is no proof of a list that is not made yet. Whether lists are made in time is checked separately
    // (`RewardWatch`).
    if (!(await isListed('solo', place.list, this.#dependencies))) return 'no_list';
    return (await this.#isCredited(block, { ...place, list: place.list }, terms)) ? 'settled' : 'not_listed';
  }

  /**
   * A block that appears nowhere may have been refused by the network, and a held one waits for the operator. A block
   * that the pool books but leaves out of its list is withheld.
   */
  #giveUp({ block, service }: Awaited, state: 'not_booked' | 'not_listed'): void {
    const { alarm, note } = this.#dependencies;
    if (state === 'not_listed') alarm('block_finder', block, { block, finder: null });
    else note('the pool credits a block of this miner to nobody', { block, service });
  }

  /**
   * Whether the solo list names a finder. Evidence against the pool may come from any document; evidence for it must
   * come from a list that is not false.
   */
  async #isCredited(
    block: string,
    { slice: own, list: slice }: Place & { readonly list: number },
    { terms, address: poolAddress }: PublishedTerms,
  ): Promise<boolean> {
    const { alarm } = this.#dependencies;
    const { proof, verdict } = await this.#dependencies.proofOf('solo', slice);
    const listed = Array.isArray(proof?.blocks) ? proof.blocks.find((each) => each?.block_id === block) : undefined;
    if (listed === undefined) return false;
    const { finder } = listed;
    if (finder === this.#address) {
      // A list has one fee (rule 7), so only the finder sees that its work was paid under a higher one than it was done under.
      const fee = termsAt(terms.solo, own)?.fee_ppm;
      if (fee !== undefined && isWhole(proof.fee_ppm) && proof.fee_ppm > fee)
        alarm('block_fee', block, { block, found: own, fee, slice, taken: proof.fee_ppm });
      return verdict.verdict !== 'false';
    }
    // A pool that does not know the finder of a block credits itself (rule 22): its journal was lost, or it claims so.
    if (finder === poolAddress) alarm('block_unowned', block, { block, slice });
    else alarm('block_finder', block, { block, slice, finder });
    return true;
  }

  async #placeOf({ block, height }: Awaited, { terms }: PublishedTerms): Promise<Place | undefined> {
    const cuts = sliceCutsOf(terms);
    if (cuts === undefined) return undefined;
    const slice = sliceOfHeight(height, cuts);
    for (const beside of AROUND)
      for (const each of ['pplns', 'solo'] as const) {
        const blocks = await readBlocks(each, Math.max(0, slice + beside), this.#dependencies);
        const named = blocks.find(({ block_id: id }) => id === block);
        if (named !== undefined) return { service: each, slice: slice + beside, list: named.credited_with };
      }
    return undefined;
  }

  save(): unknown {
    return this.#blocks;
  }

  restore(saved: unknown): void {
    if (Array.isArray(saved)) this.#blocks = (saved as Awaited[]).slice(-MAX_BLOCKS);
  }
}
