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
import { PUBLIC_KEY_BYTES } from '../../protocol/transactions/transaction.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { PRIVATE_MODE, readPrivateFile } from '../../runtime/files/private-file.ts';

export const IDENTITY_FILE = 'api-identity.pem';

/** Half of the thread pool stays for reads of the store. */
const AT_ONCE = 2;
/** Requests that have a place, of all clients and of one; programs of this machine have as many of their own. */
const MAX_PLACES = 512;
const MAX_PLACES_OF_ONE = 32;

export const IDENTITY_ERROR_CODES = ['identity_file_exposed'] as const;

export class IdentityError extends CodedError<(typeof IDENTITY_ERROR_CODES)[number]> {
  override readonly name = 'IdentityError';
}

/** Taken before anything is done for a request, so that no request takes effect whose answer cannot be signed. */
export type SigningPlace = {
  sign(message: Bytes): Promise<Bytes>;
  leave(): void;
};

export class NodeIdentity {
  readonly publicKey: Bytes;
  readonly identity: Bytes;
  readonly #key: KeyObject;
  /** By client, in the order of their turns; programs of this machine are separate. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #own: (() => void)[] = [];
  readonly #places = new Map<string, number>();
  #placesOfClients = 0;
  #ownPlaces = 0;
  #running = 0;

  constructor(key: KeyObject) {
    this.#key = key;
    const der = createPublicKey(key).export({ type: 'spki', format: 'der' });
    this.publicKey = new Uint8Array(der.subarray(der.length - PUBLIC_KEY_BYTES));
    this.identity = serviceIdentity(this.publicKey);
  }

  /** Undefined when too many are taken. Without a client it is for a program of this machine. Leave it in the end. */
  place(client?: string): SigningPlace | undefined {
    if (!this.#hasRoom(client)) return undefined;
    this.#count(client, 1);
    let isTaken = true;
    return {
      sign: (message) => this.#sign(message, client),
      leave: () => {
        if (isTaken) this.#count(client, -1);
        isTaken = false;
      },
    };
  }

  #hasRoom(client: string | undefined): boolean {
    if (client === undefined) return this.#ownPlaces < MAX_PLACES;
    return this.#placesOfClients < MAX_PLACES && (this.#places.get(client) ?? 0) < MAX_PLACES_OF_ONE;
  }

  #count(client: string | undefined, change: 1 | -1): void {
    if (client === undefined) {
      this.#ownPlaces += change;
      return;
    }
    this.#placesOfClients += change;
    const its = (this.#places.get(client) ?? 0) + change;
    if (its === 0) this.#places.delete(client);
    else this.#places.set(client, its);
  }

  #sign(message: Bytes, client: string | undefined): Promise<Bytes> {
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

  #wait(client: string | undefined, start: () => void): void {
    if (client === undefined) {
      this.#own.push(start);
      return;
    }
    const its = this.#waiting.get(client);
    if (its === undefined) this.#waiting.set(client, [start]);
    else its.push(start);
  }

  #next(): (() => void) | undefined {
    const own = this.#own.shift();
    if (own !== undefined) return own;
    const first = this.#waiting.entries().next().value;
    if (first === undefined) return undefined;
    const [client, its] = first;
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
