/** The key that signs receipts belongs to one chain: its file says which, and nothing is signed before the chain of the nodes is known. */
import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Sql } from '../../pool/database/connect.ts';
import { claimKey, openPoolKey, type PoolKey } from '../../pool/receipts/pool-key.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

const [CHAIN, OTHER] = ['11'.repeat(48), '22'.repeat(48)];

/** The table of settings of a new database. */
function settings(): Sql {
  let known: string | undefined;
  const sql = async ({ raw: [text = ''] }: TemplateStringsArray, ...values: string[]) => {
    if (text.startsWith('insert')) known ??= values[1];
    return known === undefined ? [] : [{ value: known }];
  };
  return sql as unknown as Sql;
}

const opened = async (path: string, claimed: Promise<string | undefined>, sql = settings()): Promise<PoolKey> =>
  (await openPoolKey(path, { sql, log: quietLog, claimed })) as PoolKey;

/** Signs as a round of receipts does: what is not known yet is tried again. */
async function signs(key: PoolKey): Promise<void> {
  for (;;) {
    const failure = await key.sign(new Uint8Array(1)).then(
      () => undefined,
      (error: Error) => error,
    );
    if (failure === undefined) return;
    if (!failure.message.includes('yet')) throw failure;
    await new Promise((next) => setImmediate(next));
  }
}

test('a key made on one chain is refused on another, also when it was copied there alone', async () => {
  const path = join(temporaryDirectory(), 'pool.key');
  const key = await opened(path, Promise.resolve(CHAIN));
  await signs(key);
  expect(readFileSync(path, 'utf8')).toMatch(new RegExp(`^chain: ${CHAIN}\n-----BEGIN PRIVATE KEY-----\n`));
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await claimKey(path, CHAIN, quietLog);
  const copied = join(temporaryDirectory(), 'pool.key');
  copyFileSync(path, copied);
  await expect(claimKey(copied, OTHER, quietLog)).rejects.toMatchObject({
    code: 'key_other_chain',
    message: expect.stringContaining('another --pool-key-file'),
  });
  expect((await opened(copied, Promise.resolve(CHAIN))).publicKey).toEqual(key.publicKey);
});

test('a key file of before, without a chain, gets the one of its next start', async () => {
  const path = join(temporaryDirectory(), 'pool.key');
  const key = await opened(path, Promise.resolve(CHAIN));
  await signs(key);
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^chain: .*\n/, ''));
  await claimKey(path, OTHER, quietLog);
  await expect(claimKey(path, CHAIN, quietLog)).rejects.toMatchObject({ code: 'key_other_chain' });
  expect((await opened(path, Promise.resolve(undefined))).publicKey).toEqual(key.publicKey);
});

test('nothing is signed before a node has named the chain, and nothing on another one', async () => {
  const path = join(temporaryDirectory(), 'pool.key');
  const { promise, resolve } = Promise.withResolvers<string>();
  const key = await opened(path, promise);
  await expect(key.sign(new Uint8Array(1))).rejects.toThrow('no node has named its chain yet');
  resolve(CHAIN);
  await signs(key);
  const elsewhere = await opened(path, Promise.resolve(OTHER));
  await expect(signs(elsewhere)).rejects.toMatchObject({ code: 'key_other_chain' });
});

test('a missing file is made later, and claims nothing', async () => {
  const path = join(temporaryDirectory(), 'pool.key');
  await claimKey(path, CHAIN, quietLog);
  expect(() => readFileSync(path)).toThrow('ENOENT');
});

test('two instances that share a key file and start at once sign with the one key that the file keeps', async () => {
  const path = join(temporaryDirectory(), 'pool.key');
  const sql = settings();
  const keys = await Promise.all(
    [1, 2].map(() => openPoolKey(path, { sql, log: quietLog, claimed: Promise.resolve(CHAIN) })),
  );
  expect(keys.every((key) => key !== null)).toBe(true);
  const restarted = await opened(path, Promise.resolve(CHAIN), sql);
  for (const key of [...keys, restarted]) expect(key?.publicKey).toEqual(keys[0]?.publicKey);
});
