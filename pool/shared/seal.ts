/**
 * Values in Redis are sealed with a key that only the instances of one pool know (docs/pool.md, many instances). Somebody who can
 * write to Redis can remove and replay values, but cannot forge any: no share, no ban, no session.
 *
 * `u8 format | 32 bytes HMAC-SHA-256 | payload`; the code covers what the value is for, its name, the format and the payload.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { type Bytes, concat, fromHex, utf8 } from '../../protocol/bytes.ts';
import type { Sql } from '../database/connect.ts';

/** Raised whenever any value in Redis changes its form. Instances of different formats ignore each other's values. */
export const SHARED_FORMAT = 1;

export type Purpose = 'entries' | 'gap' | 'last' | 'ban' | 'session' | 'instance' | 'news';

export type Opened =
  | { readonly kind: 'payload'; readonly payload: Bytes }
  /** Another release wrote it, or it was forged to look so. */
  | { readonly kind: 'other_format'; readonly format: number }
  /** No instance of this pool wrote it. */
  | { readonly kind: 'not_ours' };

const CODE_BYTES = 32;
const HEAD_BYTES = 1 + CODE_BYTES;
export const SECRET_BYTES = 32;

export class Seal {
  readonly #format: number;
  readonly #scope: string;
  readonly #keys = new Map<Purpose, Buffer>();
  #secret: Bytes;

  /** `scope` separates pools that share a Redis. `format` differs in tests only. */
  constructor(secret: Bytes, scope: string, format = SHARED_FORMAT) {
    this.#secret = secret;
    this.#scope = scope;
    this.#format = format;
  }

  /** The database has another secret now: it was restored, or is another one. */
  replaceSecret(secret: Bytes): void {
    if (Buffer.compare(secret, this.#secret) === 0) return;
    this.#secret = secret;
    this.#keys.clear();
  }

  /** `name` is the key of the value: under another one it cannot be opened. */
  seal(purpose: Purpose, name: string, payload: Bytes): Buffer {
    const code = this.#code(purpose, name, this.#format, payload);
    return Buffer.concat([Uint8Array.of(this.#format), code, payload]);
  }

  open(purpose: Purpose, name: string, sealed: Bytes): Opened {
    const format = sealed[0];
    if (sealed.length < HEAD_BYTES || format === undefined) return { kind: 'not_ours' };
    if (format !== this.#format) return { kind: 'other_format', format };
    const payload = sealed.subarray(HEAD_BYTES);
    const code = this.#code(purpose, name, format, payload);
    if (!timingSafeEqual(code, sealed.subarray(1, HEAD_BYTES))) return { kind: 'not_ours' };
    return { kind: 'payload', payload };
  }

  /** For names that must not be readable in Redis: anyone who knows a session's id can resume it. */
  hiddenName(purpose: Purpose, name: string): string {
    return this.#code(purpose, name, this.#format, new Uint8Array(0)).toString('hex');
  }

  #code(purpose: Purpose, name: string, format: number, payload: Bytes): Buffer {
    const named = utf8(name);
    const head = new Uint8Array(5);
    head[0] = format;
    new DataView(head.buffer).setUint32(1, named.length, true);
    return createHmac('sha256', this.#key(purpose)).update(concat(head, named)).update(payload).digest();
  }

  #key(purpose: Purpose): Buffer {
    const known = this.#keys.get(purpose);
    if (known !== undefined) return known;
    const key = Buffer.from(hkdfSync('sha256', this.#secret, this.#scope, `svc-pool redis ${purpose}`, 32));
    this.#keys.set(purpose, key);
    return key;
  }
}

const NAME = 'shared_secret';

/**
 * The secret that the instances of a pool share: created by the first of them, stored in the database, which they trust
 * anyway.
 */
export async function poolSecret(sql: Sql): Promise<Bytes> {
  const [known] = await sql<{ value: string }[]>`select value from settings where name = ${NAME}`;
  if (known !== undefined) return fromHex(known.value, SECRET_BYTES);
  // If several instances start at once, all use the secret of the first.
  await sql`insert into settings values (${NAME}, ${randomBytes(SECRET_BYTES).toString('hex')}) on conflict (name) do nothing`;
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${NAME}`;
  return fromHex((row as { value: string }).value, SECRET_BYTES);
}
