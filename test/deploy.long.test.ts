/** deploy/ and docs/operations.md speak of metrics, programs, options and ports that exist. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { PACKAGES } from '../scripts/release/debian-packages.ts';
import { PORTS } from '../stack/parts.ts';
import { FILES, isCode, read, topFolder } from './guards/project-files.ts';

const ROOT = join(import.meta.dirname, '..');
const deployed = FILES.filter((path) => path.startsWith('deploy/'));
const PROGRAM_FOLDERS = ['bridge', 'miner', 'node', 'pool', 'runtime', 'wallet'];
/** What a histogram is exported as. */
const SUFFIX = /_(bucket|sum|count)$/;

/** Names of metrics as the programs' code spells them. */
function exported(): Set<string> {
  const names = new Set<string>();
  for (const path of FILES.filter((file) => isCode(file) && PROGRAM_FOLDERS.includes(topFolder(file))))
    for (const [, name = ''] of read(path).matchAll(/'(svc_[a-z0-9_]+[a-z0-9])'/g)) names.add(name);
  // Those that every program has, under its own prefix.
  for (const [, name = ''] of read('runtime/metrics/metrics.ts').matchAll(/prefix\}_([a-z0-9_]+[a-z0-9])`/g))
    for (const program of ['node', 'pool', 'bridge', 'miner']) names.add(`svc_${program}_${name}`);
  return names;
}

const namedIn = (path: string): string[] => [
  ...new Set(read(path).match(/\bsvc_(?:node|pool|bridge|miner|wallet)_[a-z0-9_]+/g)),
];

test('every metric of the alerts, of the Grafana dashboard and of the docs is exported by a program', () => {
  const made = exported();
  expect(made.size).toBeGreaterThan(20);
  const docs = ['operations', 'node', 'validator', 'network'].map((page) => `docs/${page}.md`);
  const pages = ['deploy/prometheus/rules.yaml', 'deploy/grafana/pool.json', ...docs];
  const wrong = pages.flatMap((page) => {
    const names = namedIn(page);
    if (page.startsWith('deploy/')) expect(names.length, page).toBeGreaterThan(5);
    return names
      .filter((name) => !made.has(name) && !made.has(name.replace(SUFFIX, '')))
      .map((name) => `${page}: ${name}`);
  });
  expect(wrong).toEqual([]);
});

test('every alert is in the table of docs/operations.md, with what to do first', () => {
  const alerts = [...read('deploy/prometheus/rules.yaml').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const rows =
    read('docs/operations.md')
      .match(/^\|[^|]*\|/gm)
      ?.join('') ?? '';
  expect(alerts.length).toBeGreaterThan(20);
  expect(alerts.filter((name) => !new RegExp(`\\b${name}\\b`).test(rows))).toEqual([]);
});

test('the Grafana dashboard is one, with a query in every panel', () => {
  const { panels, title } = JSON.parse(read('deploy/grafana/pool.json')) as {
    title: string;
    panels: { title: string; type: string; targets?: { expr: string }[] }[];
  };
  expect(title).not.toBe('');
  for (const panel of panels.filter(({ type }) => type !== 'row'))
    for (const { expr } of panel.targets ?? [{ expr: '' }]) expect(expr, panel.title).toMatch(/svc_/);
});

const helps = new Map<string, string>();
function help(program: string, command: string): string {
  const words = [join(ROOT, 'bin', program), ...(command === '' ? [] : [command]), '--help'];
  const key = words.join(' ');
  if (!helps.has(key)) helps.set(key, spawnSync(process.execPath, words, { encoding: 'utf8' }).stdout);
  return helps.get(key) ?? '';
}

test('units and compose file start programs with commands and options they have', () => {
  const lines: [string, string, string, string][] = [];
  for (const path of deployed) {
    const text = read(path).replaceAll(/", "/g, ' ');
    for (const [, program = '', rest = ''] of text.matchAll(/^(?!\s*#).*\bbin\/(svcd|svc-[a-z]+)([^"\n]*)/gm))
      lines.push([path, program, /^ ([a-z][a-z-]*)(?= |$)/.exec(rest)?.[1] ?? '', rest]);
  }
  expect(new Set(lines.map(([, program]) => program))).toEqual(
    new Set(['svcd', 'svc-wallet', 'svc-pool', 'svc-bridge', 'svc-proxy', 'svc-miner']),
  );
  for (const [path, program, command, rest] of lines) {
    expect(Object.keys(packageJson.bin), path).toContain(program);
    const known = help(program, command);
    expect(known, `${path}: ${program} ${command}`).toMatch(/--config/);
    for (const [option] of rest.matchAll(/--[a-z-]+/g)) expect(known, `${path}: ${option}`).toContain(option);
  }
});

test('options named in comments and in the nginx site exist, and so do the ports', () => {
  const nginx = read('deploy/nginx/pool.conf');
  const pool = help('svc-pool', 'run');
  for (const [option] of nginx.matchAll(/--[a-z][a-z-]+/g)) expect(pool, option).toContain(option);
  const known = new Set<number>(Object.values(PORTS).map(({ port }) => port));
  for (const path of deployed.filter((file) => !/\.json$|^deploy\/prometheus\//.test(file)))
    for (const [port] of read(path).matchAll(/\b287\d\d\b/g)) expect(known, `${path}: ${port}`).toContain(Number(port));
  expect(nginx).toContain(`proxy_pass http://127.0.0.1:${PORTS.web.port};`);
});

