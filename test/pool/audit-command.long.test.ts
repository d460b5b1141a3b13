/** The command line of `svc-pool audit`: --public, --wallet, --json, --report, exit codes and what is said when nobody answers. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { auditInThread } from '../../pool/api/operator/run-audit.ts';
import { connectDatabase } from '../../pool/database/connect.ts';
import { migrate } from '../../pool/database/migrate.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import { quietLog } from '../quiet-log.ts';
import { openAuditBed, POOL } from './audit-bed.ts';
import type { BooksBed } from './books-bed.ts';
import { runPoolCommand } from './pool-command.ts';
import { publishedPool } from './published-pool.ts';
import { startReadyPostgres } from './ready-cluster.ts';

let books: BooksBed;
const servers: Server[] = [];
const directory = mkdtempSync(join(tmpdir(), 'svc-audit-command-'));
const token = join(directory, 'token');

beforeAll(async () => {
  ({ books } = await openAuditBed());
  writeFileSync(token, 'secret\n', { mode: 0o600 });
});
afterAll(async () => {
  for (const server of servers) server.close();
  await books.close();
  rmSync(directory, { recursive: true, force: true });
});

/** A server that answers in JSON, and its address. */
async function serve(answer: (path: string, body: string) => Promise<unknown>): Promise<string> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () =>
      answer(request.url ?? '', body).then(
        (value) => response.end(JSON.stringify(value)),
        () => response.writeHead(404).end(),
      ),
    );
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const servePool = (change: (path: string, answer: unknown) => unknown = (_, answer) => answer) => {
  const pool = publishedPool(books.sql, change);
  return serve((path) => pool(path.replace('/api/v1/', '')));
};

test('--public without a node says what was not checked and exits with 3; payments of less than nothing exit with 1; a pool that does not answer is reported in one line', async () => {
  const url = await servePool();
  const [text, json, lie, dead, other] = await Promise.all([
    runPoolCommand('audit', '--public', `${url}/`),
    runPoolCommand('audit', '--public', url, '--json', '--report', join(directory, 'public.json')),
    servePool((path, answer) =>
      path.startsWith('payments')
        ? {
            payments: (answer as { payments: { amount: string }[] }).payments.map((row) => ({
              ...row,
              amount: '-1',
            })),
          }
        : answer,
    ).then((liar) => runPoolCommand('audit', '--public', liar)),
    runPoolCommand('audit', '--public', 'http://127.0.0.1:1'),
    serve(async () => ({ hello: 'world' })).then((stranger) => runPoolCommand('audit', '--public', stranger)),
  ]);
  expect(text).toMatchObject({ code: 3, err: '' });
  expect(text.out).toMatch(
    /Not checked: the ledger: [^\n]*--node-api[\s\S]*not everything could be checked \(exit code 3\)/,
  );
  expect(json.code).toBe(3);
  expect(JSON.parse(json.out)).toMatchObject({ verdict: 'unchecked', address: POOL, slices: 100, differences: 0 });
  expect(JSON.parse(readFileSync(join(directory, 'public.json'), 'utf8'))).toEqual(JSON.parse(json.out));
  expect(lie.code).toBe(1);
  expect(lie.out).toMatch(/payments: [^\n]*an amount in atoms is a decimal integer[\s\S]*does not hold/);
  for (const { code, out, err } of [dead, other]) {
    expect({ code, out }).toEqual({ code: 3, out: '' });
    expect(err).toMatch(/^svc-pool audit: [^\n]*\[pool_unreachable\]\n$/);
  }
});

