/**
 * A malicious pool: every lie is a server of its own, on a port of its own. It logs a miner in as it should and then, in
 * place of the first job, does its worst. As a program it opens all of them and prints their ports as JSON:
 *
 *   node test/attack/lying-pool.ts
 */
import { parseAddress } from '../../protocol/address.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { errorReply } from '../../protocol/stratum/errors.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { encodeError, encodeNotification, encodeResult } from '../../protocol/stratum/v1-answer.ts';
import { encodeServerFrame } from '../../protocol/stratum/v2.ts';
import { type FixtureClient, MINER_ADDRESS, PoolFixture, THIEF_ADDRESS } from '../miner/pool-fixture.ts';

type Lie = (pool: PoolFixture, client: FixtureClient) => void;

const EASIEST = 2n ** 256n - 1n;
const AT_ONCE = 200;

const textOf = (client: FixtureClient, job: Job): Uint8Array | string =>
  client.version === 1
    ? `${encodeNotification({ method: 'mining.notify', params: job })}\n`
    : encodeServerFrame({ type: 'job', job });

/** Says it as fast as the connection takes it, until the other side is gone. */
function pour(client: FixtureClient, next: () => Uint8Array | string): void {
  const timer = setInterval(() => {
    if (!client.isOpen()) clearInterval(timer);
    for (let i = 0; i < AT_ONCE && client.isOpen() && client.waiting() < 1 << 20; i++) client.send(next());
  }, 1);
}

/** A job whose header says something else than it should. */
function altered(pool: PoolFixture, client: FixtureClient, change: (header: DataView) => void): Job {
  const job = pool.makeJob(client);
  const header = Uint8Array.from(job.header);
  change(new DataView(header.buffer));
  return { ...job, header };
}

/** Sends a job past the encoder, which would refuse to make it. */
function sendRaw(client: FixtureClient, job: Job, v1: (text: string) => string, v2: (bytes: Uint8Array) => void): void {
  if (client.version === 1) client.send(v1(textOf(client, job) as string));
  else {
    const bytes = Uint8Array.from(textOf(client, job) as Uint8Array);
    v2(bytes);
    client.send(bytes);
  }
}

