/** The pool's address is one that its wallet can spend from: a real wallet and a real database decide. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type EmbeddedWallet, startEmbeddedWallet } from '../../pool/start/embedded-wallet.ts';
import { poolAddress, tellForeignWallet } from '../../pool/start/pool-address.ts';
import { formatAddress } from '../../protocol/address.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { account } from './books-bed.ts';
import { databaseServer } from './database-fixture.ts';

const server = databaseServer();
const network = 'development';
const stranger = formatAddress(account('stranger'), network);
const errors: string[] = [];
const log = { ...quietLog, error: (message: string) => void errors.push(message) };

/** Closed with the test, if not before. */
async function openWallet(): Promise<EmbeddedWallet> {
  const opened = await startEmbeddedWallet(
    { directory: join(temporaryDirectory(), 'wallet'), network, nodeApi: 'http://127.0.0.1:1', nodeIdentity: [] },
    { log: quietLog, fault: () => undefined },
  );
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= opened.close());
  onTestFinished(close);
  return { ...opened, close };
}

test('an address that the wallet never gave is refused before a block pays it', async () => {
  const { sql } = await server.fresh();
  const wallet = await openWallet();
  await expect(poolAddress(sql, { network, given: stranger, wallet })).rejects.toMatchObject({
    code: 'pool_address',
    message: expect.stringContaining('svc-wallet new-address'),
  });
  // Nothing is on record: the next start decides anew.
  const own = await poolAddress(sql, { network, given: undefined, wallet });
  expect(await poolAddress(sql, { network, given: own, wallet })).toBe(own);
  expect(errors).toEqual([]);
  const again = await server.fresh();
  expect(await poolAddress(again.sql, { network, given: own, wallet })).toBe(own);
});

test('a pool that is started with another wallet goes on, and says so; one without an answer says nothing', async () => {
  const { sql } = await server.fresh();
  const wallet = await openWallet();
  const own = await poolAddress(sql, { network, given: undefined, wallet });
  const other = await openWallet();
  expect(await poolAddress(sql, { network, given: undefined, wallet: other })).toBe(own);
  expect(await tellForeignWallet(wallet, own, log)).toBe(true);
  expect(errors).toEqual([]);
  expect(await tellForeignWallet(other, own, log)).toBe(true);
  expect(errors.splice(0)).toEqual([expect.stringMatching(/THE WALLET DOES NOT OWN/)]);
  await other.close();
  expect(await poolAddress(sql, { network, given: undefined, wallet: other })).toBe(own);
  expect(await tellForeignWallet(other, own, log)).toBe(false);
  expect(errors).toEqual([]);
});
