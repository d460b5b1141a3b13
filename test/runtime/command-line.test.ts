import fc from 'fast-check';
import { expect, expectTypeOf, test } from 'vitest';
import {
  choice,
  decimal,
  duration,
  flag,
  integer,
  type ListenAddress,
  listenAddress,
  listenAddressOrOff,
  optionName,
  parseCommandLine,
  parsed,
  repeated,
  size,
  text,
} from '../../runtime/command-line/command-line.ts';
import { count, seed } from '../level.ts';

const command = {
  name: 'svc-example',
  summary: 'An example.',
  options: {
    listen: listenAddress({ help: 'where to listen', group: 'Network', default: '127.0.0.1:28710' }),
    metrics: listenAddressOrOff({ help: 'metrics', group: 'Network', default: 'off' }),
    pool: repeated(text({ help: 'pool to mine at', short: 'o', placeholder: 'URL' })),
    threads: integer({ help: 'threads', min: 1, max: 64, default: 2 }),
    fee: decimal({ help: 'fee in percent', min: 0, max: 10, default: '0.5' }),
    logFormat: choice({ help: 'form of the log', default: 'text' }, ['text', 'json']),
    idle: duration({ help: 'idle limit', default: '10m' }),
    cache: size({ help: 'cache' }),
    verify: flag({ help: 'verify shares', default: true }),
    quiet: flag({ help: 'say less', short: 'q' }),
    amount: parsed({ help: 'amount', placeholder: 'ATOMS' }, (word) => {
      if (!/^\d+$/.test(word)) throw new Error('must be a whole number of atoms');
      return BigInt(word);
    }),
    user: text({ help: 'account', short: 'u', required: true, placeholder: 'ADDRESS' }),
  },
  operands: [{ name: 'FILE', help: 'a file', optional: true }],
  examples: [{ line: 'svc-example -u me', says: 'the shortest' }],
} as const;

const files: Record<string, string> = {};
const readText = (path: string): string => {
  const found = files[path];
  if (found === undefined) throw new Error('no such file');
  return found;
};
const parse = (...words: string[]) => parseCommandLine(command, words, readText);
const values = (...words: string[]) => {
  const outcome = parse('-u', 'me', ...words);
  if (outcome.kind !== 'run') throw new Error(JSON.stringify(outcome));
  return outcome.values;
};
const refusal = (...words: string[]) => {
  const outcome = parse(...words);
  if (outcome.kind !== 'usage') throw new Error(`expected a refusal, got ${outcome.kind}`);
  return `${outcome.error.code}: ${outcome.error.message} (${outcome.error.remedy})`;
};

test('defaults come from the table, with their types', () => {
  const got = values();
  expect(got).toEqual({
    listen: { host: '127.0.0.1', port: 28710 },
    metrics: 'off',
    pool: [],
    threads: 2,
    fee: 0.5,
    logFormat: 'text',
    idle: 600_000,
    cache: undefined,
    verify: true,
    quiet: false,
    amount: undefined,
    user: 'me',
  });
  expectTypeOf(got.listen).toEqualTypeOf<ListenAddress>();
  expectTypeOf(got.metrics).toEqualTypeOf<ListenAddress | 'off'>();
  expectTypeOf(got.pool).toEqualTypeOf<readonly string[]>();
  expectTypeOf(got.threads).toEqualTypeOf<number>();
  expectTypeOf(got.logFormat).toEqualTypeOf<'text' | 'json'>();
  expectTypeOf(got.cache).toEqualTypeOf<number | undefined>();
  expectTypeOf(got.amount).toEqualTypeOf<bigint | undefined>();
  expectTypeOf(got.user).toEqualTypeOf<string>();
});

test('every kind of option is read from the command line', () => {
  const got = values(
    ...['--listen', '[::1]:0', '--metrics=9', '-o', 'a', '--pool=b', '--threads', '64', '--fee', '1.25'],
    ...['--log-format', 'json', '--idle', '250ms', '--cache', '64MiB', '--no-verify', '-q', '--amount', '7'],
  );
  expect(got).toMatchObject({
    listen: { host: '::1', port: 0 },
    metrics: { host: '127.0.0.1', port: 9 },
    pool: ['a', 'b'],
    threads: 64,
    fee: 1.25,
    logFormat: 'json',
    idle: 250,
    cache: 67_108_864,
    verify: false,
    quiet: true,
    amount: 7n,
  });
  expect(parse('-u', 'me', '--', '--odd-name')).toMatchObject({ operands: ['--odd-name'] });
});

test('a config file gives values, and the command line wins over it', () => {
  files['a.json'] = JSON.stringify({ threads: 5, pool: ['x', 'y'], verify: false, 'log-format': 'json', user: 'file' });
  expect(parse('--config', 'a.json')).toMatchObject({
    values: { threads: 5, pool: ['x', 'y'], verify: false, logFormat: 'json', user: 'file' },
  });
  expect(values('--config=a.json', '--threads', '6', '-o', 'z')).toMatchObject({ threads: 6, pool: ['z'], user: 'me' });
});

