/**
 * The node's identity for signed answers: an ML-DSA-65 key in the data directory, made on first start, readable by its
 * owner only. Signing takes about 2 ms, so it runs in the thread pool, a few at a time, and refuses work it could not
 * finish soon. Clients take turns, and programs of this machine come first: signatures for strangers must not delay
 * templates for bridges.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { join } from 'node:path';
import { serviceIdentity } from '../../protocol/api/signed-answer.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { CodedError } from '../../protocol/coded-error.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/transaction.ts';
import { writeDurably } from '../../runtime/durable-file.ts';
import { PRIVATE_MODE, readPrivateFile } from '../../runtime/private-file.ts';

export const IDENTITY_FILE = 'api-identity.pem';

/** Half of the thread pool stays for reads of the store. */
const AT_ONCE = 2;
/** Waiting requests in total, and of one client. */
const MAX_WAITING = 512;
const MAX_WAITING_OF_ONE = 32;

export const IDENTITY_ERROR_CODES = ['identity_file_exposed'] as const;

export class IdentityError extends CodedError<(typeof IDENTITY_ERROR_CODES)[number]> {
  override readonly name = 'IdentityError';
}

export class NodeIdentity {
  readonly publicKey: Bytes;
  readonly identity: Bytes;
  readonly #key: KeyObject;
  /** By client, in the order of their turns; programs of this machine are separate. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #own: (() => void)[] = [];
  #waitingInAll = 0;
  #running = 0;

  constructor(key: KeyObject) {
    this.#key = key;
    const der = createPublicKey(key).export({ type: 'spki', format: 'der' });
    this.publicKey = new Uint8Array(der.subarray(der.length - PUBLIC_KEY_BYTES));
    this.identity = serviceIdentity(this.publicKey);
  }

  /** Undefined when too many are waiting. Without a client it is for a program of this machine. */
  sign(message: Bytes, client?: string): Promise<Bytes | undefined> {
    if (!this.#hasRoom(client)) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const start = (): void => {
        this.#running++;
        sign(null, message, this.#key, (error, signature) => {
          this.#running--;
          this.#next()?.();
          if (error === null) resolve(signature);
          else reject(error);
        });
      };
      if (this.#running < AT_ONCE) start();
      else this.#wait(client, start);
    });
  }

  #hasRoom(client: string | undefined): boolean {
    if (client === undefined) return this.#own.length < MAX_WAITING;
    return this.#waitingInAll < MAX_WAITING && (this.#waiting.get(client)?.length ?? 0) < MAX_WAITING_OF_ONE;
  }

  #wait(client: string | undefined, start: () => void): void {
    if (client === undefined) {
      this.#own.push(start);
      return;
    }
    const its = this.#waiting.get(client);
    if (its === undefined) this.#waiting.set(client, [start]);
    else its.push(start);
    this.#waitingInAll++;
  }

  #next(): (() => void) | undefined {
    const own = this.#own.shift();
    if (own !== undefined) return own;
    const first = this.#waiting.entries().next().value;
    if (first === undefined) return undefined;
    const [client, its] = first;
    this.#waitingInAll--;
    this.#waiting.delete(client);
    const start = its.shift();
    // Behind all others.
    if (its.length > 0) this.#waiting.set(client, its);
    return start;
  }
}

export const newIdentity = (): NodeIdentity => new NodeIdentity(generateKeyPairSync('ml-dsa-65').privateKey);

export async function loadIdentity(dataDir: string): Promise<NodeIdentity> {
  const path = join(dataDir, IDENTITY_FILE);
  const file = readPrivateFile(path);
  if (file.kind === 'exposed')
    throw new IdentityError(
      'identity_file_exposed',
      `${path} is readable by other users: chmod 600 it, or remove it for a new identity`,
    );
  if (file.kind === 'unreadable') throw new Error(file.reason);
  if (file.kind === 'text') return new NodeIdentity(createPrivateKey(file.text));
  const { privateKey } = generateKeyPairSync('ml-dsa-65');
  await writeDurably(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), PRIVATE_MODE);
  return new NodeIdentity(privateKey);
}
