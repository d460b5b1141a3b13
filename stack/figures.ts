/** The pool's figures for the terminal, read from its web API; undefined while it does not answer. */
import { plainFetch, textOf } from '../runtime/node-client/http-fetch.ts';
import type { PoolFigures } from './news.ts';

export async function readFigures(webUrl: string): Promise<PoolFigures | undefined> {
  try {
    const signal = AbortSignal.timeout(3000);
    const answer = await plainFetch(`${webUrl}/metrics`, { method: 'GET', headers: {}, signal });
    return answer.status === 200 ? figuresOf(await textOf(answer)) : undefined;
  } catch {
    return undefined;
  }
}

/** Sums the samples of a metric, over all of its labels or those given. */
function metric(text: string, name: string, label = ''): number {
  let sum = 0;
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    const [, labels = '', value = '0'] = /^[a-z_]+(\{[^}]*\})? ([-+.eE\d]+)/.exec(line) ?? [];
    const whole = line[name.length];
    if ((whole === ' ' || whole === '{') && labels.includes(label)) sum += Number(value);
  }
  return sum;
}

export const figuresOf = (text: string): PoolFigures => ({
  miners: metric(text, 'svc_pool_connections'),
  hashRate: metric(text, 'svc_pool_hash_rate'),
  shares: BigInt(Math.round(metric(text, 'svc_pool_shares_total', 'result="accepted"'))),
  blocksFound: metric(text, 'svc_pool_blocks_found_total'),
  blocksPaid: metric(text, 'svc_pool_blocks_paid_total'),
  payoutsFinal: metric(text, 'svc_pool_payouts_total', 'state="finalized"'),
  paidAtoms: BigInt(Math.round(metric(text, 'svc_pool_paid_atoms'))),
});
