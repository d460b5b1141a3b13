/**
 * The secret that the instances of a pool share: created by the first of them, stored in the database, which they trust
 * anyway.
 */
import { randomBytes } from 'node:crypto';
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import type { Sql } from '../database/connect.ts';
import { SECRET_BYTES } from './seal.ts';

const NAME = 'shared_secret';

export async function poolSecret(sql: Sql): Promise<Bytes> {
  const [known] = await sql<{ value: string }[]>`select value from settings where name = ${NAME}`;
  if (known !== undefined) return fromHex(known.value, SECRET_BYTES);
  // If several instances start at once, all use the secret of the first.
  await sql`insert into settings values (${NAME}, ${randomBytes(SECRET_BYTES).toString('hex')}) on conflict (name) do nothing`;
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${NAME}`;
  return fromHex((row as { value: string }).value, SECRET_BYTES);
}
