/**
 * The data of old cuts that a node keeps (network rule 14). `full`: all bodies, and certificates as ledger rule 31
 * says. `archive`: all bodies and every certificate that it ever got. `pruned`: bodies and certificates of the last
 * 1,440 cuts, and the certificate of each epoch's last cut. State, cuts, headers, rewards and the index are kept by
 * all.
 */
import { join } from 'node:path';

export const STORAGE_MODES = ['full', 'archive', 'pruned'] as const;
export type StorageMode = (typeof STORAGE_MODES)[number];

/** An hour of cuts: neighbours and peers may request these from a pruned node. */
export const PRUNED_KEEPS = 1_440;

/** Where the store of a data directory is. */
export const storeDirectory = (dataDir: string): string => join(dataDir, 'store');
