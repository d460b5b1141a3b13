/** The client against real servers: both wire forms over four transports, failover and return, resume, and every fault. */
import { type AddressInfo, connect, createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  PoolClient,
  type PoolClientDependencies,
  type PoolClientOptions,
  systemClock,
} from '../../miner/client/pool-client.ts';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import type { PoolJob, Share, Verdict } from '../../miner/client/session-events.ts';
import { connectFromBrowser } from '../../miner/client/transport-browser.ts';
import { connectFromNode } from '../../miner/client/transport-node.ts';
import { type Refusal, refusal } from '../../miner/miner-error.ts';
import { parseAddress } from '../../protocol/address.ts';
import { concat, toHex, utf8 } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetToBytes } from '../../protocol/ledger/target.ts';
import { composeNonce } from '../../protocol/stratum/nonce.ts';
import { encodeNotification } from '../../protocol/stratum/v1-answer.ts';
import { powHash } from '../pow-hash.ts';
import { until } from '../until.ts';
import { TEST_CERTIFICATE, TEST_FINGERPRINT } from './certificate.ts';
import { type FixtureOptions, MINER_ADDRESS, POOL_ADDRESS, PoolFixture, THIEF_ADDRESS } from './pool-fixture.ts';
import { sessionOptions } from './session-options.ts';

async function fixture(options: FixtureOptions = {}): Promise<PoolFixture> {
  const pool = await new PoolFixture({ ...options }).listen();
  onTestFinished(() => pool.close());
  return pool;
}

type Watched = {
  client: PoolClient;
  jobs: (PoolJob | undefined)[];
  verdicts: { share: Share; verdict: Verdict; code: number | undefined }[];
  notes: { level: string; message: string; code: unknown; reason: unknown }[];
};

function mine(
  urls: readonly string[],
  over: {
    pins?: string[];
    authorities?: string;
    times?: PoolClientOptions['times'];
    expectPayout?: string;
    browser?: boolean;
    refusesJob?: PoolClientDependencies['refusesJob'];
  } = {},
): Watched {
  const watched: Omit<Watched, 'client'> = { jobs: [], verdicts: [], notes: [] };
  const tls = { pins: over.pins ?? [], ...(over.authorities === undefined ? {} : { authorities: over.authorities }) };
  const client = new PoolClient(
    {
      pools: urls.map((url) => parsePoolUrl(url)),
      session: sessionOptions({
        worker: 'rig',
        tag: 'me',
        pinned: over.expectPayout === undefined ? undefined : parseAddress(over.expectPayout).payload,
      }),
      times: { tickMillis: 20, drainMillis: 1_000, ...over.times },
    },
    {
      onJob: (job) => watched.jobs.push(job),
      onVerdict: (share, verdict, error) => watched.verdicts.push({ share, verdict, code: error?.code }),
    },
    {
      ...systemClock,
      connect: over.browser ? connectFromBrowser : connectFromNode(tls),
      note: (level, message, { code, reason }) => watched.notes.push({ level, message, code, reason }),
      ...(over.refusesJob === undefined ? {} : { refusesJob: over.refusesJob }),
    },
  );
  client.start();
  onTestFinished(() => client.stop());
  return { client, ...watched };
}

let counter = 0n;

/** A share found the honest way, with the reference. */
function solve(job: PoolJob): Share {
  const target = targetToBytes(job.job.shareTarget);
  for (;;) {
    const nonce = composeNonce(counter++, job.prefix);
    if (!meetsTarget(powHash(job.job.epoch, concat(job.job.header.subarray(0, NONCE_OFFSET), nonce)), target)) continue;
    return { session: job.session, jobId: job.job.jobId, nonce, work: job.work, device: 0 };
  }
}

const last = (watched: Watched): PoolJob => watched.jobs.findLast((job) => job !== undefined) as PoolJob;
const lostBy = (watched: Watched): unknown[] => watched.notes.flatMap(({ code }) => (code === undefined ? [] : [code]));
const easy = { shareWork: 4n };

