/** Counts of SVC_POW_V1 (P5, P6, P10), separate from the reference: threads of the CPU kernel load only this. */
export const POW_CACHE_PASSES = 3;
export const POW_ITEM_PARENTS = 64;
export const POW_ROUNDS = 64;
