/**
 * Identifies the pool of a database. The pool writes its address there at its first start; the address implies the
 * network.
 */
import { parseAddress } from '../../protocol/address.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Sql } from '../database/connect.ts';
import { PoolError } from '../pool-error.ts';

export async function booksOf(sql: Sql): Promise<{ network: NetworkName; poolAddress: string }> {
  const [table] = await sql<{ there: boolean }[]>`select to_regclass('settings') is not null as there`;
  const [row] =
    table?.there === true
      ? await sql<{ value: string }[]>`select value from settings where name = 'pool_address'`
      : [undefined];
  if (row === undefined) throw new PoolError('not_a_pool', 'this is not the database of a pool: name another one');
  return { network: parseAddress(row.value).network, poolAddress: row.value };
}
