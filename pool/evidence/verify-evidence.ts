/**
 * `svc-pool verify-evidence FILE`: judges a miner's evidence against a pool, whatever kind it is of. Each kind has a verifier
 * of its own, which judges by the file and by what a pool and a node say. No kind is believed for what the file says alone.
 */
import { createApiClient } from '../../protocol/api/client.ts';
import type { EvidenceFormat } from '../../protocol/evidence/evidence-file.ts';
import { EVIDENCE_FORMAT } from '../../protocol/evidence/receipt-evidence.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import { visible } from '../../runtime/log/visible.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import type { Terminal } from '../../runtime/program.ts';
import { publishedApi } from '../audit/public-reads.ts';
import type { EvidenceSources, Judged } from './judged-evidence.ts';
import { verifyListEvidence } from './verify-list-evidence.ts';
import { verifyReceiptEvidence } from './verify-receipt-evidence.ts';
import { verifyUnpaidEvidence } from './verify-unpaid-evidence.ts';

const MAX_BYTES = 8 * 1024 * 1024;

export type VerifyEvidenceValues = {
  readonly poolKey: string | undefined;
  readonly poolApi: string | undefined;
  readonly nodeApi: string | undefined;
  readonly json: boolean;
};

const VERIFIERS: Readonly<
  Record<EvidenceFormat, (file: unknown, sources: EvidenceSources) => Judged | Promise<Judged>>
> = {
  'svc-pool-evidence-1': verifyReceiptEvidence,
  'svc-pool-list-evidence-1': verifyListEvidence,
  'svc-pool-unpaid-evidence-1': verifyUnpaidEvidence,
};

/** A file of another form is no evidence of receipts. */
const formatOf = (file: unknown): EvidenceFormat => {
  const format = (file as { readonly format?: unknown } | null)?.format;
  return typeof format === 'string' && Object.hasOwn(VERIFIERS, format) ? (format as EvidenceFormat) : EVIDENCE_FORMAT;
};

/** 0: convicts the pool; 1: does not; 2: the file cannot be read; 3: convicts the holder of a key that is not known to be the pool's; 4: two credit lists, which no pool signs; 5: credits that were not paid. */
export async function verifyEvidence(path: string, values: VerifyEvidenceValues, terminal: Terminal): Promise<number> {
  let file: unknown;
  try {
    file = JSON.parse(readSmallFile(path, MAX_BYTES));
  } catch (error) {
    terminal.err(`svc-pool verify-evidence: cannot read ${path}: ${visible((error as Error).message)}\n`);
    return 2;
  }
  const { poolKey, poolApi, nodeApi, json } = values;
  const { exit, document, words } = await VERIFIERS[formatOf(file)](file, {
    poolKey,
    pool: poolApi === undefined ? undefined : publishedApi(poolApi),
    node: nodeApi === undefined ? undefined : createApiClient({ baseUrl: nodeApi }, nodeTransport()),
  });
  const bigintText = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
  terminal.out(`${json ? JSON.stringify(document, bigintText) : words.map(visible).join('\n')}\n`);
  return exit;
}
