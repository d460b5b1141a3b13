/** Repeatable random numbers: an integer from 0 to below `limit`. */
export type Random = (limit: number) => number;

/** Above 0 and below 1: xorshift over 32 bits. */
function fractionsFrom(state: number): () => number {
  let x = state >>> 0 || 1;
  return () => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) / 0x1_0000_0000;
  };
}

/** The same, stirred so that neighbouring seeds differ at once. */
export function fractionsOf(seed: number): () => number {
  const next = fractionsFrom(Math.imul(seed ^ 0x9e37_79b9, 0x85eb_ca6b));
  for (let i = 0; i < 8; i++) next();
  return next;
}

const below =
  (next: () => number): Random =>
  (limit) =>
    Math.floor(next() * limit);

export const randomOf = (seed: number): Random => below(fractionsOf(seed));

/** For the simulations whose figures are in docs/: drawn with the state itself as the seed. */
export const randomFrom = (state: number): Random => below(fractionsFrom(state));

/** Repeatable bytes, in place of those of node:crypto. */
export function randomBytesOf(seed: number): (length: number) => Buffer<ArrayBuffer> {
  const random = randomOf(seed);
  return (length) => {
    const bytes = Buffer.alloc(length);
    for (let i = 0; i < length; i++) bytes[i] = random(256);
    return bytes;
  };
}
