/**
 * `svc-pool audit --public` against a pool that answers with whatever it likes, over real HTTP: the audit ends, keeps little, goes nowhere else, and
 * nothing that the pool says reaches the terminal but as visible text.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { auditPublic } from '../../pool/audit/public.ts';
import { publicPool } from '../../pool/audit/public-reads.ts';
import { publicReportText, reportJson } from '../../pool/audit/report.ts';
import { formatAddress } from '../../protocol/address.ts';
import { account } from '../pool/books-bed.ts';

const ADDRESS = formatAddress(account('pool'), 'development');
const FROM = { from_slice: 0, slice_cuts: 10, window_thousandths: 8000, fee_ppm: 10_000 };
const TERMS = { network: 'development', address: ADDRESS, height: 0, terms: { pplns: [FROM], solo: [FROM] } };
const EMPTY = { payments: [], commitments: [], slices: [] };
/** Answers of an honest pool come in this time on a busy machine too. */
const LIMITS = { answerMillis: 5_000, totalMillis: 60_000, waitMillis: 10 };

/** A ledger on which nothing has happened: an honest pool that has nothing holds. */
const NODE = { addressChanges: async () => ({ changes: [], indexed_height: 0 }) } as never;

type Answer = (path: string, response: ServerResponse, request: IncomingMessage) => unknown;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** `answer` gives a document, or text, or has answered by itself: then it gives nothing. */
async function serve(answer: Answer): Promise<string> {
  const server = createServer((request, response) => {
    const value = answer((request.url ?? '').replace('/api/v1/', ''), response, request);
    if (value !== undefined) response.end(typeof value === 'string' ? value : JSON.stringify(value));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A pool that has nothing yet, but for what `lie` answers. */
const hostile = (lie: Answer) =>
  serve((path, response, request) => {
    const told = lie(path, response, request);
    return told !== undefined || response.writableEnded || response.headersSent
      ? told
      : path === 'terms'
        ? TERMS
        : EMPTY;
  });

const audited = async (lie: Answer) => auditPublic({ pool: publicPool(await hostile(lie), LIMITS), node: NODE });

// biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
const RAW = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;
const ESCAPES = '\u001b[2J\u001b]0;title\u0007\u009b31m\r\u202eevil\u0000';

const poured = (start: string, part: string) => (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write(start);
  const pour = () => {
    while (!response.destroyed && response.write(part));
    if (!response.destroyed) response.once('drain', pour);
  };
  pour();
};

test('an answer without end, a packed one without end and one that drips are given up', async () => {
  const endless = poured('{"payments":[', '{"payout_id":"x"},'.repeat(4_000));
  const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024, ' '), { level: 1 });
  const answers: Answer[] = [
    (_, response) => endless(response),
    (_, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' }).end(bomb);
    },
    (_, response) => {
      response.writeHead(200);
      const timer = setInterval(() => (response.destroyed ? clearInterval(timer) : response.write(' ')), 20);
    },
  ];
  for (const answer of answers) {
    const before = process.memoryUsage().rss;
    const report = await audited((path, ...rest) => (path.startsWith('payments') ? answer(path, ...rest) : undefined));
    expect(report.verdict).not.toBe('holds');
    expect([...report.not_checked, ...report.findings.map(({ what }) => what)].join()).toContain('payments');
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
  }
});

test('as many blocks of a slice as are read fit into an answer: a pool that finds many is not called false', async () => {
  const row = { block_id: 'ab'.repeat(48), state: 'paid', credited_with: 1_000_000 };
  const blocks = Array.from({ length: 20_000 }, () => row);
  const url = await hostile((path) => (path === 'slices/pplns/3/blocks' ? { blocks } : undefined));
  expect(await publicPool(url, LIMITS)('slices/pplns/3/blocks')).toEqual({ blocks });
});

test('pages that lead round in a circle, on without end, or nowhere are given up', async () => {
  for (const route of ['payments', 'commitments', 'slices/pplns', 'slices/solo'])
    for (const next of [
      (at: string) => (at === 'a' ? 'b' : 'a'),
      (at: string) => `${at}x`.slice(0, 60) + Math.random(),
      () => 7,
      () => ({}),
      () => '',
      () => 'x'.repeat(100_000),
    ]) {
      let asked = 0;
      const report = await audited((path) => {
        if (!path.startsWith(`${route}?`)) return undefined;
        asked++;
        const cursor = new URL(path, 'http://x').searchParams.get('cursor') ?? 'a';
        return { ...EMPTY, next_cursor: next(cursor) };
      });
      expect(asked).toBeLessThan(5);
      expect(report.verdict).not.toBe('holds');
    }
});

test('a redirect is not followed, wherever it leads', async () => {
  let visits = 0;
  const other = await serve(() => {
    visits++;
    return TERMS;
  });
  for (const to of [`${other}/api/v1/terms`, 'file:///etc/hostname', 'data:application/json,{}', 'http://[::1]:1/'])
    for (const status of [301, 302, 307, 308])
      await expect(
        audited((_, response) => {
          response.writeHead(status, { location: to }).end();
        }),
      ).rejects.toMatchObject({ code: 'pool_unreachable', message: expect.stringContaining('redirect') });
  expect(visits).toBe(0);
});

test('control characters of the pool are shown, not sent to the terminal', async () => {
  const row = { payout_id: ESCAPES, state: 'finalized', address: ESCAPES, amount: '5', created_millis: 1 };
  const lies: Readonly<Record<string, unknown>>[] = [
    { terms: { ...TERMS, network: ESCAPES } },
    { terms: { ...TERMS, height: ESCAPES } },
    { terms: { ...TERMS, terms: { pplns: ESCAPES, solo: ESCAPES } } },
    { payments: { payments: [{ ...row, transaction_id: ESCAPES, final_height: ESCAPES }] } },
    { payments: ESCAPES },
    { payments: { payments: ESCAPES, next_cursor: ESCAPES } },
    { commitments: { commitments: [{ number: ESCAPES, state: ESCAPES, slice: ESCAPES, head: ESCAPES }] } },
    { 'slices/pplns': { slices: [{ slice: ESCAPES, service: ESCAPES, previous: ESCAPES, credits: {} }] } },
    { 'slices/pplns': `${ESCAPES} is no JSON` },
    { 'slices/solo': `{"slices":"${ESCAPES}` },
  ];
  for (const lie of lies) {
    const report = await audited((path) => lie[path.split('?')[0] as string]).catch((error: Error) => error);
    if (report instanceof Error) {
      expect(report).toMatchObject({ code: 'pool_unreachable' });
      continue;
    }
    expect(report.verdict, JSON.stringify(lie)).not.toBe('holds');
    expect(publicReportText(report)).not.toMatch(RAW);
    expect(reportJson(report)).not.toMatch(RAW);
    expect(JSON.parse(reportJson(report))).toEqual(JSON.parse(JSON.stringify(report)));
  }
});

test('whatever a field contains, the audit comes to an end and calls nothing good', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const values = [
    'null',
    '7',
    '-0',
    '1e400',
    '-1e400',
    '9007199254740993',
    '"text"',
    '""',
    'true',
    '[]',
    '{}',
    '[null]',
    '[7]',
    '[[]]',
    '[{}]',
    '[[[]]]',
    deep,
    `{"a":${deep}}`,
    '{"__proto__":{"x":1}}',
    '{"length":4294967295}',
    '{"toString":1,"valueOf":2}',
    `"${'x'.repeat(100_000)}"`,
    '',
    ' ',
    'nonsense',
    '{"a":1,"a":2}',
    '{"then":1}',
  ];
  const fields = {
    payments: ['payout_id', 'state', 'address', 'amount', 'transaction_id', 'final_height'],
    commitments: ['number', 'state', 'transaction_id', 'final_height', 'slice', 'head'],
    slices: ['network', 'service', 'slice', 'slice_cuts', 'target', 'window_work', 'accounts', 'total_work', 'root'],
  };
  const whole = Object.keys(EMPTY).flatMap((name) => values.map((value) => [name, `{"${name}":${value}}`] as const));
  const bare = Object.keys(EMPTY).flatMap((name) => values.map((value) => [name, value] as const));
  const within = Object.entries(fields).flatMap(([name, names]) =>
    names.flatMap((field) =>
      values.map((value) => [name, `{"${name}":[{"number":1,"amount":"1","${field}":${value}}]}`] as const),
    ),
  );
  for (const [name, text] of [...whole, ...bare, ...within.filter((_, i) => i % 3 === 0)]) {
    const read = async (path: string) => (path.startsWith(name) ? JSON.parse(text) : path === 'terms' ? TERMS : EMPTY);
    const report = await auditPublic({ pool: read, node: NODE });
    const isHonest = text === `{"${name}":[]}`;
    expect(report.verdict === 'holds', `${name} ${text}`.slice(0, 200)).toBe(isHonest);
    expect(publicReportText(report).length, `${name} ${text}`.slice(0, 200)).toBeLessThan(20_000);
    expect(publicReportText(report)).not.toMatch(RAW);
  }
});

