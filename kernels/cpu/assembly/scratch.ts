/**
 * The memory each thread works in, beside the shared cache and dataset: offsets from its scratch base. The loader
 * (kernels/cpu/layout.ts) lays the scratches, the cache and the dataset out and must agree on SCRATCH_BYTES and IO.
 */

/** Most hashes, and twice as many items, that may be interleaved. */
export const MAX_HASHES: u32 = 32;

/** u32 per hash: the selector g of its next round; in full mode the address of the row that g selects. */
export const SELECT: usize = 0;
/** u32 per item: its index, and the address of its next parent. */
export const INDEX: usize = 128;
export const PARENT: usize = 384;
/** 16 vectors each: message and output of compress4. */
export const MESSAGE: usize = 640;
export const OUTPUT: usize = 896;
/** Per hash 192 bytes: 32 words of mix, then the 16 words of its seed. */
export const STATE: usize = 1280;
export const STATE_STRIDE: usize = 192;
export const SEED_IN_STATE: usize = 128;
/** 128 bytes per hash, so aligned: the page of a light hash. */
export const PAGE: usize = 7424;
/** 64 bytes per item. */
export const ITEM: usize = 11520;
/** Four padded messages of 320 bytes, label and header. */
export const PADDED: usize = 15616;
/** From here on the caller's: headers, jobs, results. */
export const IO: usize = 17408;
export const SCRATCH_BYTES: usize = 65536;

/**
 * The prime of fnv in four lanes, as data: V8 makes a constant vector anew at every use (three instructions), while
 * one that was loaded stays in its register.
 */
export const PRIMES: usize = memory.data<u32>([0x01000193, 0x01000193, 0x01000193, 0x01000193], 16);