test('--wallet compares with the wallet that is named, and --json tells it', async () => {
  const rows = await books.sql<{ request_id: string; transaction_id: Buffer; address: string; amount: bigint }[]>`select
    p.request_id, p.transaction_id, a.address, i.amount from payouts p join payout_items i on i.payout_id = p.id
    join accounts a on a.id = i.account_id order by p.number`;
  const requests = Object.entries(Object.groupBy(rows, (row) => row.request_id)).map(([request_id, items = []]) => ({
    request_id,
    created_millis: 1,
    fee: formatCoins(1_000n),
    state: 'finalized',
    reason: null,
    final_height: 150,
    transaction: items[0]?.transaction_id.toString('hex'),
    recipients: items.map(({ address, amount }) => ({ to: address, amount: formatCoins(amount) })),
  }));
  const status = { request_table: 'table', indexed_height: 200, caught_up: true, validity_cuts: 1 };
  const walletOf = (list: readonly object[]) =>
    serve(async (_, body) => {
      const { method, params } = JSON.parse(body) as { method: string; params: { prefix?: string } };
      if (method === 'balance') return { result: { spendable: formatCoins(5n), outputs: 1 } };
      if (method === 'status') return { result: { ...status, payments_stopped_message: null } };
      return { result: { requests: params.prefix?.startsWith('payout-') === true ? list : [] } };
    });
  const auditWith = async (list: readonly object[]) => {
    const words = ['--database', books.url, '--wallet', await walletOf(list), '--wallet-token-file', token, '--json'];
    const { code, out } = await runPoolCommand('audit', ...words);
    return { code, report: JSON.parse(out) as { wallet: boolean; findings: { what: string }[] } };
  };
  const [same, less, bare] = await Promise.all([
    auditWith(requests),
    auditWith(requests.slice(1)),
    runPoolCommand('audit', '--database', books.url, '--wallet', 'http://127.0.0.1:1'),
  ]);
  expect(same.report).toMatchObject({ wallet: true, findings: [] });
  expect(same.code).toBe(0);
  expect(less.code).toBe(1);
  expect(less.report.findings.map(({ what }) => what)).toEqual([expect.stringMatching(/payout .* \(number 1\)$/)]);
  expect(bare).toMatchObject({ code: 1, err: expect.stringContaining('[options_disagree]') });
});

test('the audit that an operator starts in a running pool says what the command says, tells how far it is, and ends when it is told to', async () => {
  const told: string[] = [];
  const run = auditInThread({ databaseUrl: books.url });
  const report = await run((part, done, of) => told.push(`${part} ${done} ${of}`), new AbortController().signal);
  const { out } = await runPoolCommand('audit', '--database', books.url, '--json');
  expect(report).toEqual(JSON.parse(out));
  expect(report).toMatchObject({ slices: 102, differences: 0, findings: [], ledger: false, wallet: false });
  expect(told).toEqual(
    expect.arrayContaining(['slices 0 undefined', 'credit_lists 0 undefined', 'settings 0 undefined']),
  );
  const stop = new AbortController();
  const stopped = run(() => stop.abort(), stop.signal);
  await expect(stopped).rejects.toThrow('ended with');
  await expect(
    auditInThread({ databaseUrl: `${books.url}_gone` })(() => undefined, new AbortController().signal),
  ).rejects.toThrow();
});

test('the embedded database is audited while its pool runs, and a node that does not answer is not called missing', async () => {
  const dataDir = join(directory, 'pool');
  const server = await startReadyPostgres(join(dataDir, 'database'));
  onTestFinished(() => server.stop());
  const lock = await lockDirectory(dataDir);
  onTestFinished(() => lock.release());
  const sql = connectDatabase(server.url, { max: 1 });
  await migrate(sql, quietLog);
  await sql`insert into settings values ('pool_address', ${POOL})`;
  await sql.end();
  const [plain, deaf] = await Promise.all([
    runPoolCommand('audit', '--data-dir', dataDir),
    runPoolCommand('audit', '--data-dir', dataDir, '--node-api', 'http://127.0.0.1:1'),
  ]);
  expect(plain.err).toBe('');
  expect(plain.out).toContain('Name a node with --node-api.');
  expect(deaf.code).toBe(1);
  expect(deaf.out).toContain('THE LEDGER WAS NOT WHOLLY LOOKED AT');
  expect(deaf.out).not.toContain('Name a node');
});