test('terms of any form end the audit with a line, or are reported', async () => {
  const parts = [
    'null',
    '7',
    '[]',
    '{}',
    '"x"',
    '1e400',
    '[null]',
    '{"pplns":null,"solo":7}',
    '{"pplns":[null],"solo":[{}]}',
  ];
  for (const part of parts)
    for (const field of ['network', 'address', 'height', 'terms']) {
      const text = JSON.stringify({ ...TERMS, [field]: 'HERE' }).replace('"HERE"', part);
      const report = await audited((path) => (path === 'terms' ? text : undefined)).catch((error: Error) => error);
      if (report instanceof Error) expect(report).toMatchObject({ code: 'pool_unreachable' });
      else expect(publicReportText(report)).not.toMatch(RAW);
    }
});

test('a pool that is always busy is given up, and nothing is called false for it', async () => {
  for (const after of ['-5', '1e9']) {
    const report = await audited((path, response) => {
      if (path === 'terms') return undefined;
      response.writeHead(503, { 'retry-after': after }).end();
      return undefined;
    });
    expect(report).toMatchObject({ verdict: 'unchecked', differences: 0 });
  }
});

test('a connection that is lost once is made again; one that is always lost is given up, and nothing is called false for it', async () => {
  const seen = new Map<string, number>();
  const losing = (most: number): Answer => {
    seen.clear();
    return (path, _, request) => {
      const times = (seen.get(path) ?? 0) + 1;
      seen.set(path, times);
      if (path !== 'terms' && times <= most) request.destroy();
      return undefined;
    };
  };
  expect(await audited(losing(1))).toMatchObject({ verdict: 'holds', not_checked: [] });
  expect(await audited(losing(Number.POSITIVE_INFINITY))).toMatchObject({ verdict: 'unchecked', differences: 0 });
  for (const [path, times] of seen) if (path !== 'terms') expect([path, times]).toEqual([path, 4]);
});
