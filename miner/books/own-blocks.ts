/**
 * Checks how the pool books the blocks that this miner found: a block itself shows its service (books rule 22), and on
 * solo its reward is the finder's, which only the pool and the finder can check (rule 13).
 */
import { readBlocks } from '../../protocol/books/books-evidence.ts';
import { type BooksService, isWhole } from '../../protocol/books/books-slice.ts';
import { type PublishedTerms, sliceCutsOf, termsAt } from '../../protocol/books/books-terms.ts';
import type { BooksVerdict } from '../../protocol/books/books-verdict.ts';
import type { PoolProof } from '../../protocol/books/pool-proof.ts';
import { sliceOfHeight } from '../../protocol/books/pplns.ts';
import type { Finding } from './books-alarms.ts';
import type { Watching } from './pool-reads.ts';
import { isListed } from './rewards.ts';

/** A block that this miner found, and what its job said. */
export type FoundBlock = { readonly block: string; readonly service: BooksService; readonly height: number };

type Awaited = FoundBlock & { rounds: number };
type Place = { readonly service: BooksService; readonly slice: number; readonly list: number | null };
type State = 'settled' | 'not_booked' | 'no_list' | 'not_listed';

export type OwnBlockReads = Pick<Watching, 'pool' | 'note'> & {
  readonly address: string;
  /** The proof of a list and the verdict over it: one document for all who look at the list in a round. */
  readonly proofOf: (service: BooksService, slice: number) => Promise<{ proof: PoolProof; verdict: BooksVerdict }>;
};

/** How often a block that is in no list yet is checked again. */
const MAX_ROUNDS = 240;
const MAX_BLOCKS = 32;
/** A block is in the slice of its anchor; the height that its job named may lie beside it, in the next slice to either side. */
const AROUND = [0, -1, 1] as const;

/** Blocks that this miner found and that were not seen booked yet. */
export class OwnBlocks {
  #blocks: readonly Awaited[] = [];

  found(block: FoundBlock): void {
    this.#blocks = [...this.#blocks, { ...block, rounds: 0 }].slice(-MAX_BLOCKS);
  }

  /** A round in which the pool did not answer does not count for a block: a pool must not escape the check by not answering. */
  async *check(terms: PublishedTerms, reads: OwnBlockReads): AsyncGenerator<Finding> {
    let failure: unknown;
    for (const block of this.#blocks)
      try {
        const state = yield* stateOf(block, terms, reads);
        if (state === 'no_list') continue;
        if (state !== 'settled' && ++block.rounds < MAX_ROUNDS) continue;
        // Others may have been found meanwhile.
        this.#blocks = this.#blocks.filter((each) => each !== block);
        if (state === 'not_listed') yield ['block_finder', block.block, { block: block.block, finder: null }];
        // It may have been refused by the network, and a held one waits for the operator.
        if (state === 'not_booked')
          reads.note('the pool credits a block of this miner to nobody', {
            block: block.block,
            service: block.service,
          });
      } catch (error) {
        failure ??= error;
      }
    if (failure !== undefined) throw failure;
  }

  save(): unknown {
    return this.#blocks;
  }

  restore(saved: unknown): void {
    if (Array.isArray(saved)) this.#blocks = (saved as Awaited[]).slice(-MAX_BLOCKS);
  }
}

/** `not_listed`: the pool books the block, but leaves it out of its list. */
async function* stateOf(
  found: FoundBlock,
  terms: PublishedTerms,
  reads: OwnBlockReads,
): AsyncGenerator<Finding, State> {
  const { block, service } = found;
  const place = await placeOf(found, terms, reads);
  if (place === undefined) return 'not_booked';
  if (place.service !== service) {
    yield ['block_service', block, { block, service, booked: place.service }];
    return 'settled';
  }
  if (service === 'pplns') return 'settled';
  if (place.list === null) return 'not_booked';
  if (!isWhole(place.list)) return 'not_listed';
  // There is no proof of a list that is not made yet. Whether lists are made in time is checked separately (`rewards.ts`).
  if (!(await isListed('solo', place.list, reads))) return 'no_list';
  const isCredited = yield* checkFinder(block, { own: place.slice, slice: place.list }, terms, reads);
  return isCredited ? 'settled' : 'not_listed';
}

/**
 * Whether the solo list names a finder. Evidence against the pool may come from any document; evidence for it must
 * come from a list that is not false.
 */
async function* checkFinder(
  block: string,
  { own, slice }: { readonly own: number; readonly slice: number },
  { terms, address: poolAddress }: PublishedTerms,
  { address, proofOf }: OwnBlockReads,
): AsyncGenerator<Finding, boolean> {
  const { proof, verdict } = await proofOf('solo', slice);
  const listed = Array.isArray(proof?.blocks) ? proof.blocks.find((each) => each?.block_id === block) : undefined;
  if (listed === undefined) return false;
  const { finder } = listed;
  if (finder === address) {
    // A list has one fee (rule 7), so only the finder sees that its work was paid under a higher one than it was done under.
    const fee = termsAt(terms.solo, own)?.fee_ppm;
    if (fee !== undefined && isWhole(proof.fee_ppm) && proof.fee_ppm > fee)
      yield ['block_fee', block, { block, found: own, fee, slice, taken: proof.fee_ppm }];
    return verdict.verdict !== 'false';
  }
  // A pool that does not know the finder of a block credits itself (rule 22): its journal was lost, or it claims so.
  if (finder === poolAddress) yield ['block_unowned', block, { block, slice }];
  else yield ['block_finder', block, { block, slice, finder }];
  return true;
}

async function placeOf(
  { block, height }: FoundBlock,
  { terms }: PublishedTerms,
  reads: OwnBlockReads,
): Promise<Place | undefined> {
  const cuts = sliceCutsOf(terms);
  if (cuts === undefined) return undefined;
  const slice = sliceOfHeight(height, cuts);
  for (const beside of AROUND)
    for (const each of ['pplns', 'solo'] as const) {
      const blocks = await readBlocks(each, Math.max(0, slice + beside), reads);
      const named = blocks.find(({ block_id: id }) => id === block);
      if (named !== undefined) return { service: each, slice: slice + beside, list: named.credited_with };
    }
  return undefined;
}
