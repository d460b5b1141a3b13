/**
 * `npm run mutate`: puts small faults into the source, one at a time, and runs the tests that are nearest to each. A fault that no
 * test notices shows what nobody would notice. It works in copies; the checkout is not touched.
 */
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, posix, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { FILES, importsOf, isCode, ROOT, read } from '../guards/project-files.ts';
import { randomOf } from '../random.ts';
import { type Mutant, mutantsOf, withMutant } from './mutants.ts';
import { nearestTests } from './nearest-tests.ts';

/** Where an error costs money, safety or an outage. */
const FOLDERS = [
  'pool/books',
  'pool/payout',
  'pool/audit',
  'pool/journal',
  'pool/feed',
  'pool/accountant',
  'node/ledger',
  'node/consensus',
  'wallet/payments',
  'wallet/state',
  'protocol',
  'bridge/session',
  'bridge/shares',
  'runtime/door',
];

const HELP = `npm run mutate -- [FOLDER or FILE ...] [options]

Puts one small fault at a time into a copy of the source and runs the nearest tests. Survivors are faults that no test noticed.
Without a folder: ${FOLDERS.join(', ')}.

  --sample N     that many faults, drawn from all (default 300; 0: all of them)
  --seed N       which ones are drawn (default: a new draw each time, printed)
  --level LEVEL  quick: short tests only (default); full: those that survive are tried on slow tests too
  --tests N      at most that many of the nearest tests for a fault (default 12)
  --jobs N       copies that work side by side (default 2)
  --limit N      seconds for the tests of one fault; a fault that makes them hang is noticed (default 120)
  --json FILE    writes every verdict to a file

Accepted survivors, each with a reason, are in test/mutation/equivalents.json.
Exit code 0; 2 for a wrong option.
Example: npm run mutate -- protocol/books --sample 50 --seed 7
`;

/** `unsound`: its tests fail without the fault too, so they say nothing about it. */
type Verdict = 'noticed' | 'hung' | 'survived' | 'equivalent' | 'no test' | 'unsound';
type Judged = Mutant & { readonly verdict: Verdict; readonly level: 'quick' | 'full'; readonly before: string };
type Equivalent = { readonly file: string; readonly before: string; readonly after: string; readonly reason: string };

const equivalents: readonly Equivalent[] = JSON.parse(read('test/mutation/equivalents.json'));

function readOptions() {
  const number = (text: string, name: string): number => {
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < 0) throw new TypeError(`--${name} takes a whole number, not '${text}'`);
    return value;
  };
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      sample: { type: 'string', default: '300' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      level: { type: 'string', default: 'quick' },
      tests: { type: 'string', default: '12' },
      jobs: { type: 'string', default: '2' },
      limit: { type: 'string', default: '120' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.level !== 'quick' && values.level !== 'full')
    throw new TypeError(`--level is quick or full, not '${values.level}'`);
  return {
    folders: positionals.length > 0 ? positionals : FOLDERS,
    sample: number(values.sample, 'sample'),
    seed: number(values.seed, 'seed'),
    level: values.level,
    tests: Math.max(1, number(values.tests, 'tests')),
    jobs: Math.max(1, number(values.jobs, 'jobs')),
    limitSeconds: Math.max(1, number(values.limit, 'limit')),
    json: values.json,
    help: values.help,
  } as const;
}

type Options = ReturnType<typeof readOptions>;

function importGraph(): Map<string, string[]> {
  const code = FILES.filter(isCode);
  const known = new Set(code);
  const target = (path: string, from: string): string => posix.normalize(posix.join(posix.dirname(path), from));
  return new Map(
    code.map((path) => [
      path,
      importsOf(path)
        .filter(({ from, typesOnly }) => from.startsWith('.') && !typesOnly)
        .map(({ from }) => target(path, from))
        .filter((found) => known.has(found)),
    ]),
  );
}

