/**
 * The work that a new chain begins with, from the rate of the devices that will mine on it: on a chain made for one
 * processor thread a graphics card would find hundreds of blocks a second until the chain has followed.
 */
import { BLOCKS_PER_CUT } from '../protocol/network.ts';
import { runToEnd } from './process.ts';

export type Measured = { readonly rate: number; readonly hasCard: boolean };

/** Tunes the cards too, if they never were; what is found is kept for the miner. */
export async function measureDevices(minerData: string): Promise<Measured> {
  const words = ['--benchmark', '1', '--network', 'development', '--json', '--data-dir', minerData];
  const { hash_rate: rate, devices } = JSON.parse(await runToEnd('svc-miner', words)) as {
    hash_rate: number;
    devices: readonly { kind: string }[];
  };
  return { rate, hasCard: devices.some(({ kind }) => kind === 'webgpu') };
}

/** Work of one block, so that the network makes its usual number of blocks a cut from the first on. */
export const workForRate = (rate: number, cutMillis: number): number =>
  Math.max(1, Math.round((rate * cutMillis) / 1000 / Number(BLOCKS_PER_CUT)));