test('what cannot be run is refused with a code and a remedy', () => {
  files['list.json'] = '[]';
  files['broken.json'] = '{';
  files['key.json'] = '{"treads": 1}';
  files['type.json'] = '{"verify": "yes"}';
  files['pool.json'] = '{"pool": "x"}';
  expect([
    refusal(),
    refusal('--treads', '3'),
    refusal('-u'),
    refusal('-u', 'a', '-u', 'b'),
    refusal('-u', 'a', '--threads', '65'),
    refusal('-u', 'a', '--threads', '0x10'),
    refusal('-u', 'a', '--listen', 'no where'),
    refusal('-u', 'a', '--listen', '127.0.0.1:65536'),
    refusal('-u', 'a', '--log-format', 'xml'),
    refusal('-u', 'a', '--quiet=maybe'),
    refusal('-u', 'a', '--amount', '1.5'),
    refusal('-u', 'a', 'one', 'two'),
    refusal('--config', 'none.json'),
    refusal('--config', 'list.json'),
    refusal('--config', 'broken.json').replace(/JSON:.*\(/, 'JSON: ... ('),
    refusal('--config', 'key.json'),
    refusal('--config', 'type.json'),
    refusal('--config', 'pool.json'),
  ]).toMatchSnapshot();
});

test('a wrong value of a config file is named as it stands there', () => {
  files['value.json'] = '{"user": "a", "threads": 65}';
  expect(refusal('--config', 'value.json')).toMatch(
    /^config_value: "threads" in value\.json must be .*, not '65' \(for example "threads": "?2"?\)$/,
  );
});

test('a config file that names a key twice is refused with the key and the line of the second', () => {
  files['twice.json'] = '{\n  "user": "a{\\"",\n  "threads": 5,\n  "us\\u0065r": "b"\n}';
  expect(refusal('--config', 'twice.json')).toBe(
    'config_syntax: twice.json names "user" twice, the second time in line 4 (remove one of the two)',
  );
  files['nested.json'] = '{"user": "user", "pool": ["user", "user"], "threads": 5}';
  expect(parse('--config', 'nested.json')).toMatchObject({ values: { user: 'user', pool: ['user', 'user'] } });
});

test('the help shows every option with its default, by group', () => {
  const outcome = parse('--help');
  expect(outcome.kind === 'help' && outcome.text).toMatchSnapshot();
  expect(parse('-V')).toEqual({ kind: 'version' });
});

test('the help does not name a default that is empty', () => {
  const label = text({ help: 'a name', default: '' });
  const outcome = parseCommandLine({ ...command, options: { label } }, ['--help'], readText);
  expect(outcome.kind === 'help' && outcome.text).toMatch(/a name$/m);
});

test('no words make the parser do anything but answer', () => {
  const names = Object.keys(command.options).map((p) => `--${optionName(p)}`);
  const word = fc.oneof(fc.string(), fc.constantFrom(...names, '--', '-', '-o', '--config', '=', '--no-quiet', 'off'));
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), (words) => {
      expect(['run', 'help', 'version', 'usage']).toContain(parse(...words).kind);
    }),
    { seed, numRuns: count({ quick: 1_000, full: 5_000, deep: 100_000 }) },
  );
});

test('an option of a section of the file may stand there under its long name too, and not under both', () => {
  const sectioned = {
    name: 'svc-x',
    summary: '',
    options: {
      p2p: choice({ help: 'peers', default: 'on', configPath: 'p2p.mode' }, ['on', 'off']),
      p2pListen: repeated(text({ help: 'where', configPath: 'p2p.listen_addrs' })),
    },
  } as const;
  const read = (file: object) => parseCommandLine(sectioned, ['--config', 'x'], () => JSON.stringify(file));
  const both = { kind: 'run', values: { p2p: 'off', p2pListen: ['a'] } };
  expect(read({ p2p: { mode: 'off', listen_addrs: 'a' } })).toMatchObject(both);
  expect(read({ p2p: 'off', 'p2p-listen': ['a'] })).toMatchObject(both);
  expect(read({ p2p: { listen_addrs: 'a' }, 'p2p-listen': ['a'] })).toMatchObject({
    kind: 'usage',
    error: { code: 'config_syntax', message: 'x names "p2p-listen" twice, under two names' },
  });
  expect(read({ p2p: { listen: 'a' } })).toMatchObject({ error: { remedy: 'did you mean "p2p.listen_addrs"?' } });
});

test('what an option says is wrong with its value is one sentence with its name, or one of its own after it', () => {
  const sums = {
    name: 'svc-x',
    summary: '',
    options: {
      to: parsed({ help: 'address', placeholder: 'ADDRESS' }, () => {
        throw Object.assign(new Error('the checksum does not match'), { code: 'address_checksum' });
      }),
    },
  } as const;
  const told = (words: readonly string[]) => {
    const outcome = parseCommandLine(sums, words, () => '{"to":"x"}');
    return outcome.kind === 'usage' ? outcome.error.message : outcome.kind;
  };
  expect(told(['--to', 'x'])).toBe('--to: the checksum does not match');
  expect(told(['--config', 'f'])).toBe('"to" in f: the checksum does not match');
});
