/**
 * `npm run bench`: lists the benchmarks. `npm run bench -- NAME [words]`: runs test/bench/NAME.bench.ts and prints a
 * table for people, then one JSON line per figure for machines.
 */
import { readdirSync } from 'node:fs';
import { cpus } from 'node:os';
import { nearest, USAGE_EXIT } from '../../runtime/command-line/command-line.ts';
import { type Benchmark, renderTable, runBenchmark } from './harness.ts';

const SUFFIX = '.bench.ts';
const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(SUFFIX))
  .map((file) => file.slice(0, -SUFFIX.length))
  .sort();

const load = async (name: string): Promise<Benchmark> =>
  ((await import(`./${name}${SUFFIX}`)) as { default: Benchmark }).default;

async function list(): Promise<void> {
  const width = Math.max(...names.map((name) => name.length));
  for (const name of names) process.stdout.write(`${name.padEnd(width)}  ${(await load(name)).summary}\n`);
  process.stdout.write('\nnpm run bench -- NAME runs one.\n');
}

async function run(name: string, words: readonly string[]): Promise<void> {
  const benchmark = await load(name);
  const machine = `${cpus()[0]?.model ?? 'unknown processor'}, ${cpus().length} cores, Node ${process.versions.node}`;
  process.stdout.write(`${name}: ${benchmark.summary}\n  ${machine}, ${process.platform}-${process.arch}\n`);
  const figures = await runBenchmark(name, benchmark, words, (text) => process.stdout.write(text));
  process.stdout.write(`\n${renderTable(figures)}\n`);
  for (const figure of figures) process.stdout.write(`${JSON.stringify(figure)}\n`);
}

const [name, ...words] = process.argv.slice(2);
if (name === undefined) await list();
else if (names.includes(name)) await run(name, words);
else {
  const near = nearest(name, names);
  process.stderr.write(
    `there is no benchmark '${name}' (${near === undefined ? 'npm run bench lists them' : `did you mean ${near}?`})\n`,
  );
  process.exitCode = USAGE_EXIT;
}
