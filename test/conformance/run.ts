/**
 * `npm run conformance -- --api URL [--mining URL] [--wallet URL --token-file FILE] [--stratum HOST:PORT] ...`: checks
 * programs that run already. Exit code 1 where a fact differs.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { get } from './client.ts';
import { checkAll, type Result, type Target } from './fact.ts';
import { FACTS } from './facts.ts';

const text = { type: 'string' } as const;
const { values } = parseArgs({
  options: {
    api: text,
    mining: text,
    wallet: text,
    'token-file': text,
    stratum: text,
    address: text,
    'node-metrics': text,
    'bridge-metrics': text,
    'miner-metrics': text,
    'bridge-stats': text,
    'miner-stats': text,
  },
});

/** A rich address of the chain: one that the newest blocks pay. */
async function findAddress(api: string): Promise<string | undefined> {
  const { json } = await get(`${api}/v1/blocks/recent?limit=20`);
  const texts = JSON.stringify(json).match(/"[a-z]{2,8}1[02-9ac-hj-np-z]{20,}"/g);
  return texts?.[0]?.slice(1, -1);
}

export function report(results: readonly Result[]): string {
  const lines: string[] = [];
  for (const section of new Set(results.map((one) => one.section))) {
    const own = results.filter((one) => one.section === section);
    const count = (state: Result['state']) => own.filter((one) => one.state === state).length;
    lines.push(`${section}: ${count('kept')} kept, ${count('differs')} differ, ${count('not checked')} not checked`);
    for (const { fact, state, why } of own) if (state !== 'kept') lines.push(`  ${state}: ${fact}: ${why}`);
  }
  return `${lines.join('\n')}\n`;
}

if (import.meta.main) {
  const api = values.api ?? 'http://127.0.0.1:28701';
  const file = values['token-file'];
  const target: Target = {
    api,
    mining: values.mining,
    wallet: values.wallet,
    token: file === undefined ? undefined : readFileSync(file, 'utf8').trim(),
    stratum: values.stratum,
    address: values.address ?? (await findAddress(api)),
    nodeMetrics: values['node-metrics'],
    bridgeMetrics: values['bridge-metrics'],
    minerMetrics: values['miner-metrics'],
    bridgeStats: values['bridge-stats'],
    minerStats: values['miner-stats'],
  };
  const results = await checkAll(FACTS, target);
  process.stdout.write(report(results));
  process.exitCode = results.some(({ state }) => state === 'differs') ? 1 : 0;
}
