/**
 * Working memory. A function allocates what it needs, and the exported function releases all of it: released memory is overwritten, so that no
 * secret outlives the call that needed it.
 */
const BYTES: usize = 192 * 1024;
const ARENA: usize = memory.data(BYTES, 16);
let next: usize = ARENA;

/** The place to give back to. */
@inline
export function here(): usize {
  return next;
}

export function take(bytes: usize): usize {
  const at = next;
  next = (at + bytes + 15) & ~15;
  if (next > ARENA + BYTES) unreachable();
  return at;
}

export function giveBack(to: usize): void {
  memory.fill(to, 0, next - to);
  next = to;
}

/** Bytes in and out of the module: as much as the largest transaction and its message need. */
export const EXCHANGE_BYTES: usize = 96 * 1024;
export const EXCHANGE: usize = memory.data(EXCHANGE_BYTES, 16);
