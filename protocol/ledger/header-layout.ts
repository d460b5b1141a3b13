/**
 * Sizes and offsets in the work block header (ledger rule 10), separate from its codec: the threads of the CPU kernel
 * need only these, and start three times as fast without the rest.
 */
export const HEADER_BYTES = 312;
export const NONCE_OFFSET = 304;
export const ANCHOR_ID_OFFSET = 32;
export const REWARD_ROOT_OFFSET = 176;
export const TARGET_OFFSET = 272;
