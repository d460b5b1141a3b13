/**
 * `svc-pool verify-evidence` on a file about credits that were not paid (books rule 29): reads the lists and the payments that it names again, from the pool and from a node, and
 * adds them up. The file itself is nobody's word; what it names is public.
 */
import { newPayments } from '../protocol/account-payments.ts';
import { createApiClient } from '../protocol/api/client.ts';
import { type PublishedTerms, sliceCutsOf } from '../protocol/books-terms.ts';
import { checkPoolProof, type PoolProof } from '../protocol/pool-proof.ts';
import { readUnpaidEvidence, type UnpaidEvidence } from '../protocol/unpaid-evidence.ts';
import { apiClientDependencies } from '../runtime/api-client.ts';
import type { Terminal } from '../runtime/program.ts';
import { visible } from '../runtime/visible.ts';
import { publishedApi } from './published-api.ts';

type Values = { readonly poolApi: string | undefined; readonly nodeApi: string | undefined; readonly json: boolean };
type Judged = {
  readonly verdict: 'unpaid' | 'paid' | 'unchecked' | 'malformed';
  readonly why?: string;
  readonly credited?: bigint;
  readonly paid?: bigint;
};

/** What the pool's lists credit now. A list that it does not show, or shows otherwise, is named. */
async function creditedBy({ credits, address }: UnpaidEvidence, read: (path: string) => Promise<unknown>) {
  let credited = 0n;
  for (const { service, slice, amount } of credits) {
    const proof = (await read(`proofs/${service}/${slice}?address=${address}`)) as PoolProof;
    const isAsked = proof?.service === service && proof.slice === slice && proof.address === address;
    const checked = checkPoolProof(proof);
    if (!isAsked || !checked.valid) throw new Error(`the pool’s proof of ${service}/${slice} is false`);
    if (String(checked.credit) !== amount)
      throw new Error(
        `the pool’s list ${service}/${slice} credits ${checked.credit} atoms now, the file says ${amount}`,
      );
    credited += checked.credit;
  }
  return credited;
}

async function judge(evidence: UnpaidEvidence, { poolApi, nodeApi }: Values): Promise<Judged> {
  if (poolApi === undefined || nodeApi === undefined)
    return { verdict: 'unchecked', why: 'it takes --pool-api and --node-api' };
  const pool = publishedApi(poolApi);
  const node = createApiClient({ baseUrl: nodeApi }, apiClientDependencies());
  try {
    const credited = await creditedBy(evidence, pool);
    // Of payments the file's word counts nothing: all that came after the first of the lists could be made may be of them.
    const { terms } = (await pool('terms')) as PublishedTerms;
    const first = Math.min(...evidence.credits.map(({ slice }) => slice)) + 1;
    const from = first * (sliceCutsOf(terms) ?? 0);
    const { found } = await newPayments(evidence.address, new Map(), { pool, node }, from);
    const paid = [...found.values()].reduce((sum, atoms) => sum + atoms, 0n);
    return { verdict: credited - paid >= BigInt(evidence.threshold) ? 'unpaid' : 'paid', credited, paid };
  } catch (error) {
    return { verdict: 'unchecked', why: (error as Error).message };
  }
}

function wordsOf({ verdict, why, credited, paid }: Judged, { threshold }: UnpaidEvidence): string {
  if (verdict === 'unchecked') return `Whether the pool paid could not be checked: ${why}.`;
  if (verdict === 'malformed') return 'The file is not evidence of this form.';
  const sums = `its lists credit ${credited} atoms, and the ledger shows payments of ${paid} since then`;
  return verdict === 'unpaid'
    ? `The pool HAS NOT PAID what it credited: ${sums}. It pays from ${threshold} atoms on. Whether it cannot or will not pay, no file shows.`
    : `The pool has paid, or less than its threshold of ${threshold} atoms is left: ${sums}.`;
}

/** 5: the pool has not paid what it credited; 1: it has, or that could not be checked. */
export async function verifyUnpaidEvidence(file: unknown, values: Values, terminal: Terminal): Promise<number> {
  const evidence = readUnpaidEvidence(file);
  const judged: Judged = evidence === undefined ? { verdict: 'malformed' } : await judge(evidence, values);
  const text = values.json
    ? JSON.stringify(judged, (_, value) => (typeof value === 'bigint' ? String(value) : value))
    : wordsOf(judged, evidence ?? ({ threshold: '' } as UnpaidEvidence));
  terminal.out(`${visible(text)}\n`);
  return judged.verdict === 'unpaid' ? 5 : 1;
}
