/**
 * The address that the pool's blocks pay. The wallet provides it once, and the books keep it: all instances and
 * all starts use the same, because it identifies the pool's rewards.
 */
import { parseAddress } from '../../protocol/address.ts';
import { utf8 } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { privateText } from '../../runtime/files/private-file.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { plainFetch, textOf } from '../../runtime/node-client/http-fetch.ts';
import type { Sql } from '../database/connect.ts';
import { PoolError } from '../pool-error.ts';

const SETTING = 'pool_address';

type Wallet = { readonly url: string; readonly tokenFile: string };
type RpcAnswer<T> = { result?: T; error?: { message: string; data?: { code?: string } } };

async function ask<T>(wallet: Wallet, method: string, params: object): Promise<RpcAnswer<T>> {
  const token = privateText(wallet.tokenFile, '--wallet-token-file').trim();
  const response = await plainFetch(`${wallet.url.replace(/\/+$/, '')}/v1/rpc`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: utf8(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })),
    signal: AbortSignal.timeout(10_000),
  });
  const answer = JSON.parse(await textOf(response)) as RpcAnswer<T>;
  if (answer.result === undefined && answer.error === undefined) throw new Error(`status ${response.status}`);
  return answer;
}

async function newAddress(wallet: Wallet): Promise<string> {
  try {
    const { result, error } = await ask<{ address: string }>(wallet, 'new_address', { label: 'pool rewards' });
    if (result !== undefined) return result.address;
    throw new Error(error?.message);
  } catch (error) {
    throw new PoolError(
      'wallet_unavailable',
      `the wallet at ${wallet.url} gave no address: ${(error as Error).message}`,
    );
  }
}

/** Whether the wallet says that an address is not its own; undefined without an answer. */
async function isForeign(wallet: Wallet, address: string): Promise<boolean | undefined> {
  const answer = await ask<object>(wallet, 'balance', { address }).catch(() => undefined);
  return answer === undefined ? undefined : answer.error?.data?.code === 'address_not_mine';
}

/** Whether the wallet has answered. Mining continues with a foreign one: the books record all debts. A wallet that was restored may still have to find the address. */
export async function tellForeignWallet(wallet: Wallet, address: string, log: Pick<Logger, 'error'>): Promise<boolean> {
  const found = await isForeign(wallet, address);
  if (found === true)
    log.error(
      'THE WALLET DOES NOT OWN THE POOL’S ADDRESS: blocks pay an address that payouts cannot spend from; start with the wallet of this pool',
      { address, wallet: wallet.url },
    );
  return found !== undefined;
}

export async function poolAddress(
  sql: Sql,
  options: {
    readonly network: NetworkName;
    readonly given: string | undefined;
    readonly wallet: Wallet;
  },
): Promise<string> {
  const known = async () =>
    (await sql<{ value: string }[]>`select value from settings where name = ${SETTING}`)[0]?.value;
  let address = await known();
  if (address === undefined) {
    // Blocks would pay it from the start, and none of that could ever be paid out.
    if (options.given !== undefined && (await isForeign(options.wallet, options.given)))
      throw new PoolError(
        'pool_address',
        `--pool-address ${options.given} is not an address that the wallet has handed out: payouts could never spend from it. Leave the option out, or name one that svc-wallet new-address gave`,
      );
    const fresh = options.given ?? (await newAddress(options.wallet));
    await sql`insert into settings values (${SETTING}, ${fresh}) on conflict (name) do nothing`;
    address = (await known()) as string;
  }
  if (options.given !== undefined && options.given !== address)
    throw new PoolError('pool_address', `the books of this pool were made for ${address}, not for --pool-address`);
  if (parseAddress(address).network !== options.network)
    throw new PoolError('pool_address', `the books of this pool are of another network than ${options.network}`);
  return address;
}