/** Seconds that each test file took in the last run, where there was one. */
function lastTimes(): Map<string, number> {
  const path = join(ROOT, '.ready', 'tests.json');
  if (!existsSync(path)) return new Map();
  const { testResults = [] }: { testResults?: { name: string; startTime: number; endTime: number }[] } = JSON.parse(
    readFileSync(path, 'utf8'),
  );
  return new Map(
    testResults.map(({ name, startTime, endTime }) => [relative(ROOT, name), (endTime - startTime) / 1000]),
  );
}

function drawn<T>(from: readonly T[], count: number, seed: number): T[] {
  if (count === 0 || count >= from.length) return [...from];
  const random = randomOf(seed);
  const left = [...from];
  return Array.from({ length: count }, () => left.splice(random(left.length), 1)[0] as T);
}

/** A copy of the checkout, with its installed packages and built files. */
function makeCopy(): string {
  const copy = mkdtempSync(join(tmpdir(), 'svc-mutate-'));
  // Where root runs the tests, their databases run as another user.
  chmodSync(copy, 0o755);
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: ROOT, encoding: 'utf8' });
  for (const path of listed.split('\0').filter((name) => name !== '' && existsSync(join(ROOT, name)))) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    cpSync(join(ROOT, path), join(copy, path), { verbatimSymlinks: true });
  }
  for (const built of ['build', '.ready'])
    if (existsSync(join(ROOT, built))) cpSync(join(ROOT, built), join(copy, built), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Whether tests pass in the copy: false, or 'hung' when they did not end in time. */
function runTests(copy: string, tests: readonly string[], { limitSeconds }: Options): Promise<boolean | 'hung'> {
  return new Promise((resolve) => {
    const child = spawn(
      process.execPath,
      [
        join(copy, 'node_modules/vitest/vitest.mjs'),
        'run',
        '--bail=1',
        '--reporter=dot',
        '--no-file-parallelism',
        ...tests,
      ],
      // A group of its own, so that programs that the tests started end with it.
      {
        cwd: copy,
        stdio: 'ignore',
        detached: true,
        env: { ...process.env, SVC_KEPT_BUILDS: 'yes', SVC_TEST_LEVEL: 'full' },
      },
    );
    let hung = false;
    const end = setTimeout(() => {
      hung = true;
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    }, limitSeconds * 1000);
    child.once('close', (code) => {
      clearTimeout(end);
      resolve(hung ? 'hung' : code === 0);
    });
  });
}

/** Of tests that a fault made fail: whether they pass without any. */
const soundTests = new Map<string, Promise<boolean>>();

async function judge(copy: string, mutant: Mutant, near: readonly string[], options: Options): Promise<Judged> {
  const source = read(mutant.file);
  const before = source.slice(mutant.start, mutant.end);
  const verdict = (verdict: Verdict, level: 'quick' | 'full' = 'quick'): Judged => ({
    ...mutant,
    verdict,
    level,
    before,
  });
  if (
    equivalents.some(
      ({ file, before: text, after }) => file === mutant.file && text === before && after === mutant.replacement,
    )
  )
    return verdict('equivalent');
  const isSlow = (test: string): boolean => /\.(?:slow|long)\.test\.ts$/.test(test);
  const quick = near.filter((test) => !isSlow(test)).slice(0, options.tests);
  const slow = options.level === 'full' ? near.filter(isSlow).slice(0, options.tests) : [];
  if (quick.length + slow.length === 0) return verdict('no test');
  writeFileSync(join(copy, mutant.file), withMutant(source, mutant));
  try {
    for (const [level, tests] of [
      ['quick', quick],
      ['full', slow],
    ] as const) {
      if (tests.length === 0) continue;
      const passed = await runTests(copy, tests, options);
      if (passed === true) continue;
      writeFileSync(join(copy, mutant.file), source);
      const key = tests.join(' ');
      if (!soundTests.has(key))
        soundTests.set(
          key,
          runTests(copy, tests, options).then((sound) => sound === true),
        );
      if ((await soundTests.get(key)) !== true) return verdict('unsound', level);
      return verdict(passed === 'hung' ? 'hung' : 'noticed', level);
    }
    return verdict('survived', options.level);
  } finally {
    writeFileSync(join(copy, mutant.file), source);
  }
}

const shown = ({ file, line, kind, before, replacement }: Judged): string => {
  const short = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 100);
  return `${file}:${line}  ${kind}: ${short(before)}  ->  ${short(replacement)}`;
};

