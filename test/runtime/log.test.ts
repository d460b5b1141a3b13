import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLogger, LOG_LEVELS, type Logger, openLog, readLevelFilter } from '../../runtime/log/log.ts';
import { openLogFile } from '../../runtime/log/log-file.ts';
import { temporaryDirectory } from '../temporary.ts';

function capture(levels: string, format: 'text' | 'json' = 'text', module = 'node') {
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  const log = createLogger(module, { filter: readLevelFilter(levels), format }, { sink, now: () => 0 });
  return { log, lines };
}

test('levels are set per module and the longest prefix wins', () => {
  const { log, lines } = capture('warn,node=debug,node.mempool=error');
  log.debug('a');
  log.trace('b');
  log.child('mempool').warn('c');
  log.child('mempool').child('expiry').error('d');
  log.child('template').debug('e');
  expect(lines.map((line) => line.split(' ').slice(1).join(' '))).toEqual([
    'DEBUG node: a\n',
    'ERROR node.mempool.expiry: d\n',
    'DEBUG node.template: e\n',
  ]);
  expect(capture('warn,node=debug', 'text', 'nodes').log.enabled('info')).toBe(false);
  expect(capture('off').log.enabled('error')).toBe(false);
  expect(() => readLevelFilter('node=loud')).toThrow(/unknown level 'loud'/);
  expect(() => readLevelFilter('=info')).toThrow(/neither/);
});

test('text lines quote what could forge a line or a field', () => {
  const { log, lines } = capture('info');
  log.info('share accepted', {
    worker: 'a b"\n\u001b[2J\u202eERROR',
    height: 5,
    atoms: 7n,
    bytes: new Uint8Array([1]),
  });
  expect(lines[0]).toBe(
    '1970-01-01T00:00:00.000Z INFO  node: share accepted worker="a b\\"\\n\\u001b[2J\\u202eERROR" height=5 atoms=7 bytes=01\n',
  );
});

test('JSON lines hold the same, one object a line', () => {
  const { log, lines } = capture('info', 'json');
  log.warn('lost', {
    error: Object.assign(new Error('x\ny'), { code: 'E1' }),
    deep: { a: [1n] },
    long: 'z'.repeat(9000),
  });
  const parsed = JSON.parse(lines[0] as string);
  expect(lines[0]?.indexOf('\n')).toBe((lines[0]?.length ?? 0) - 1);
  expect(parsed).toMatchObject({ level: 'warn', module: 'node', message: 'lost', error: 'Error: x\ny [E1]' });
  expect(parsed.deep).toEqual({ a: ['1'] });
  expect(parsed.long.length).toBeLessThan(5000);
});

test('a field that is not there is left out, as text and as JSON', () => {
  for (const [format, end] of [
    ['text', 'node: a b=null\n'],
    ['json', '"message":"a","b":null}\n'],
  ] as const) {
    const { log, lines } = capture('info', format);
    log.info('a', { error: undefined, b: null });
    expect(lines).toEqual([expect.stringContaining(end)]);
  }
});

test('the log file rotates and keeps what it was told to keep', () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'logs', 'x.log');
  const sink = openLogFile({ path, maxBytes: 100, keep: 2 });
  for (let i = 0; i < 10; i++) {
    sink.write(`${String(i).padStart(39, '.')}\n`);
    sink.flush();
  }
  sink.close();
  expect(readdirSync(join(directory, 'logs')).sort()).toEqual(['x.log', 'x.log.1', 'x.log.2']);
  expect(readFileSync(`${path}.2`, 'utf8') + readFileSync(`${path}.1`, 'utf8') + readFileSync(path, 'utf8')).toMatch(
    /^\.+4\n\.+5\n\.+6\n\.+7\n\.+8\n\.+9\n$/,
  );
  expect(statSync(path).size).toBeLessThanOrEqual(100);
});

test('a log file that cannot be written is reported at the start', () => {
  const directory = temporaryDirectory();
  expect(() => openLogFile({ path: directory, maxBytes: 100, keep: 1 })).toThrow(/^cannot write the log file .*EISDIR/);
});

test.each([
  ['warn', undefined, { bridge: 'warn', 'bridge.vardiff': 'warn' }],
  [undefined, 'debug', { bridge: 'debug', 'bridge.vardiff': 'debug' }],
  ['warn', 'debug', { bridge: 'debug', 'bridge.vardiff': 'debug' }],
  ['warn,bridge.vardiff=trace', 'debug', { bridge: 'debug', 'bridge.vardiff': 'debug' }],
  ['warn', 'bridge.vardiff=trace', { bridge: 'warn', 'bridge.vardiff': 'trace' }],
  ['warn,bridge.vardiff=error', 'bridge.vardiff=trace', { bridge: 'warn', 'bridge.vardiff': 'trace' }],
  ['warn,bridge.vardiff=trace', 'bridge=debug', { bridge: 'debug', 'bridge.vardiff': 'debug' }],
  ['debug,bridge.vardiff=trace', 'nonsense', { bridge: 'debug', 'bridge.vardiff': 'trace' }],
] as const)('RUST_LOG overrides levels per module: --log-level %s, RUST_LOG %s', (option, env, levels) => {
  const logFile = join(temporaryDirectory(), 'x.log');
  const logLevel = option === undefined ? undefined : { filter: readLevelFilter(option) };
  const values = { logLevel, logFormat: 'json', logFile, logFileSize: 1e6, logFileCount: 1 } as const;
  const { log, close } = openLog('bridge', values, { RUST_LOG: env });
  const mostOf = (logger: Logger) => LOG_LEVELS.findLast((level) => logger.enabled(level));
  expect({ bridge: mostOf(log), 'bridge.vardiff': mostOf(log.child('vardiff')) }).toEqual(levels);
  close();
});

test('a program opens its log from its options; a bad RUST_LOG is reported and ignored', () => {
  const path = join(temporaryDirectory(), 'x.log');
  const values = { logLevel: undefined, logFormat: 'json', logFile: path, logFileSize: 1e6, logFileCount: 1 } as const;
  const { log, close } = openLog('bridge', values, { RUST_LOG: 'nonsense' });
  log.info('started');
  close();
  const messages = readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).message);
  expect(messages).toEqual(['RUST_LOG ignored', 'started']);
});