test.each([
  ['tcp', 1],
  ['tcp', 2],
  ['tls', 1],
  ['tls', 2],
  ['ws', 1],
  ['ws', 2],
  ['wss', 1],
  ['wss', 2],
] as const)('works over %s with protocol v%i', async (transport, version) => {
  const pool = await fixture({ ...easy, pool: { address: POOL_ADDRESS, name: 'A pool' } });
  const port = { tcp: pool.port, tls: pool.port, ws: pool.webSocketPort, wss: pool.secureWebSocketPort }[transport];
  const scheme = transport.startsWith('ws') ? transport : `stratum+${transport}`;
  const watched = mine([`${scheme}://127.0.0.1:${port}?protocol=v${version}`], { pins: [TEST_FINGERPRINT] });
  await until(() => watched.jobs.length > 0);
  const [client] = pool.clients;
  expect(client).toMatchObject({
    version,
    encrypted: transport === 'tls' || transport === 'wss',
    username: `${MINER_ADDRESS}.rig`,
  });
  for (let i = 0; i < 3; i++) watched.client.submit(solve(last(watched)));
  watched.client.submit({ ...solve(last(watched)), jobId: 77 });
  await until(() => watched.verdicts.length === 4);
  expect(watched.verdicts.map(({ verdict }) => verdict).sort()).toEqual(['accepted', 'accepted', 'accepted', 'stale']);
  await until(() => watched.client.state?.latencyMillis !== undefined);
  expect(watched.client.state).toMatchObject({ pool: 0, server: 'fixture/1', poolName: 'A pool' });
});

test('the form for pages speaks to the same server', async () => {
  const pool = await fixture(easy);
  for (const version of [1, 2]) {
    const watched = mine([`ws://127.0.0.1:${pool.webSocketPort}?protocol=v${version}`], { browser: true });
    await until(() => watched.jobs.length > 0);
    watched.client.submit(solve(last(watched)));
    await until(() => watched.verdicts.length === 1);
    expect(watched.verdicts[0]?.verdict).toBe('accepted');
  }
});

test('a certificate that is neither signed nor pinned is refused, with its fingerprint in the message', async () => {
  const pool = await fixture();
  const url = `stratum+tls://localhost:${pool.port}`;
  const unknown = mine([url]);
  await until(() => lostBy(unknown).includes('pool_certificate'));
  expect(unknown.notes.some(({ reason }) => String(reason).includes(`--tls-pin ${TEST_FINGERPRINT}`))).toBe(true);
  // The same server under a name that its certificate does not have.
  for (const [scheme, port] of [
    ['stratum+tls', pool.port],
    ['wss', pool.secureWebSocketPort],
  ] as const) {
    const forward = createServer((from) => {
      const to = connect(port, '127.0.0.1');
      for (const socket of [from, to]) socket.on('error', () => undefined);
      from.pipe(to).pipe(from);
    });
    await new Promise<void>((resolve) => forward.listen(0, '127.0.0.2', resolve));
    onTestFinished(() => void forward.close());
    const url = `${scheme}://127.0.0.2:${(forward.address() as AddressInfo).port}`;
    const elsewhere = mine([url], { authorities: TEST_CERTIFICATE.cert });
    await until(() => elsewhere.notes.some(({ reason }) => /certificate of another host/.test(String(reason))));
    expect(elsewhere.jobs).toEqual([]);
  }
  const wrongPin = mine([url], { pins: ['00'.repeat(32)] });
  await until(() => wrongPin.notes.some(({ reason }) => String(reason).includes(TEST_FINGERPRINT)));
  expect(unknown.jobs).toEqual([]);
  expect(wrongPin.jobs).toEqual([]);
  const signed = mine([url], { authorities: TEST_CERTIFICATE.cert });
  await until(() => signed.jobs.length > 0);
});

