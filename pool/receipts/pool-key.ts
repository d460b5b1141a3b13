/**
 * The key that a pool signs receipts with: ML-DSA-65, made at the first start in a private file. The database stores
 * its public key, and all instances sign with the same key, because miners pin it. An instance with another key, or
 * without one after another instance made one, gives no receipts and logs what to copy. A key signs on one chain, which
 * its file names: slices of another have the same numbers, and two records of one number convict the pool (books rule 20).
 */
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { realpathSync, renameSync } from 'node:fs';
import { rawPublicKey, signMessageAside } from '../../node/ml-dsa.ts';
import { poolKeyName } from '../../protocol/books/receipt.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/transactions/transaction.ts';
import { createDurably, writeDurably } from '../../runtime/files/durable-file.ts';
import { PRIVATE_MODE, privateText, readPrivateFile } from '../../runtime/files/private-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Sql, Transaction } from '../database/connect.ts';
import { PoolError } from '../pool-error.ts';

const SETTING = 'pool_key';
export const POOL_KEY_FILE = 'pool.key';

export type PoolKey = { readonly publicKey: Bytes; sign(message: Bytes): Promise<Bytes> };

/** Before the key itself, where readers of PEM look at nothing. */
const CHAIN = /^chain: (.*)$/m;

/** Writes the chain into the key's file at its first use; throws if it names another. A file that is not there has none yet. */
export async function claimKey(path: string, chainId: string, log: Logger): Promise<void> {
  const file = readPrivateFile(path);
  if (file.kind !== 'text') return;
  const known = CHAIN.exec(file.text)?.[1];
  if (known === chainId) return;
  if (known !== undefined)
    throw new PoolError(
      'key_other_chain',
      `the nodes follow chain ${chainId}, and ${path} says that this key signs on chain ${known}: name nodes of that chain, or begin with another --pool-key-file and another database`,
    );
  try {
    await writeDurably(realpathSync(path), `chain: ${chainId}\n${file.text}`, PRIVATE_MODE);
  } catch (error) {
    log.warn('the key file cannot be written, so it does not say on which chain it signs', {
      reason: (error as Error).message,
      remedy: `write "chain: ${chainId}" as the first line of ${path}`,
    });
  }
}

async function known(sql: Sql | Transaction): Promise<Bytes | undefined> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${SETTING}`;
  return row === undefined ? undefined : fromHex(row.value, PUBLIC_KEY_BYTES);
}

/** `claimed`: the chain of the nodes, once one has answered; undefined without nodes. Nothing is signed before. */
type PoolKeyDependencies = { readonly sql: Sql; readonly log: Logger; readonly claimed: Promise<string | undefined> };

/** Null when this instance cannot sign; the log says why. Throws if others can read the file. */
export async function openPoolKey(path: string, { sql, log, claimed }: PoolKeyDependencies): Promise<PoolKey | null> {
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
    // Another instance may share the file and start at the same moment: the first key stays.
    await createDurably(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), PRIVATE_MODE);
  }
  const secret = createPrivateKey(privateText(path, '--pool-key-file'));
  const ready = claimed.then((chainId) => (chainId === undefined ? undefined : claimKey(path, chainId, log)));
  ready.catch(() => undefined);
  const key: PoolKey = {
    publicKey: rawPublicKey(secret),
    sign: async (message) => {
      // A wait would hold the round of receipts, and the end of the pool: it is tried again.
      await Promise.race([ready, Promise.reject(new Error('no node has named its chain yet'))]);
      return signMessageAside(secret, message);
    },
  };
  await sql`insert into settings values (${SETTING}, ${toHex(key.publicKey)}) on conflict (name) do nothing`;
  const registered = (await known(sql)) as Bytes;
  if (toHex(registered) !== toHex(key.publicKey)) {
    return noReceipts('its key is not that of the pool', registered);
  }
  log.info('receipts are signed', { key: poolKeyName(key.publicKey) });
  return key;
}

/** The next start makes another key. The file goes first: a key without its file is missed, a file without its key would be registered again. */
export async function forgetPoolKey(
  transaction: Transaction,
  path: string,
): Promise<{ readonly key: string | undefined; readonly kept: string | undefined }> {
  const before = await known(transaction);
  const key = before && poolKeyName(before);
  const kept = readPrivateFile(path).kind === 'missing' ? undefined : `${path}.${key ?? 'before'}`;
  if (kept !== undefined) renameSync(path, kept);
  await transaction`delete from settings where name = ${SETTING}`;
  return { key, kept };
}

/** The public key that every instance sends to miners; undefined before there is one. */
export const publicPoolKey = known;
