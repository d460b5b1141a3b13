/**
 * A stranger who has seen a miner's signed change of its payout threshold, or who got a signature out of the miner for something else: neither
 * changes the threshold.
 */
import { expect, test } from 'vitest';
import { privateKeyOfSeed, rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import { PayoutThreshold } from '../../pool/api/miner/payout-threshold.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { type AddressProofRequest, addressProofMessage } from '../../protocol/transactions/address-proof.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { databaseServer } from '../pool/database-fixture.ts';

const server = databaseServer();
const key = privateKeyOfSeed(pattern('key of a miner', 32));
const payload = keyAddressPayload(rawPublicKey(key));
const address = formatAddress(payload, 'development');

const proofOf = (request: AddressProofRequest) => ({
  version: 1,
  address,
  challenge: request.challenge,
  public_key: toHex(rawPublicKey(key)),
  signature: toHex(signMessage(key, addressProofMessage(request))),
});

async function miner() {
  const { sql } = await server.fresh();
  const [row] = await sql<{ id: number }[]>`insert into accounts (payload, address) values (${Buffer.from(payload)},
    ${address}) returning id`;
  let clock = 1_700_000_000_000;
  const thresholds = new PayoutThreshold(
    { network: 'development', least: 1000n, pool: 'example pool' },
    { sql, now: () => clock, chain: () => undefined },
  );
  const account = { id: (row as { id: number }).id, address, payload } as Parameters<PayoutThreshold['change']>[0];
  const sign = async (atoms: string) => {
    const request = await thresholds.request(address, atoms);
    return { atoms, request, proof: proofOf(request) };
  };
  return {
    sql,
    thresholds,
    sign,
    hand: ({ atoms, request, proof }: Awaited<ReturnType<typeof sign>>) =>
      thresholds.change(account, atoms, request, proof),
    pass: (millis: number) => {
      clock += millis;
    },
  };
}

const thresholdOf = async (sql: Sql): Promise<bigint | null | undefined> =>
  (await sql<{ payout_min: bigint | null }[]>`select payout_min from accounts where address = ${address}`)[0]
    ?.payout_min;

test('a signed change of the threshold counts once, and none that is older than the last counts at all', async () => {
  const { sql, sign, hand, pass } = await miner();
  const high = await sign('900000');
  const never = await sign('800000');
  await hand(high);
  pass(1000);
  const low = await sign('5000');
  await hand(low);
  expect(await thresholdOf(sql)).toBe(5000n);
  for (const old of [high, never, low]) await expect(hand(old)).rejects.toThrow(/newer|already/);
  expect(await thresholdOf(sql)).toBe(5000n);
});

test('changes asked for in the same millisecond, or while a clock is behind, still have an order', async () => {
  const { sql, sign, hand, pass } = await miner();
  await hand(await sign('7000'));
  await hand(await sign('6000'));
  pass(-3_600_000);
  await hand(await sign('5000'));
  expect(await thresholdOf(sql)).toBe(5000n);
});

test('a request says what it is for, and a signature for something else changes nothing', async () => {
  const { sql, sign, hand } = await miner();
  const change = await sign('900000');
  expect(change.request.purpose).toBe('payout threshold of 900000 atoms at the pool "example pool"');
  const login = { ...change.request, purpose: 'log in to a web shop' };
  await expect(hand({ ...change, request: login, proof: proofOf(login) })).rejects.toThrow(/not made here/);
  await expect(hand({ ...change, proof: proofOf(login) })).rejects.toThrow(/wrong_signature/);
  expect(await thresholdOf(sql)).toBeNull();
});