test('a web port, a port that wants TLS and one that has none are reported in words', async () => {
  const serve = async (answer: Uint8Array | string): Promise<number> => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(answer));
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  const web = await serve('HTTP/1.1 400 Bad Request\r\n\r\n');
  const secure = await serve(Uint8Array.of(0x15, 3, 3, 0, 2, 2, 40));
  const silent = await serve('');
  const cases: [string, RegExp][] = [
    [`stratum+tcp://127.0.0.1:${web}`, /a web server answers at this port/],
    [`stratum2+tcp://127.0.0.1:${web}`, /a web server answers at this port/],
    [`stratum+tcp://127.0.0.1:${secure}`, /the port wants TLS/],
    [`stratum+tls://127.0.0.1:${web}`, /the port does not speak TLS/],
    [`wss://127.0.0.1:${web}`, /the port does not speak TLS/],
    [`stratum2+tls://127.0.0.1:${silent}`, /the port closed the connection instead of speaking TLS/],
    [`wss://127.0.0.1:${silent}`, /the port closed the connection instead of speaking TLS/],
  ];
  for (const [url, words] of cases) {
    const watched = mine([url]);
    await until(() => watched.notes.some(({ reason }) => words.test(String(reason))), { why: () => url });
    const told = watched.notes.map(({ reason }) => String(reason)).find((reason) => words.test(reason)) ?? '';
    for (const [scheme] of told.matchAll(/[a-z0-9+]+:\/\/(?= |$)/g)) parsePoolUrl(`${scheme}pool.example:28720`);
  }
});

test('fails over when the first pool breaks, and returns to it', async () => {
  const first = await fixture(easy);
  const second = await fixture(easy);
  const watched = mine([first.url, second.url]);
  await until(() => watched.client.state?.pool === 0 && watched.jobs.length > 0);
  await first.close();
  await until(() => watched.client.state?.pool === 1);
  await until(() => last(watched).session === [...second.clients][0]?.session?.id);
  await first.listen();
  await until(() => watched.client.state?.pool === 0);
  // Work of the second pool that was found before the change is still delivered to it.
  expect(watched.notes.map(({ message }) => message)).toContain('returned to an earlier pool');
  watched.client.submit(solve(last(watched)));
  await until(() => watched.verdicts.length > 0);
  expect(watched.verdicts[0]?.verdict).toBe('accepted');
  await until(() => second.clients.size === 0);
});

test('a share in flight at the return is answered by the pool it belongs to', async () => {
  const first = await fixture({ ...easy, silent: true });
  const second = await fixture(easy);
  const watched = mine([first.url, second.url], { times: { loginMillis: 1_000, drainMillis: 600_000 } });
  await until(() => watched.client.state?.pool === 1 && watched.jobs.length > 0);
  const share = solve(last(watched));
  first.options.silent = false;
  await until(() => watched.client.state?.pool === 0);
  watched.client.submit(share);
  await until(() => watched.verdicts.length > 0);
  expect(watched.verdicts[0]?.verdict).toBe('accepted');
  expect(second.accepted).toBe(1);
});

test('a share in flight at the return is lost, and counted so, where its pool ends the connection', async () => {
  const first = await fixture({ ...easy, silent: true });
  const second = await fixture({ ...easy });
  const watched = mine([first.url, second.url], { times: { loginMillis: 1_000 } });
  await until(() => watched.client.state?.pool === 1 && watched.jobs.length > 0);
  const share = solve(last(watched));
  second.options.silent = true;
  watched.client.submit(share);
  first.options.silent = false;
  await until(() => watched.client.state?.pool === 0);
  await second.close();
  await until(() => watched.verdicts.length > 0);
  expect(watched.verdicts.map(({ verdict }) => verdict)).toEqual(['lost']);
});

