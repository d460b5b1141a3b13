/**
 * `npm run conformance -- --api URL [--mining URL] [--wallet URL --token-file FILE] [--stratum HOST:PORT] ...`: checks
 * programs that run already, whoever started them. Exit code 0: no fact differs; 1: some do; 2: it could not ask.
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { get, until, wait } from './client.ts';
import { checkAll, type Result, type Target } from './fact.ts';
import { FACTS } from './facts.ts';
import { hasCoins } from './json-rpc.ts';

const text = { type: 'string' } as const;
const OPTIONS = {
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
  'pool-web': text,
  wait: text,
  json: { type: 'boolean' },
} as const;

/** A rich address of the chain: one that its newest blocks pay. A chain that begins has none for a while. */
async function findAddress(api: string): Promise<string | undefined> {
  const found = async () => {
    const { json } = await get(`${api}/v1/blocks/recent?limit=20`);
    return JSON.stringify(json).match(/"([a-z]{2,8}1[02-9ac-hj-np-z]{20,})"/)?.[1];
  };
  return await until(found, (address) => address !== undefined).catch(() => undefined);
}

const STATES = ['kept', 'differs', 'not checked'] as const;

/** A line for each section and one for all, then what is not kept with its reason. */
export function report(results: readonly Result[]): string {
  const count = (own: readonly Result[]) => STATES.map((state) => own.filter((one) => one.state === state).length);
  const sections = [...new Set(results.map((one) => one.section))];
  const rows = sections.map((section) => [section, ...count(results.filter((one) => one.section === section))]);
  const table = [['section', 'kept', 'differ', 'not checked'], ...rows, ['all', ...count(results)]];
  const width = Math.max(...table.map(([section]) => String(section).length));
  const lines = table.map(
    ([section, ...counts]) => String(section).padEnd(width) + counts.map((each) => String(each).padStart(13)).join(''),
  );
  for (const { section, fact, state, why } of results)
    if (state !== 'kept') lines.push(`${state}: ${section}: ${fact}: ${why}`);
  return `${lines.join('\n')}\n`;
}

async function readTarget(words: string[]): Promise<{ readonly target: Target; readonly json: boolean }> {
  const { values } = parseArgs({ args: words, options: OPTIONS });
  if (values.wait !== undefined) {
    if (!/^[1-9]\d{0,3}$/.test(values.wait)) throw new Error('--wait takes seconds, 1 to 9,999');
    wait.seconds = Number(values.wait);
  }
  const api = values.api ?? 'http://127.0.0.1:28701';
  await get(`${api}/health`).catch(() => {
    throw new Error(`${api} does not answer`);
  });
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
    poolWeb: values['pool-web'],
  };
  if (target.wallet !== undefined && target.token !== undefined) await hasCoins(target).catch(() => undefined);
  return { target, json: values.json === true };
}

if (import.meta.main) {
  try {
    const { target, json } = await readTarget(process.argv.slice(2));
    const results = await checkAll(FACTS, target);
    process.stdout.write(json ? `${JSON.stringify(results, undefined, 2)}\n` : report(results));
    process.exitCode = results.some(({ state }) => state === 'differs') ? 1 : 0;
  } catch (error) {
    process.stderr.write(`conformance: ${(error as Error).message}\n`);
    process.exitCode = 2;
  }
}
