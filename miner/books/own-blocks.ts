/**
 * Where the pool books the blocks that this miner found: a block itself shows its service (books rule 22), and on solo its reward is the finder's, which
 * nobody but the pool and the finder can know (rule 13).
 */
import { type BooksSources, readBlocks } from '../../protocol/books-evidence.ts';
import type { BooksService } from '../../protocol/books-slice.ts';
import { type PublishedTerms, termsAt } from '../../protocol/books-verdict.ts';
import type { PoolProof } from '../../protocol/pool-proof.ts';
import { sliceOfHeight } from '../../protocol/pplns.ts';

/** A block that this miner found, and what its job said. */
export type FoundBlock = { readonly block: string; readonly service: BooksService; readonly height: number };

type Awaited = FoundBlock & { rounds: number };
type Place = { readonly service: BooksService; readonly list: number | null };

export type OwnBlocksDependencies = {
  /** Reads `api/v1/PATH` of the pool. */
  readonly pool: BooksSources['pool'];
  readonly alarm: (
    kind: 'block_service' | 'block_finder',
    what: string,
    fields: Readonly<Record<string, unknown>>,
  ) => void;
};

/** How often a block that is in no list yet is looked for again. */
const MAX_ROUNDS = 240;
const MAX_BLOCKS = 32;
/** A block is in the slice of its anchor; where the terms changed since, it may be in the next slice to either side. */
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

  async round(terms: PublishedTerms): Promise<void> {
    const left: Awaited[] = [];
    for (const block of this.#blocks)
      if (!(await this.#isSettled(block, terms)) && ++block.rounds < MAX_ROUNDS) left.push(block);
    this.#blocks = left;
  }

  async #isSettled(found: Awaited, terms: PublishedTerms): Promise<boolean> {
    const { block, service } = found;
    const place = await this.#placeOf(found, terms);
    if (place === undefined) return false;
    if (place.service !== service) {
      this.#dependencies.alarm('block_service', block, { block, service, booked: place.service });
      return true;
    }
    return service === 'pplns' || (place.list !== null && (await this.#isCredited(block, place.list)));
  }

  /** Whether the list of solo names a finder. It may not be made yet. */
  async #isCredited(block: string, slice: number): Promise<boolean> {
    const { pool, alarm } = this.#dependencies;
    const read = pool(`proofs/solo/${slice}?address=${this.#address}`) as Promise<PoolProof | null>;
    const proof = await read.catch(() => null);
    const listed = Array.isArray(proof?.blocks) ? proof.blocks.find((each) => each?.block_id === block) : undefined;
    if (listed === undefined) return false;
    if (listed.finder !== this.#address) alarm('block_finder', block, { block, slice, finder: listed.finder });
    return true;
  }

  async #placeOf({ block, service, height }: Awaited, { terms }: PublishedTerms): Promise<Place | undefined> {
    const own = termsAt(terms[service], Number.MAX_SAFE_INTEGER);
    if (own === undefined) return undefined;
    const slice = sliceOfHeight(height, own.slice_cuts);
    for (const beside of AROUND)
      for (const each of ['pplns', 'solo'] as const) {
        const blocks = await readBlocks(each, Math.max(0, slice + beside), this.#dependencies).catch(() => []);
        const named = blocks.find(({ block_id: id }) => id === block);
        if (named !== undefined) return { service: each, list: named.credited_with };
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