test.each([1, 2])('resumes its session with v%i: same prefix, and nothing found meanwhile is lost', async (version) => {
  const pool = await fixture({ ...easy, keepSessions: true });
  const watched = mine([`${pool.url}?protocol=v${version}`]);
  await until(() => watched.jobs.length > 0);
  const job = last(watched);
  const early = solve(job);
  watched.client.submit(early);
  await until(() => watched.verdicts.length === 1);
  // Solved before: whoever finds nobody there when it tries again gives up the job.
  const later = [solve(job), solve(job)];
  await pool.close();
  await until(() => watched.client.state === undefined);
  for (const share of later) watched.client.submit(share);
  await pool.listen();
  await until(() => watched.verdicts.length === 3);
  expect(watched.verdicts.map(({ verdict }) => verdict)).toEqual(['accepted', 'accepted', 'accepted']);
  expect(pool.subscribes.at(-1)?.session).toBe(job.session);
  expect(toHex(last(watched).prefix)).toBe(toHex(job.prefix));
  expect(watched.jobs).not.toContain(undefined);
});

test('a session that cannot be resumed in time gives up the job', async () => {
  const pool = await fixture(easy);
  const watched = mine([pool.url], { times: { resumeMillis: 200 } });
  await until(() => watched.jobs.length > 0);
  const share = solve(last(watched));
  await pool.close();
  await until(() => watched.client.state === undefined);
  watched.client.submit(share);
  await until(() => watched.jobs.at(-1) === undefined);
  expect(watched.verdicts.map(({ verdict }) => verdict)).toEqual(['lost']);
});

test.each([
  ['a job that pays somebody else', { payTo: THIEF_ADDRESS }, 'job_pays_other'],
  ['a server of another network', { network: 1 }, 'pool_network'],
  ['a login that is refused', { refuseAuthorize: 29 }, 'pool_refused_login'],
  ['a ban', { refuseSubscribe: 28 }, 'pool_banned'],
  ['an epoch that cannot be', { epoch: 5_000 }, 'job_epoch'],
] as const)('%s: a clear message, no work, the next pool', async (_, options, code) => {
  const bad = await fixture(options);
  const good = await fixture();
  const watched = mine([bad.url, good.url]);
  await until(() => watched.client.state?.pool === 1 && watched.jobs.length > 0);
  expect(watched.notes).toContainEqual(expect.objectContaining({ level: 'error', code }));
  expect(watched.jobs.every((job) => job?.session === [...good.clients][0]?.session?.id)).toBe(true);
});

const faulty: [string, (pool: PoolFixture, client: Parameters<NonNullable<FixtureOptions['instead']>>[0]) => void][] = [
  ['garbage', (_, client) => client.send(utf8('GET / HTTP/1.1\r\n\r\n\n'))],
  ['binary garbage', (_, client) => client.send(Uint8Array.from({ length: 500 }, (_v, i) => (i * 7 + 10) & 255))],
  ['a line without an end', (_, client) => client.send(utf8('x'.repeat(20_000)))],
  [
    'half a line, then the end',
    (pool, client) => {
      client.send(encodeNotification({ method: 'mining.notify', params: pool.makeJob(client) }).slice(0, 200));
      setTimeout(() => client.drop(), 20);
    },
  ],
  [
    'a header of the wrong length',
    (pool, client) =>
      client.send(
        `${encodeNotification({ method: 'mining.notify', params: pool.makeJob(client) }).replace(/"header":"..../, '"header":"')}\n`,
      ),
  ],
  [
    'a wrong seed',
    (pool, client) =>
      client.send(
        `${encodeNotification({ method: 'mining.notify', params: pool.makeJob(client) }).replace(/"seed":"......../, '"seed":"00000000')}\n`,
      ),
  ],
  ['a share target of zero', (pool, client) => pool.sendAsIs(client, { ...pool.makeJob(client), shareTarget: 0n })],
  ['an answer that nobody asked for', (_, client) => client.send(utf8('{"jsonrpc":"2.0","id":99,"result":{}}\n'))],
];

test.each(faulty)('%s: the connection is left, nothing crashes, the next pool is used', async (_, act) => {
  const bad = await fixture();
  bad.options.instead = (client) => act(bad, client);
  const good = await fixture();
  const watched = mine([bad.url, good.url]);
  await until(() => watched.client.state?.pool === 1 && watched.jobs.length > 0);
  expect(lostBy(watched)[0]).toMatch(/pool_garbage|pool_closed|job_target_zero/);
});

