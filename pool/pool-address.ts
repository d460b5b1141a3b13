/**
 * The address that the pool's blocks pay. It is asked of the wallet once and then stands in the books: all instances and
 * all starts use the same, since rewards are told from others' by it.
 */
import { parseAddress } from '../protocol/address.ts';
import type { NetworkName } from '../protocol/network.ts';
import { privateText } from '../runtime/private-file.ts';
import type { Sql } from './database/connect.ts';
import { PoolError } from './pool-error.ts';

const SETTING = 'pool_address';

async function askWallet(url: string, tokenFile: string): Promise<string> {
  try {
    const token = privateText(tokenFile, '--wallet-token-file').trim();
    const response = await fetch(`${url}/v1/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'new_address', params: { label: 'pool rewards' } }),
      signal: AbortSignal.timeout(10_000),
    });
    const answer = (await response.json()) as { result?: { address: string }; error?: { message: string } };
    if (answer.result !== undefined) return answer.result.address;
    throw new Error(answer.error?.message ?? `status ${response.status}`);
  } catch (error) {
    throw new PoolError('wallet_unavailable', `the wallet at ${url} gave no address: ${(error as Error).message}`);
  }
}

export async function poolAddress(
  sql: Sql,
  options: {
    readonly network: NetworkName;
    readonly given: string | undefined;
    readonly wallet: { readonly url: string; readonly tokenFile: string };
  },
): Promise<string> {
  const known = async () =>
    (await sql<{ value: string }[]>`select value from settings where name = ${SETTING}`)[0]?.value;
  let address = await known();
  if (address === undefined) {
    const fresh = options.given ?? (await askWallet(options.wallet.url, options.wallet.tokenFile));
    await sql`insert into settings values (${SETTING}, ${fresh}) on conflict (name) do nothing`;
    address = (await known()) as string;
  }
  if (options.given !== undefined && options.given !== address)
    throw new PoolError('pool_address', `the books of this pool were made for ${address}, not for --pool-address`);
  if (parseAddress(address).network !== options.network)
    throw new PoolError('pool_address', `the books of this pool are of another network than ${options.network}`);
  return address;
}
