/**
 * The four networks and their parameters (ledger rule 2). Everything that differs between networks is here.
 */
import { ProtocolError } from './errors.ts';

export const NETWORK_NAMES = ['mainnet', 'testnet', 'testnet100', 'development'] as const;
export type NetworkName = (typeof NETWORK_NAMES)[number];

export type Network = {
  readonly name: NetworkName;
  readonly id: number;
  readonly addressPrefix: string;
  /** Sizes of the PoW cache (64-byte items) and dataset (128-byte pages), as powers of two. */
  readonly pow: { readonly cacheLog2: number; readonly pagesLog2: number };
};

const LARGE = { cacheLog2: 20, pagesLog2: 24 };

export const NETWORKS: Readonly<Record<NetworkName, Network>> = {
  mainnet: { name: 'mainnet', id: 1, addressPrefix: 'svc', pow: LARGE },
  testnet: { name: 'testnet', id: 2, addressPrefix: 'tsvc', pow: LARGE },
  testnet100: { name: 'testnet100', id: 3, addressPrefix: 'hsvc', pow: LARGE },
  development: { name: 'development', id: 4, addressPrefix: 'dsvc', pow: { cacheLog2: 13, pagesLog2: 17 } },
};

export function networkById(id: number): Network {
  const name = NETWORK_NAMES[id - 1];
  if (name === undefined) throw new ProtocolError('wrong_network', `no network has the id ${id}`);
  return NETWORKS[name];
}

/** Cuts in an interval, which is also called a day and an epoch of stake: one day at one cut per 2.5 s. */
export const INTERVAL_CUTS = 34_560;

/** Cuts of one PoW dataset: 30 intervals. A development chain may be started with fewer. */
export const POW_EPOCH_CUTS = 30 * INTERVAL_CUTS;

/** A block with anchor h may be registered by the cuts h+1 to h+96; its anchor is paid in cut h+96. */
export const REGISTRATION_WINDOW = 96;
/** Work blocks that the target aims at (ledger rule 39). */
export const BLOCKS_PER_CUT = 4n;

export const powEpoch = (anchorHeight: number, epochCuts: number = POW_EPOCH_CUTS): number =>
  Math.floor(anchorHeight / epochCuts);
