import { expect, test } from 'vitest';
import { bringSystemPackages, lookAround, type System, TEST_PACKAGES } from '../../scripts/ready/system-packages.mjs';

/** A machine with these commands; `apt-get install` brings what it is asked for. */
function machine(commands: string[], options: { root?: boolean; sudo?: boolean; broken?: boolean; env?: object } = {}) {
  const there = new Set(commands);
  const ran: string[] = [];
  const said: string[] = [];
  const system: System = {
    look: { command: (name) => there.has(name), library: (name) => there.has(name) },
    env: { ...options.env },
    isRoot: options.root ?? false,
    say: (text) => void said.push(text),
    run(command, args) {
      ran.push([command, ...args].join(' '));
      if (command === 'sudo' && !options.sudo) return 1;
      if (args.includes('install') && options.broken) return 100;
      if (args.includes('install')) for (const name of args) there.add(name === 'libvulkan1' ? 'libvulkan.so.1' : name);
      return 0;
    },
  };
  return { system, ran, said };
}

const ALL = ['chromium', 'redis-server', 'libvulkan.so.1'];

test('nothing is run when everything is there', () => {
  const { system, ran } = machine(ALL);
  expect(bringSystemPackages(system)).toBe(false);
  expect(ran).toEqual([]);
});

test('what is missing is installed, by root or through sudo', () => {
  const root = machine(['apt-get', 'chromium'], { root: true });
  expect(bringSystemPackages(root.system)).toBe(true);
  expect(root.ran).toEqual(['apt-get update -q', 'apt-get install -y --no-install-recommends redis-server libvulkan1']);
  expect(root.said).toEqual([
    'installing redis-server (tests of several pool instances), libvulkan1 (WebGPU tests in Node)',
  ]);
  const user = machine(['apt-get', 'sudo', 'chromium', 'redis-server'], { sudo: true });
  expect(bringSystemPackages(user.system)).toBe(true);
  expect(user.ran.at(-1)).toBe('sudo -n apt-get install -y --no-install-recommends libvulkan1');
});

test.each([
  ['no apt-get', machine([], { root: true }), /there is no apt-get here/],
  ['no rights', machine(['apt-get', 'sudo']), /this user may not install packages/],
  ['no sudo', machine(['apt-get']), /this user may not install packages/],
  ['told not to', machine(['apt-get'], { root: true, env: { SVC_NO_INSTALL: '1' } }), /SVC_NO_INSTALL is set/],
  ['apt-get fails', machine(['apt-get'], { root: true, broken: true }), /apt-get failed/],
])('where it may not install (%s), it names the command', (_name, { system }, why) => {
  const line = /apt-get install -y --no-install-recommends chromium redis-server libvulkan1$/;
  expect(() => bringSystemPackages(system)).toThrow(why);
  expect(() => bringSystemPackages(system)).toThrow(line);
});

test('the packages are found on a real machine', () => {
  const look = lookAround(process.env);
  expect(TEST_PACKAGES.filter((entry) => !entry.present(look)).map((entry) => entry.name)).toEqual([]);
  expect(look.command('no-such-command') || look.library('no-such-library.so')).toBe(false);
});
