import { expect, test } from 'vitest';
import { bringSystemPackages, lookAround, type System, TEST_PACKAGES } from '../../scripts/ready/system-packages.mjs';

/** A machine with these commands; `apt-get install` brings what it is asked for. */
type Machine = { root?: boolean; sudo?: boolean; broken?: boolean; env?: object; answer?: boolean };
const PACKAGES: Record<string, string> = {
  libvulkan1: 'libvulkan.so.1',
  prometheus: 'promtool',
  'nginx-light': 'nginx',
  jq: 'jq',
  curl: 'curl',
};

function machine(commands: string[], options: Machine = {}) {
  const there = new Set(commands);
  const ran: string[] = [];
  const said: string[] = [];
  const asked: string[] = [];
  const system: System = {
    look: { command: (name) => there.has(name), library: (name) => there.has(name) },
    env: { SVC_INSTALL: 'yes', ...options.env },
    isRoot: options.root ?? false,
    say: (text) => void said.push(text),
    ask(question) {
      asked.push(question);
      return options.answer;
    },
    run(command, args) {
      ran.push([command, ...args].join(' '));
      if (command === 'sudo' && !options.sudo) return 1;
      if (args.includes('install') && options.broken) return 100;
      if (args.includes('install')) for (const name of args) there.add(PACKAGES[name] ?? name);
      return 0;
    },
  };
  return { system, ran, said, asked };
}

const ALL = ['chromium', 'redis-server', 'libvulkan.so.1', 'promtool', 'nginx', 'jq', 'curl'];

test('nothing is run when everything is there', () => {
  const { system, ran } = machine(ALL);
  expect(bringSystemPackages(system)).toBe(false);
  expect(ran).toEqual([]);
});

test('what is missing is installed, by root or through sudo', () => {
  const root = machine(['apt-get', 'chromium', 'promtool', 'nginx', 'jq', 'curl'], { root: true });
  expect(bringSystemPackages(root.system)).toBe(true);
  expect(root.ran).toEqual(['apt-get update -q', 'apt-get install -y --no-install-recommends redis-server libvulkan1']);
  expect(root.said).toEqual([
    'installing redis-server (tests of several pool instances), libvulkan1 (WebGPU tests in Node)',
  ]);
  const user = machine(['apt-get', 'sudo', 'chromium', 'redis-server', 'promtool', 'nginx', 'jq', 'curl'], {
    sudo: true,
  });
  expect(bringSystemPackages(user.system)).toBe(true);
  expect(user.ran.at(-1)).toBe('sudo -n apt-get install -y --no-install-recommends libvulkan1');
});

test.each([
  ['no apt-get', machine([], { root: true }), /there is no apt-get here/],
  ['no rights', machine(['apt-get', 'sudo']), /this user may not install packages/],
  ['no sudo', machine(['apt-get']), /this user may not install packages/],
  [
    'told not to',
    machine(['apt-get'], { root: true, env: { SVC_INSTALL: 'no', CI: 'true' } }),
    /SVC_INSTALL=no forbids/,
  ],
  ['nobody to ask', machine(['apt-get'], { root: true, env: { SVC_INSTALL: '' } }), /without a yes \(SVC_INSTALL=yes/],
  ['the answer is no', machine(['apt-get'], { root: true, env: { SVC_INSTALL: '' }, answer: false }), /you said no/],
  ['apt-get fails', machine(['apt-get'], { root: true, broken: true }), /apt-get failed/],
])('where it may not install (%s), it names the command', (_name, { system }, why) => {
  const line =
    /apt-get install -y --no-install-recommends chromium redis-server libvulkan1 prometheus nginx-light jq curl$/;
  expect(() => bringSystemPackages(system)).toThrow(why);
  expect(() => bringSystemPackages(system)).toThrow(line);
});

test('nothing is run before somebody said yes: at the terminal, by SVC_INSTALL, or by CI', () => {
  const asked = machine(['apt-get'], { root: true, env: { SVC_INSTALL: '' }, answer: true });
  expect(bringSystemPackages(asked.system)).toBe(true);
  expect(asked.asked).toHaveLength(1);
  expect(asked.asked[0]).toMatch(/chromium .*curl[\s\S]*apt-get install -y .* now\?$/);
  const ci = machine(['apt-get'], { root: true, env: { SVC_INSTALL: '', CI: 'true' } });
  expect(bringSystemPackages(ci.system)).toBe(true);
  expect(ci.asked).toEqual([]);
  for (const env of [
    { SVC_INSTALL: 'no' },
    { SVC_INSTALL: '' },
    { SVC_INSTALL: 'maybe' },
    { SVC_INSTALL: '', CI: 'false' },
  ]) {
    const { system, ran } = machine(['apt-get'], { root: true, env });
    expect(() => bringSystemPackages(system)).toThrow();
    expect(ran).toEqual([]);
  }
});

test('the packages are found on a real machine', () => {
  const look = lookAround(process.env);
  expect(TEST_PACKAGES.filter((entry) => !entry.present(look)).map((entry) => entry.name)).toEqual([]);
  expect(look.command('no-such-command') || look.library('no-such-library.so')).toBe(false);
});
