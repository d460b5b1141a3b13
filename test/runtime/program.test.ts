import { expect, test } from 'vitest';
import { integer } from '../../runtime/command-line/command-line.ts';
import { readLevelFilter } from '../../runtime/log/log.ts';
import { type Command, command, commandTable, serve, version } from '../../runtime/program.ts';
import { RuntimeError } from '../../runtime/runtime-error.ts';

const count = command(
  { name: 'svc-x count', summary: 'Counts.', options: { upTo: integer({ help: 'limit', default: 3 }) } },
  ({ upTo }, _operands, { out }) => {
    out(`${upTo}\n`);
    return 7;
  },
);
const program = commandTable('svc-x', 'A program.', [count]);

async function start(entry: Command, ...words: string[]) {
  let out = '';
  let err = '';
  const terminal = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    readText: () => '{}',
    env: {},
  };
  const code = await entry.start(words, terminal);
  return { code, out, err };
}

test('a command runs with its values and its exit code is passed on', async () => {
  expect(await start(program, 'count', '--up-to', '5')).toEqual({ code: 7, out: '5\n', err: '' });
});

test('help and version are answers, a usage error exits with 2', async () => {
  expect(await start(program, '--version')).toEqual({ code: 0, out: `svc-x ${version()}\n`, err: '' });
  expect(await start(program, 'count', '-V')).toEqual({ code: 0, out: `svc-x ${version()}\n`, err: '' });
  expect((await start(program, '--help')).out).toContain('count  Counts.');
  expect((await start(program, 'count', '--help')).out).toContain('--up-to N  limit (default 3)');
  expect(await start(program)).toMatchObject({ code: 2, out: '' });
  expect(await start(program, 'conut')).toEqual({
    code: 2,
    out: '',
    err: "svc-x: there is no command 'conut' (did you mean count?) [usage_unknown_command]\n",
  });
  expect((await start(count, '--up-to', 'x')).err).toMatch(/^svc-x count: --up-to must be .* \[usage_value\]\n$/);
});

test('a command that is typed with more than its name complains by its name, and shows how to type it', async () => {
  const typed = command({ name: 'npm start', typed: 'npm start --', summary: 'Starts.', options: {} }, () => 0);
  expect((await start(typed, '--help')).out).toContain('Usage: npm start -- [options]');
  expect(await start(typed, '--version')).toMatchObject({ out: `npm start ${version()}\n` });
  expect((await start(typed, '--wat')).err).toBe(
    'npm start: there is no option --wat (npm start -- --help lists the options) [usage_unknown_option]\n',
  );
});

test('what the user can put right is one line; a bug is not hidden', async () => {
  const failing = (error: Error) =>
    command({ name: 'svc-x', summary: 'x', options: {} }, () => {
      throw error;
    });
  expect(await start(failing(new RuntimeError('listen_failed', 'cannot listen')))).toEqual({
    code: 1,
    out: '',
    err: 'svc-x: cannot listen [listen_failed]\n',
  });
  await expect(start(failing(new TypeError('a bug')))).rejects.toThrow('a bug');
});

test('a start that fails because the end was asked for meanwhile is no failure; one that fails by itself is', async () => {
  const starting = (isAsked: boolean) =>
    command({ name: 'svc-x', summary: 'x', options: {} }, (_values, _operands, terminal) => {
      const logLevel = { filter: readLevelFilter('off') };
      const values = { logLevel, logFormat: 'text', logFile: undefined, logFileSize: 1, logFileCount: 1 } as const;
      return serve('svc-x', values, terminal, async ({ shutdown }) => {
        if (isAsked) shutdown.request('SIGTERM');
        throw new RuntimeError('listen_failed', 'the database ended');
      });
    });
  expect(await start(starting(true))).toEqual({ code: 0, out: '', err: '' });
  expect(await start(starting(false))).toEqual({
    code: 1,
    out: '',
    err: 'svc-x: the database ended [listen_failed]\n',
  });
});
