/**
 * Anybody can begin a worker of any address, so a new one makes no news for a day. Property: the key of the address, and
 * nobody else, makes an exception of a worker, and takes it back; no signed word counts twice or for another worker.
 */
import { expect, test } from 'vitest';
import { privateKeyOfSeed, rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import { MAX_NAMED, NamedWorkers, type WorkerWish } from '../../pool/api/miner/named-workers.ts';
import { OwnWorkers } from '../../pool/books/own-workers.ts';
import { noteSilentWorkers } from '../../pool/stats/silence.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { OTHERS } from '../../protocol/books/receipt.ts';
import { toHex } from '../../protocol/bytes.ts';
import { type AddressProofRequest, addressProofMessage } from '../../protocol/transactions/address-proof.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { databaseServer } from '../pool/database-fixture.ts';

const server = databaseServer();
const key = privateKeyOfSeed(pattern('key of a miner', 32));
const stranger = privateKeyOfSeed(pattern('key of a stranger', 32));
const payload = keyAddressPayload(rawPublicKey(key));
const address = formatAddress(payload, 'development');

const proofOf = (request: AddressProofRequest, by = key) => ({
  version: 1,
  address,
  challenge: request.challenge,
  public_key: toHex(rawPublicKey(by)),
  signature: toHex(signMessage(by, addressProofMessage(request))),
});

async function miner() {
  const { sql } = await server.fresh();
  const [row] = await sql<{ id: number }[]>`insert into accounts (payload, address) values (${Buffer.from(payload)},
    ${address}) returning id`;
  const { id } = row as { id: number };
  const workers = new NamedWorkers({ network: 'development', pool: 'example pool' }, { sql, now: Date.now });
  const account = { id, address, payload } as Parameters<NamedWorkers['change']>[0];
  const sign = async (wish: WorkerWish, by = key) => {
    const request = await workers.request(address, wish);
    return { wish, request, proof: proofOf(request, by) };
  };
  const hand = ({ wish, request, proof }: Awaited<ReturnType<typeof sign>>) =>
    workers.change(account, wish, request, proof);
  return { sql, id, sign, hand };
}

test('news of a new worker come when the key of its address names it, and of no other', async () => {
  const { sql, id, sign, hand } = await miner();
  await sql`insert into workers (account_id, service, name, last_taken_at) values
    (${id}, 0, 'rig', now() - interval '1 hour'), (${id}, 0, 'invented', now() - interval '1 hour'),
    (${id}, 0, 'lively', now())`;
  const silent = () => sql.begin((transaction) => noteSilentWorkers(transaction, 60_000));
  const told = async () =>
    (await sql<{ worker: string }[]>`select data ->> 'worker' as worker from events where kind = 'worker_silent'`).map(
      ({ worker }) => worker,
    );
  expect(await silent()).toBe(0);
  await expect(hand(await sign({ worker: 'rig', named: true }, stranger))).rejects.toThrow(/does not hold/);
  expect(await silent()).toBe(0);
  const named = await sign({ worker: 'rig', named: true });
  expect(named.request.purpose).toBe('the worker "rig" is mine at the pool "example pool"');
  // What was signed for one worker says nothing of another, nor the opposite.
  for (const wish of [
    { worker: 'invented', named: true },
    { worker: 'rig', named: false },
  ])
    await expect(hand({ ...named, wish })).rejects.toThrow(/not made here/);
  await hand(named);
  expect(await silent()).toBe(1);
  expect(await told()).toEqual(['rig']);
  await hand(await sign({ worker: 'rig', named: false }));
  await expect(hand(named)).rejects.toThrow(/already|newer/);
  await sql`delete from silent_workers`;
  expect(await silent()).toBe(0);
});

test('a named worker has figures of its own though strangers took every place; names are bounded', async () => {
  const { sql, id, sign, hand } = await miner();
  await sql`insert into workers (account_id, service, name, last_share_at)
    select ${id}, 0, 'invented' || i, now() from generate_series(1, 5000) as i`;
  await hand(await sign({ worker: 'rig', named: true }));
  const share = (worker: string) =>
    ({
      kind: 'share',
      service: 'pplns',
      account: payload,
      worker,
      work: 1n,
      atMillis: Date.now(),
      identity: null,
    }) as const;
  const names = async (worker: string) => {
    const own = new OwnWorkers();
    const row = await sql.begin(async (transaction) => {
      await own.resolve(transaction, [share(worker)], () => id);
      return own.idOf(id, share(worker));
    });
    return (await sql<{ name: string }[]>`select name from workers where id = ${row}`)[0]?.name;
  };
  expect([await names('rig'), await names('stranger')]).toEqual(['rig', OTHERS]);
  await sql`insert into named_workers select ${id}, 'name' || i, true, 0 from generate_series(1, ${MAX_NAMED - 1}) as i`;
  await expect(hand(await sign({ worker: 'one more', named: true }))).rejects.toThrow(/at most/);
  // Those on record can be changed.
  await hand(await sign({ worker: 'rig', named: false }));
  for (const worker of ['', OTHERS, 'x'.repeat(65), 'a\0b'])
    await expect(sign({ worker, named: true })).rejects.toThrow(/no name/);
});
