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

/** Each option, and what is asked there: of `--help` and of docs/conformance.md. */
export const HELP: readonly (readonly [string, string])[] = [
  ['--api URL', 'public HTTP API and its sockets (default `http://127.0.0.1:28701`)'],
  ['--mining URL', 'mining listener'],
  [
    '--wallet URL --token-file FILE',
    'wallet daemon; it pays about three coins, most of them to itself, and burns an eighth of one',
  ],
  ['--stratum HOST:PORT', 'bridge or pool'],
  ['--pool-web URL', '`/metrics` of the pool'],
  ['--node-metrics URL', 'metrics listener of the node (`npm start` has none of these three)'],
  ['--bridge-metrics URL', 'metrics listener of the bridge'],
  ['--miner-metrics URL', 'metrics listener of the miner'],
  ['--bridge-stats URL', 'JSON statistics of the bridge'],
  ['--miner-stats URL', 'JSON statistics of the miner'],
  ['--address ADDRESS', 'an address with coins (default: one that the newest blocks pay)'],
  ['--wait SECONDS', 'how long one answer may take (default 30), for programs on a slow or busy machine'],
  ['--json', 'results as JSON: `section`, `fact`, `state`, and `why` where it is not kept'],
  ['--help', 'this text'],
];
const helpText = (): string => {
  const width = Math.max(...HELP.map(([option]) => option.length)) + 2;
  const options = HELP.map(([option, what]) => `  ${option.padEnd(width)}${what.replaceAll('`', '')}\n`).join('');
  return `Asks running programs for the facts of the specification. What no option names is not checked.\n\n${options}\nExit code 0: no fact differs; 1: some do; 2: it could not ask. docs/conformance.md has the options for npm start.\n`;
};

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
  help: { type: 'boolean', short: 'h' },
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

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values'];

async function readTarget(values: Values): Promise<Target> {
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
  return target;
}

if (import.meta.main) {
  try {
    const { values } = parseArgs({ options: OPTIONS });
    if (values.help) process.stdout.write(helpText());
    else {
      const results = await checkAll(FACTS, await readTarget(values));
      process.stdout.write(values.json ? `${JSON.stringify(results, undefined, 2)}\n` : report(results));
      process.exitCode = results.some(({ state }) => state === 'differs') ? 1 : 0;
    }
  } catch (error) {
    process.stderr.write(`conformance: ${(error as Error).message}\n`);
    process.exitCode = 2;
  }
}
