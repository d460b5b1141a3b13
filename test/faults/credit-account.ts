/** Income of an account as a credit list of its own, so that its books add up: nobody is paid whose books do not (books rule 23). */
import { packCredits } from '../../pool/books/packed.ts';
import type { Sql, Transaction } from '../../pool/database/connect.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';

/** Slices that no test's chain reaches. */
const FIRST_SLICE = 1_000_000;

export async function creditAccount(
  sql: Sql | Transaction,
  { payload, address, amount }: { readonly payload: Bytes; readonly address: string; readonly amount: bigint },
): Promise<void> {
  const [row] = await sql<{ id: number }[]>`insert into accounts as a (payload, address, balance)
    values (${Buffer.from(payload)}, ${address}, ${amount})
    on conflict (address) do update set balance = a.balance + excluded.balance returning id`;
  const accountId = (row as { id: number }).id;
  await sql`insert into account_names values (${accountId}, ${Buffer.from(payload)}) on conflict do nothing`;
  const root = Buffer.from(sumTree([{ key: payload, value: amount }]).root.hash);
  const credits = Buffer.from(packCredits([{ accountId, value: amount }]));
  await sql`insert into credit_lists (service, slice, blocks, reward, fee, fee_ppm, credited, window_parts, root, credits, made_height)
    select 0, greatest(${FIRST_SLICE}::int, coalesce(max(slice), 0) + 1), 1, ${amount}, 0, 0, ${amount}, '[]', ${root}, ${credits}, 1
    from credit_lists where service = 0`;
}
