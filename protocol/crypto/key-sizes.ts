/** Sizes of ML-DSA-65: every key and signature of the ledger. */
export const PUBLIC_KEY_BYTES = 1952;
export const SIGNATURE_BYTES = 3309;
