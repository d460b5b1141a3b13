/**
 * Blocks of neighbours that arrived before their dependencies: a parent that is not here yet, or a cut that this node
 * has not finished. Refusing them would also lose all blocks built on them, so they are kept until the missing part is
 * here. Their PoW is not checked yet, so anybody can send them: their number and bytes are bounded. When space runs
 * out, unknown senders lose blocks before known neighbours, and within each group the sender that uses most of the
 * scarce resource (places or bytes).
 */

import type { Bytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader } from '../../protocol/ledger/header.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { nameOf } from '../ledger/registration.ts';
import type { NodeErrorCode } from '../node-error.ts';

/** Refusals that can be resolved by the next block or cut. */
export const EARLY_CODES: ReadonlySet<NodeErrorCode> = new Set(['parent_unknown', 'anchor_unknown']);

export const EARLY_LIMITS = {
  blocks: 512,
  bytes: 64 * 1024 * 1024,
  /** A block further ahead than this is fetched with the cuts. */
  cutsAhead: 4,
  /** A parent may be on record and still not be one that a block can build on. */
  tries: 4,
} as const;

export type EarlyBlock<P> = { readonly from: P; readonly header: Bytes; readonly body: Bytes };
type Kept<P> = EarlyBlock<P> & {
  readonly sender: Sender;
  readonly anchorHeight: number;
  readonly missing: Set<string>;
  tries: number;
};

/** Identity of a neighbour. */
export type Sender = {
  /** All connections of one sender have the same. */
  readonly name: string;
  readonly isStranger: boolean;
};

export type EarlyBlocksDependencies<P> = {
  isKnown(id: Bytes): boolean;
  headHeight(): number;
  /** A neighbour that has disconnected counts as unknown. */
  senderOf(from: P): Sender;
};

export class EarlyBlocks<P> {
  readonly #with: EarlyBlocksDependencies<P>;
  readonly #kept = new Map<string, Kept<P>>();
  readonly #tries = new Map<string, number>();
  #bytes = 0;

  constructor(dependencies: EarlyBlocksDependencies<P>) {
    this.#with = dependencies;
  }

  get size(): number {
    return this.#kept.size;
  }

  /**
   * Returns the missing parents; undefined if the block is not kept. A block whose parents are here by now is returned
   * by the next `arrived` or `cut`.
   */
  keep({ from, header, body }: EarlyBlock<P>): Bytes[] | undefined {
    const name = nameOf(blockId(header));
    const tries = (this.#tries.get(name) ?? 0) + 1;
    const read = parentsOf(header, body);
    const { isKnown, headHeight, senderOf } = this.#with;
    if (read === undefined || tries > EARLY_LIMITS.tries || this.#kept.has(name)) return undefined;
    const { anchorHeight, parents } = read;
    if (anchorHeight > headHeight() + EARLY_LIMITS.cutsAhead || isOver(anchorHeight, headHeight())) return undefined;
    const missing = parents.filter((parent) => !isKnown(parent));
    const sender = senderOf(from);
    const kept = { from, sender, header, body, anchorHeight, missing: new Set(missing.map(nameOf)), tries };
    this.#kept.set(name, kept);
    this.#bytes += body.length;
    this.#makeRoom();
    return this.#kept.has(name) ? missing : undefined;
  }

  /** A block was accepted: returns those that waited only for it. */
  arrived(id: Bytes): EarlyBlock<P>[] {
    return this.#found([nameOf(id)]);
  }

  /**
   * A cut became final with these blocks: returns those that waited for it or for them. Blocks with a closed window are
   * dropped.
   */
  cut(registered: readonly Bytes[]): EarlyBlock<P>[] {
    const height = this.#with.headHeight();
    for (const [name, { anchorHeight }] of this.#kept) if (isOver(anchorHeight, height)) this.#remove(name);
    this.#tries.clear();
    return this.#found(registered.map(nameOf));
  }

  #found(names: readonly string[]): EarlyBlock<P>[] {
    const ready: EarlyBlock<P>[] = [];
    for (const [name, kept] of this.#kept) {
      for (const found of names) kept.missing.delete(found);
      if (kept.missing.size > 0 || kept.anchorHeight > this.#with.headHeight()) continue;
      this.#remove(name);
      this.#tries.set(name, kept.tries);
      ready.push(kept);
    }
    return ready;
  }

  #remove(name: string): void {
    this.#bytes -= this.#kept.get(name)?.body.length ?? 0;
    this.#kept.delete(name);
  }

  #makeRoom(): void {
    for (;;) {
      const isCrowded = this.#kept.size > EARLY_LIMITS.blocks;
      if (!isCrowded && this.#bytes <= EARLY_LIMITS.bytes) return;
      this.#remove(this.#gives(isCrowded));
    }
  }

  /** The oldest block of the sender that uses most of the scarce resource. */
  #gives(isCrowded: boolean): string {
    const hasStrangers = [...this.#kept.values()].some(({ sender }) => sender.isStranger);
    const held = new Map<string, { amount: number; oldest: string }>();
    let most: { amount: number; oldest: string } | undefined;
    for (const [name, { sender, body }] of this.#kept) {
      if (sender.isStranger !== hasStrangers) continue;
      const share = held.get(sender.name) ?? { amount: 0, oldest: name };
      share.amount += isCrowded ? 1 : body.length;
      held.set(sender.name, share);
      if (most === undefined || share.amount > most.amount) most = share;
    }
    return (most as { oldest: string }).oldest;
  }
}

const isOver = (anchorHeight: number, headHeight: number): boolean => anchorHeight + REGISTRATION_WINDOW <= headHeight;

function parentsOf(header: Bytes, body: Bytes): { anchorHeight: number; parents: readonly Bytes[] } | undefined {
  try {
    return { anchorHeight: decodeHeader(header).anchorHeight, parents: decodeBody(body).parents };
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
}
