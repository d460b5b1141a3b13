/** What the options about pools and their books say, for svc-miner and svc-proxy: they are read again when the config file changes. */
import type { Username } from '../protocol/stratum/username.ts';
import { readSmallFile } from '../runtime/files/small-file.ts';
import type { TlsOptions } from './client/transport-node.ts';
import { MinerError } from './miner-error.ts';
import type { MinerValues } from './options.ts';

export type PoolValues = Pick<
  MinerValues,
  | 'pool'
  | 'user'
  | 'expectPayout'
  | 'tlsPin'
  | 'tlsCa'
  | 'poolApi'
  | 'poolKey'
  | 'nodeApi'
  | 'payoutThreshold'
  | 'checkBooks'
>;

export type PoolSettings = { readonly values: PoolValues; readonly user: Username; readonly tls: TlsOptions };

/** Throws where they name no pool or no address, contradict each other, or name a file that cannot be read. */
export function poolSettings({
  user,
  pool,
  expectPayout,
  tlsPin: pins,
  tlsCa,
}: PoolValues): Omit<PoolSettings, 'values'> {
  if (user === undefined || pool.length === 0)
    throw new MinerError('pool_url', 'the options name no pool or no address');
  if (expectPayout !== undefined && expectPayout.network !== user.address.network)
    throw new MinerError('pool_network', '--expect-payout and --user are addresses of different networks');
  return { user, tls: { pins, ...(tlsCa === undefined ? {} : { authorities: readAuthorities(tlsCa) }) } };
}

function readAuthorities(path: string): string {
  try {
    return readSmallFile(path);
  } catch (error) {
    throw new MinerError('pool_certificate', `cannot read --tls-ca: ${(error as Error).message}`);
  }
}

/** Where two of them have the same, connections and what was noted of books stay. */
export const poolKey = ({ values, user, tls }: PoolSettings): string =>
  JSON.stringify([
    values.pool.map(({ text }) => text),
    [user.text, user.worker],
    values.expectPayout === undefined ? null : [...values.expectPayout.payload],
    tls,
    [
      values.poolApi ?? null,
      values.poolKey ?? null,
      values.nodeApi ?? null,
      String(values.payoutThreshold),
      values.checkBooks,
    ],
  ]);
