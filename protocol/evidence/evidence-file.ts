/**
 * The envelope of all evidence against a pool: a file names its format, and the format says what else is in it (books rules
 * 20, 20a and 29). Miners keep such files, so no format changes its meaning: another meaning has another name.
 */
import type { ListEvidence } from './list-evidence.ts';
import type { Evidence } from './receipt-evidence.ts';
import type { UnpaidEvidence } from './unpaid-evidence.ts';

export type EvidenceFile = Evidence | ListEvidence | UnpaidEvidence;
export type EvidenceFormat = EvidenceFile['format'];