/** The folder of the list that a file belongs to. */
const folderOf = (file: string, folders: readonly string[]): string =>
  folders.find((folder) => file === folder || file.startsWith(`${folder}/`)) ?? dirname(file);

function printReport(judged: readonly Judged[], { folders }: Options): void {
  const isNoticed = ({ verdict }: Judged): boolean => verdict === 'noticed' || verdict === 'hung';
  const rows = Object.entries(Object.groupBy(judged, ({ file }) => folderOf(file, folders)));
  process.stdout.write('\nfolder                    faults  quick  slow  survived  noticed\n');
  const all: [string, Judged[] | undefined][] = [
    ...rows.toSorted(([a], [b]) => a.localeCompare(b)),
    ['all', [...judged]],
  ];
  for (const [name, group = []] of all) {
    const counted = group.filter(({ verdict }) => verdict !== 'equivalent');
    const noticed = counted.filter(isNoticed);
    const quick = noticed.filter(({ level }) => level === 'quick').length;
    const part = counted.length === 0 ? 100 : (100 * noticed.length) / counted.length;
    process.stdout.write(
      `${name.padEnd(24)} ${String(counted.length).padStart(7)} ${String(quick).padStart(6)} ${String(noticed.length - quick).padStart(5)} ` +
        `${String(counted.length - noticed.length).padStart(9)} ${part.toFixed(0).padStart(7)} %\n`,
    );
  }
  process.stdout.write('\nSurvivors:\n');
  const first = { survived: '', 'no test': '', unsound: 'its tests fail without it: ' };
  for (const one of judged)
    if (one.verdict in first) process.stdout.write(`${first[one.verdict as keyof typeof first]}${shown(one)}\n`);
}

async function main(options: Options): Promise<void> {
  const files = FILES.filter(
    (path) =>
      isCode(path) &&
      options.folders.some((folder) => path === folder || path.startsWith(`${folder.replace(/\/$/, '')}/`)),
  );
  if (files.length === 0) throw new TypeError(`no source under ${options.folders.join(', ')}`);
  const all = files.flatMap((file) => mutantsOf(file, read(file)));
  const chosen = drawn(all, options.sample, options.seed);
  process.stdout.write(`${chosen.length} of ${all.length} faults in ${files.length} files, --seed ${options.seed}\n`);
  const graph = importGraph();
  const times = lastTimes();
  const near = (file: string): string[] =>
    nearestTests(file, graph, (test) => times.get(test) ?? 1).map(({ test }) => test);
  const judged: Judged[] = [];
  const work = async (): Promise<void> => {
    const copy = makeCopy();
    try {
      for (let mutant = chosen.pop(); mutant !== undefined; mutant = chosen.pop()) {
        const one = await judge(copy, mutant, near(mutant.file), options);
        judged.push(one);
        process.stdout.write(`${String(judged.length).padStart(4)}  ${one.verdict.padEnd(10)} ${shown(one)}\n`);
      }
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  };
  await Promise.all(Array.from({ length: options.jobs }, work));
  printReport(judged, options);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(judged, undefined, 1)}\n`);
}

try {
  const options = readOptions();
  if (options.help) process.stdout.write(HELP);
  else await main(options);
} catch (error) {
  if (!(error instanceof TypeError)) throw error;
  process.stderr.write(`${error.message}\nnpm run mutate -- --help lists the options.\n`);
  process.exitCode = 2;
}
