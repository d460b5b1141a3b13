/**
 * The memory each thread works in, beside the shared cache and dataset: offsets from its scratch base. The loader
 * (kernels/cpu/layout.ts) lays the scratches, the cache and the dataset out and must agree on SCRATCH_BYTES and IO.
 */

/** Most hashes, and twice as many items, that may be interleaved. */
export const MAX_HASHES: u32 = 16;

/** u32 per hash: the selector g of its next round. */
export const SELECT: usize = 0;
/** u32 per item: its index, and the address of its next parent. */
export const INDEX: usize = 128;
export const PARENT: usize = 256;
/** 16 vectors each: message and output of compress4. */
export const MESSAGE: usize = 384;
export const OUTPUT: usize = 640;
/** Per hash 192 bytes: 32 words of mix, then the 16 words of its seed. */
export const STATE: usize = 1024;
export const STATE_STRIDE: usize = 192;
export const SEED_IN_STATE: usize = 128;
/** 128 bytes per hash: the page of a light hash. */
export const PAGE: usize = 4096;
/** 64 bytes per item. */
export const ITEM: usize = 6144;
/** Four padded messages of 320 bytes, label and header. */
export const PADDED: usize = 8192;
/** From here on the caller's: headers, jobs, results. */
export const IO: usize = 10240;
export const SCRATCH_BYTES: usize = 65536;
