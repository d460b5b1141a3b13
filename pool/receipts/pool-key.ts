/**
 * The key that a pool signs receipts with: ML-DSA-65, made at the first start in a private file. The database stores
 * its public key, and all instances sign with the same key, because miners pin it. An instance with another key, or
 * without one after another instance made one, gives no receipts and logs what to copy.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { rawPublicKey, signMessageAside } from '../../node/ml-dsa.ts';
import { poolKeyName } from '../../protocol/books/receipt.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/transactions/transaction.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { PRIVATE_MODE, privateText, readPrivateFile } from '../../runtime/files/private-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Sql } from '../database/connect.ts';

const SETTING = 'pool_key';
export const POOL_KEY_FILE = 'pool.key';

export type PoolKey = { readonly publicKey: Bytes; sign(message: Bytes): Promise<Bytes> };

const poolKeyOf = (key: KeyObject): PoolKey => ({
  publicKey: rawPublicKey(key),
  sign: (message) => signMessageAside(key, message),
});

async function known(sql: Sql): Promise<Bytes | undefined> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${SETTING}`;
  return row === undefined ? undefined : fromHex(row.value, PUBLIC_KEY_BYTES);
}

/** Null when this instance cannot sign; the log says why. Throws if others can read the file. */
export async function openPoolKey(path: string, { sql, log }: { sql: Sql; log: Logger }): Promise<PoolKey | null> {
  const noReceipts = (why: string, key: Bytes): null => {
    log.error(`this instance gives no receipts: ${why}`, {
      remedy: `copy pool.key of the instance that was started first to ${path}, and restart`,
      key: poolKeyName(key),
    });
    return null;
  };
  const before = await known(sql);
  if (readPrivateFile(path).kind === 'missing') {
    if (before !== undefined) {
      return noReceipts('it lacks the key of the pool', before);
    }
    const { privateKey } = generateKeyPairSync('ml-dsa-65');
    await writeDurably(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), PRIVATE_MODE);
  }
  const key = poolKeyOf(createPrivateKey(privateText(path, '--pool-key-file')));
  await sql`insert into settings values (${SETTING}, ${toHex(key.publicKey)}) on conflict (name) do nothing`;
  const registered = (await known(sql)) as Bytes;
  if (toHex(registered) !== toHex(key.publicKey)) {
    return noReceipts('its key is not that of the pool', registered);
  }
  log.info('receipts are signed', { key: poolKeyName(key.publicKey) });
  return key;
}

/** The public key that every instance sends to miners; undefined before there is one. */
export const publicPoolKey = known;
