/**
 * A pool whose clock is days behind the ledger. Who checks whether it pays compares the ends of thresholds and pauses with the ledger's dates, so an honest pool
 * has its time to pay only if these ends are not before the newest cut's date.
 */
import { expect, test } from 'vitest';
import { privateKeyOfSeed, rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import { PayoutThreshold } from '../../pool/api/miner/payout-threshold.ts';
import { pausePayouts, payoutsResumed } from '../../pool/api/operator/payout-pause.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { Edits, minimumInForce, startedWithMinimum } from '../../pool/edits/edits.ts';
import { minimumsBefore } from '../../pool/payout/earlier-minimums.ts';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { highestThreshold, unpaidBound } from '../../protocol/evidence/unpaid-evidence.ts';
import { addressProofMessage } from '../../protocol/transactions/address-proof.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { databaseServer } from '../pool/database-fixture.ts';

const server = databaseServer();
const HOUR = 3_600_000;
const BOUND = unpaidBound(HOUR);
const LEDGER = 1_900_000_000_000;
const now = () => LEDGER - 3 * BOUND;
const chain = () => ({ height: 9, synced: true, atMillis: now(), newestMillis: LEDGER });
const key = privateKeyOfSeed(pattern('key of a miner', 32));
const payload = keyAddressPayload(rawPublicKey(key));
const address = formatAddress(payload, 'development');
const [HIGH, LOW] = [900_000n, 1_000n];

/** What a checker asks an hour later. */
const highest = async (sql: Sql, id: number): Promise<bigint> =>
  highestThreshold({ minimum: LOW, earlier: await minimumsBefore(sql, id) }, LEDGER + HOUR, BOUND);

test('an account that lowers its threshold leaves the pool its time, by the dates of the ledger', async () => {
  const { sql } = await server.fresh();
  const [{ id } = { id: 0 }] = await sql<{ id: number }[]>`insert into accounts (payload, address, payout_min)
    values (${Buffer.from(payload)}, ${address}, ${HIGH}) returning id`;
  const thresholds = new PayoutThreshold(
    { network: 'development', least: LOW, pool: 'example pool' },
    { sql, now, chain },
  );
  const request = await thresholds.request(address, String(LOW));
  const proof = {
    version: 1,
    address,
    challenge: request.challenge,
    public_key: toHex(rawPublicKey(key)),
    signature: toHex(signMessage(key, addressProofMessage(request))),
  };
  await thresholds.change({ id, address, payload } as never, String(LOW), request, proof);
  expect(await highest(sql, id)).toBe(HIGH);
});

test('so do an edit that lowers the smallest payout, and a start with a lower one', async () => {
  const { sql } = await server.fresh();
  await startedWithMinimum(sql, HIGH, now(), chain());
  await startedWithMinimum(sql, HIGH / 2n, now(), chain());
  expect(await highest(sql, 1)).toBe(HIGH);
  const edited = await server.fresh();
  const file = { name: 'a', feePpm: { pplns: 0, solo: 0 }, payoutMin: HIGH, sliceCuts: 240, windowThousandths: 1_000n };
  const edits = new Edits(file as never, { sql: edited.sql, chain, now });
  await edits.change('payout_min', '0.00005', { host: 'test', token: '' });
  expect(await highest(edited.sql, 1)).toBe(HIGH);
});

test('a higher smallest payout that is announced meanwhile counts a day later by the dates of the ledger, once the clock is right', async () => {
  const { sql } = await server.fresh();
  await startedWithMinimum(sql, LOW, now(), chain());
  await startedWithMinimum(sql, HIGH, now(), chain());
  for (const [millis, inForce] of [
    [now(), LOW],
    [LEDGER + HOUR, LOW],
    [LEDGER + 23 * HOUR, LOW],
    [LEDGER + 25 * HOUR, HIGH],
  ] as const)
    expect(await minimumInForce(sql, millis)).toBe(inForce);
});

test('so does a pause that ends', async () => {
  const { sql } = await server.fresh();
  const later = Date.now() + 3 * BOUND;
  await pausePayouts(sql, true);
  await pausePayouts(sql, false, { newestMillis: later });
  expect(await payoutsResumed(sql)).toBe(later);
  await pausePayouts(sql, true);
  await pausePayouts(sql, false, { newestMillis: 5 });
  expect(await payoutsResumed(sql)).toBeGreaterThanOrEqual(later - 3 * BOUND);
});