test('Prometheus scrapes the ports at which the programs serve metrics', () => {
  const jobs = read('deploy/prometheus/prometheus.yaml').matchAll(/job_name: (\S+)\n.*?127\.0\.0\.1:(\d+)/g);
  const ports = Object.fromEntries([...jobs].map(([, job, port]) => [job, port]));
  const serves = (program: string, command: string, option: string) =>
    new RegExp(`--${option} [^\\n]*\\b(28\\d{3})`).exec(help(program, command))?.[1];
  expect(ports).toEqual({
    svcd: serves('svcd', 'run', 'metrics-bind'),
    'svc-bridge': serves('svc-bridge', '', 'metrics-bind'),
    'svc-pool': serves('svc-pool', 'run', 'web-bind'),
    'svc-miner': serves('svc-miner', '', 'metrics-bind'),
    'svc-proxy': serves('svc-proxy', '', 'metrics-bind'),
  });
  expect(read('docs/operations.md')).toContain('"metrics-bind": "127.0.0.1"');
});

test('there is an image of every program, which is asked for its health where it listens, and nothing that runs one may write or gain rights', () => {
  const images = [
    ...read('deploy/build-images.sh').matchAll(/^(svc-[a-z]+) (svc[a-z-]+) http:\/\/127\.0\.0\.1(:\d+)\/\S+$/gm),
  ];
  expect(images.map(([, , program]) => program).sort()).toEqual(Object.keys(packageJson.bin).sort());
  for (const [, name = '', program = '', port = ''] of images) {
    expect(PACKAGES, name).toContain(name);
    const command = { svcd: 'run', 'svc-pool': 'run', 'svc-wallet': 'daemon' }[program] ?? '';
    expect(help(program, command), program).toContain(`127.0.0.1${port}`);
  }
  expect(read('deploy/Dockerfile')).toMatch(/^USER 10001$/m);
  const compose = read('deploy/compose.yaml');
  const ours = (text: string): number => [...text.matchAll(/^ *image: svc-[a-z]+$/gm)].length;
  expect(ours(compose)).toBe(compose.split('<<: *program').length - 1);
  expect(compose).toContain('read_only: true');
  const kubernetes = read('deploy/kubernetes/pool.yaml');
  const bound = /securityContext: (?:\*|.*readOnlyRootFilesystem: true.*drop: \[ALL\])/g;
  expect([...kubernetes.matchAll(bound)].length).toBe([...kubernetes.matchAll(/^ *image: /gm)].length);
});

test('the example configurations of docs/operations.md name options that exist', () => {
  const operations = read('docs/operations.md');
  const programs: Record<string, [string, string]> = {
    'node.json': ['svcd', 'run'],
    'pool.json': ['svc-pool', 'run'],
    'wallet.json': ['svc-wallet', 'daemon'],
    'bridge.json': ['svc-bridge', ''],
    'proxy.json': ['svc-proxy', ''],
    'miner.json': ['svc-miner', ''],
  };
  for (const file of readdirSync(join(ROOT, 'deploy/systemd'))) {
    expect(read(`deploy/systemd/${file}`), `${file}: wrong options are not tried again`).toContain(
      'RestartPreventExitStatus=2',
    );
    expect(read(`deploy/systemd/${file}`), `${file}: data of others`).toContain('StateDirectoryMode=0700');
    const [, config] =
      /\/etc\/svc\/([a-z]+)(?:-%i)?\.json/.exec(readFileSync(join(ROOT, 'deploy/systemd', file), 'utf8')) ?? [];
    expect(Object.keys(programs), file).toContain(`${config}.json`);
  }
  const examples = [...operations.matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, text = '']) => JSON.parse(text) as object,
  );
  const all = Object.values(programs).map(([program, command]) => help(program, command));
  for (const example of examples)
    for (const key of Object.keys(example)) {
      const option = `--${key.replaceAll(/[A-Z_]/g, (letter) => `-${letter.replace('_', '').toLowerCase()}`)}`;
      expect(
        all.some((text) => text.includes(option) || text.includes(`--[no-]${option.slice(2)}`)),
        option,
      ).toBe(true);
    }
});
