/**
 * Selects the waiting blocks that the next cut registers, and the order of their execution (ledger rules 35, 36 and
 * 43): lowest hash value first, at most 64 with at most 1,280 signatures, never a block before its parents; execution
 * goes parents before children, then by block identifier.
 */
import { type Bytes, compareBytes } from '../../protocol/bytes.ts';
import { MAX_CUT_BLOCKS, MAX_CUT_SIGNATURES } from '../../protocol/ledger/cut.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';

export type Registrable = {
  readonly id: Bytes;
  /** PoW hash, 32 bytes, big-endian. */
  readonly hash: Bytes;
  readonly bodyId: Bytes;
  readonly header: { readonly anchorHeight: number };
  readonly body: { readonly parents: readonly Bytes[] };
  /** Carried by its transactions. */
  readonly signatures: number;
};

/** May a block with this anchor be registered by the cut of this height? */
export const isWindowOpen = (anchorHeight: number, cutHeight: number): boolean =>
  anchorHeight < cutHeight && cutHeight <= anchorHeight + REGISTRATION_WINDOW;

/** Buffer's method, called on any bytes: creating a Buffer first would cost more than the text. */
const latin1 = (Buffer.prototype as unknown as { latin1Slice(from: number, to: number): string }).latin1Slice;

/** Bytes as a key of maps and sets. */
export const nameOf = (bytes: Bytes): string => latin1.call(bytes, 0, bytes.length);

/**
 * `usedBodies` are those of blocks in open windows. A second block on one body is refused on arrival; if one waits
 * anyway, no cut registers it.
 */
export function chooseBlocks<B extends Registrable>(
  waiting: Iterable<B>,
  cutHeight: number,
  isRegistered: (id: Bytes) => boolean,
  usedBodies: ReadonlySet<string>,
): B[] {
  const bodies = new Set(usedBodies);
  const isFirstOnBody = (name: string): boolean => !bodies.has(name) && bodies.add(name).has(name);
  const open = [...waiting]
    .filter((block) => isWindowOpen(block.header.anchorHeight, cutHeight))
    .sort((a, b) => compareBytes(a.hash, b.hash))
    .filter(({ bodyId }) => isFirstOnBody(nameOf(bodyId)));
  const byName = new Map(open.map((block) => [nameOf(block.id), block]));
  const isKnown = lookedUpOnce(isRegistered);
  const chosen = new Map<string, B>();
  let signatures = 0;
  for (const block of open) {
    if (chosen.size >= MAX_CUT_BLOCKS) break;
    const family = new Map<string, B>();
    if (!withAncestors(block, family, MAX_CUT_BLOCKS - chosen.size)) continue;
    const carried = carriedSignatures([...family.values()]);
    // Lighter blocks after it may fit: heavy ones do not keep them waiting.
    if (signatures + carried > MAX_CUT_SIGNATURES) continue;
    signatures += carried;
    for (const [name, member] of family) chosen.set(name, member);
  }
  return executionOrder([...chosen.values()]);

  /** Adds the block and those of its ancestors that are not registered; false when one is unknown or there are too many. */
  function withAncestors(block: B, family: Map<string, B>, room: number, descendants = 0): boolean {
    const name = nameOf(block.id);
    if (chosen.has(name) || family.has(name)) return true;
    // They all come with it: a line of ancestors is not followed further than there is room.
    if (descendants >= room) return false;
    for (const parentId of block.body.parents) {
      const parent = byName.get(nameOf(parentId));
      if (parent === undefined ? !isKnown(parentId) : !withAncestors(parent, family, room, descendants + 1))
        return false;
    }
    family.set(name, block);
    return family.size <= room;
  }
}

/** Many blocks may name one parent, and a look into the store takes as long as a hundred others. */
export function lookedUpOnce(isRegistered: (id: Bytes) => boolean): (id: Bytes) => boolean {
  const known = new Map<string, boolean>();
  return (id) => {
    const name = nameOf(id);
    const found = known.get(name) ?? isRegistered(id);
    known.set(name, found);
    return found;
  };
}

export const carriedSignatures = (blocks: readonly Pick<Registrable, 'signatures'>[]): number =>
  blocks.reduce((sum, { signatures }) => sum + signatures, 0);

/** Parents cannot form a circle: a block names its parents by hashes that exist before it. */
export function executionOrder<B extends Registrable>(blocks: readonly B[]): B[] {
  const left = new Map([...blocks].sort((a, b) => compareBytes(a.id, b.id)).map((block) => [nameOf(block.id), block]));
  const ordered: B[] = [];
  while (left.size > 0) {
    const before = ordered.length;
    for (const [name, block] of left)
      if (!block.body.parents.some((parent) => left.has(nameOf(parent)))) {
        left.delete(name);
        ordered.push(block);
        break;
      }
    if (ordered.length === before) throw new Error('blocks of a cut are parents of each other');
  }
  return ordered;
}