test('a job in two halves is a job', async () => {
  const pool = await fixture({ ignorePings: true });
  pool.options.instead = (client) => {
    const text = utf8(`${encodeNotification({ method: 'mining.notify', params: pool.makeJob(client) })}\n`);
    client.send(text.subarray(0, 300));
    setTimeout(() => client.send(text.subarray(300)), 30);
  };
  const watched = mine([pool.url]);
  await until(() => watched.jobs.length === 1);
});

test.each([
  ['before the login', { silent: true }],
  ['after it', { silentAfterLogin: true }],
])('a server that falls silent %s is left', async (_, options) => {
  const bad = await fixture(options);
  const good = await fixture();
  const watched = mine([bad.url, good.url], {
    times: { loginMillis: 1_000, pingMillis: 50, pongMillis: 1_000, firstJobMillis: 2_000 },
  });
  await until(() => watched.client.state?.pool === 1);
  expect(lostBy(watched)[0]).toBe('pool_silent');
});

test('nobody there: attempts back off, the miner stays up, and works once somebody is', async () => {
  const pool = await fixture();
  await pool.close();
  const watched = mine([pool.url]);
  await until(() => watched.client.connections >= 2);
  expect(watched.client.lastRefusal).toMatchObject({ code: 'pool_down' } satisfies Partial<Refusal>);
  await pool.listen();
  await until(() => watched.jobs.length > 0);
});

test('a reconnect is obeyed to another port, and to another host only over TLS', async () => {
  const first = await fixture();
  const second = await fixture();
  const plain = mine([first.url]);
  await until(() => plain.jobs.length > 0);
  first.reconnect({ host: 'localhost', port: second.port, waitMillis: 0 });
  await until(() => lostBy(plain).includes('reconnect_refused'));
  expect(plain.client.state?.endpoint).toBe(first.url);
  first.reconnect({ host: '', port: second.port, waitMillis: 0 });
  await until(() => plain.client.state?.endpoint === second.url);
  const secure = mine([`stratum+tls://127.0.0.1:${first.port}`], { pins: [TEST_FINGERPRINT] });
  await until(() => secure.jobs.length > 0);
  first.reconnect({ host: 'localhost', port: second.port, waitMillis: 0 });
  await until(() => secure.client.state?.endpoint === `stratum+tls://localhost:${second.port}`);
});

test('a pin on the payout is obeyed, and an epoch that is not allowed is refused', async () => {
  const pool = await fixture({ pool: { address: POOL_ADDRESS, name: 'p' } });
  const pinned = mine([pool.url], { expectPayout: POOL_ADDRESS });
  await until(() => pinned.jobs.length > 0);
  const otherwise = mine([pool.url], { expectPayout: THIEF_ADDRESS });
  await until(() => lostBy(otherwise).includes('job_pays_other'));
  expect(otherwise.jobs).toEqual([]);
  const rationed = mine([pool.url], { refusesJob: () => refusal('job_epoch', 'too often') });
  await until(() => lostBy(rationed).includes('job_epoch'));
  expect(rationed.jobs).toEqual([]);
});

test('a pool that names another address than before is reported, and with a pin refused', async () => {
  const pool = await fixture({ pool: { address: POOL_ADDRESS, name: 'p' } });
  const watched = mine([pool.url]);
  const pinned = mine([pool.url], { expectPayout: POOL_ADDRESS });
  await until(() => watched.jobs.length > 0 && pinned.jobs.length > 0);
  pool.options.pool = { address: THIEF_ADDRESS, name: 'p' };
  pool.dropAll();
  await until(() => watched.notes.some(({ message }) => message === 'the pool names another address than before'));
  await until(() => lostBy(pinned).includes('job_pays_other'));
  expect(pinned.notes.some(({ message }) => message.includes('another address'))).toBe(false);
});