/** After these the miner must be gone. */
export const LIES: Readonly<Record<string, Lie>> = {
  'a job that pays somebody else': (pool, client) => {
    const payout = parseAddress(THIEF_ADDRESS).payload;
    const job = pool.makeJob(client);
    const header = Uint8Array.from(job.header);
    header.set(rewardRoot(payout, job.extranonce), 176);
    pool.sendAsIs(client, { ...job, header, payout });
  },
  'a job that says it pays the miner and pays somebody else': (pool, client) => {
    const job = pool.makeJob(client);
    const header = Uint8Array.from(job.header);
    header.set(rewardRoot(parseAddress(THIEF_ADDRESS).payload, job.extranonce), 176);
    pool.sendAsIs(client, { ...job, header, payout: parseAddress(MINER_ADDRESS).payload });
  },
  'a good job, and then one that pays somebody else': (pool, client) => {
    pool.sendJob(client);
    LIES['a job that pays somebody else']?.(pool, client);
  },
  'a header of another network': (pool, client) =>
    sendRaw(
      client,
      pool.makeJob(client),
      (text) => text.replace('"header":"0100000004', '"header":"0100000001'),
      (bytes) => {
        bytes[3 + 5 + 4] = 1;
      },
    ),
  'a share target of zero': (pool, client) => pool.sendAsIs(client, { ...pool.makeJob(client), shareTarget: 0n }),
  'a block target of zero': (pool, client) =>
    pool.sendAsIs(
      client,
      altered(pool, client, (header) => {
        for (let at = 272; at < 304; at++) header.setUint8(at, 0);
      }),
    ),
  'a share target harder than the block target': (pool, client) =>
    pool.sendAsIs(client, { ...pool.makeJob(client), shareTarget: 1n }),
  'an epoch beyond its height': (pool, client) => pool.sendAsIs(client, { ...pool.makeJob(client), epoch: 4_000_000 }),
  'jobs without end': (pool, client) => {
    const job = pool.makeJob(client);
    const text = textOf(client, job);
    // It pays the miner: shares that it finds before the flood is ended are its own.
    pool.know(client, job);
    pour(client, () => text);
  },
  'errors without end': (_, client) => {
    const error =
      client.version === 1
        ? `${encodeError(null, errorReply(20))}\n`
        : encodeServerFrame({ type: 'error', error: errorReply(20) });
    pour(client, () => error);
  },
  'reconnects without end': (_, client) => {
    const params = { host: 'elsewhere.example', port: 1, waitMillis: 0 };
    const text =
      client.version === 1
        ? `${encodeNotification({ method: 'mining.reconnect', params })}\n`
        : encodeServerFrame({ type: 'reconnect', reconnect: params });
    pour(client, () => text);
  },
  'a line without end': (_, client) => {
    const piece = utf8('x'.repeat(4_000));
    pour(client, () => piece);
  },
  'a frame that is too long': (_, client) => client.send(Uint8Array.of(0xff, 0xff, 0x10, ...new Uint8Array(70_000))),
  'an answer to a share that was never sent': (_, client) =>
    client.send(
      client.version === 1
        ? `${encodeResult(4_711, { method: 'mining.submit', result: { work: 1n, blockId: null } })}\n`
        : encodeServerFrame({ type: 'accepted', through: 4_711, count: 1, work: 1n }),
    ),
  'a refusal of a share that was never sent': (_, client) =>
    client.send(
      client.version === 1
        ? `${encodeError(4_711, errorReply(23))}\n`
        : encodeServerFrame({ type: 'rejected', sequence: 4_711, code: 23 }),
    ),
  'another session in the middle': (_, client) => {
    const subscribed = {
      session: 'ff'.repeat(16),
      noncePrefix: Uint8Array.of(9, 9),
      network: 4,
      server: 'x',
      pool: { address: THIEF_ADDRESS, name: 'x' },
    };
    client.send(
      client.version === 1
        ? `${encodeResult(1, { method: 'mining.subscribe', result: subscribed })}\n`
        : encodeServerFrame({ type: 'subscribed', subscribed }),
    );
  },
  'a ban for 49 days': (_, client) => {
    const error = { code: 28, message: 'banned', retryAfterMillis: 4_294_967_295 } as const;
    client.send(client.version === 1 ? `${encodeError(null, error)}\n` : encodeServerFrame({ type: 'error', error }));
  },
};

/** A miner may go on with these, and must stay within its bounds. */
export const NUISANCES: Readonly<Record<string, Lie>> = {
  'the easiest target there is': (pool, client) => {
    const job = pool.makeJob(client);
    pool.know(client, { ...job, header: easiest(job), shareTarget: EASIEST });
  },
  'one job again and again': (pool, client) => {
    const job = { ...pool.makeJob(client), shareTarget: EASIEST };
    const timer = setInterval(() => {
      if (client.isOpen()) pool.know(client, job);
      else clearInterval(timer);
    }, 20);
  },
};

function easiest({ header }: Job): Uint8Array<ArrayBuffer> {
  const easy = Uint8Array.from(header);
  easy.fill(0xff, 272, 304);
  return easy;
}

export async function openLies(lies: Readonly<Record<string, Lie>>): Promise<Map<string, PoolFixture>> {
  const pools = new Map<string, PoolFixture>();
  for (const [name, lie] of Object.entries(lies)) {
    const pool: PoolFixture = new PoolFixture({
      shareWork: 60_000n,
      takeShares: true,
      instead: (client) => lie(pool, client),
    });
    pools.set(name, await pool.listen());
  }
  return pools;
}

export type Ports = Readonly<Record<string, { readonly tcp: number; readonly ws: number }>>;

if (import.meta.main) {
  const pools = await openLies({ ...LIES, ...NUISANCES });
  const ports = [...pools].map(([name, { port, webSocketPort }]) => [name, { tcp: port, ws: webSocketPort }]);
  process.stdout.write(`${JSON.stringify(Object.fromEntries(ports))}\n`);
}
