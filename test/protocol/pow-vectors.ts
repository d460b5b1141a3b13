/** The shape of vectors/pow.json (vectors/README.md), for every test that reads it. */
import { readFileSync } from 'node:fs';
import { type PowParameters, powParameters } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';

export type PowVector = {
  network: string;
  network_id: number;
  epoch: number;
  dataset_seed: string;
  cache: { index: number; bytes: string }[];
  items: { index: number; bytes: string }[];
  hashes: { header: string; pre_hash: string; seed: string; mix: string; pow: string }[];
};

export const powVectors: PowVector[] = JSON.parse(
  readFileSync(new URL('../../vectors/pow.json', import.meta.url), 'utf8'),
);

export function vectorsOf(network: string): PowVector[] {
  const found = powVectors.filter((vector) => vector.network === network);
  if (found.length === 0) throw new Error(`vectors/pow.json has nothing for ${network}`);
  return found;
}

export const DEVELOPMENT: PowParameters = powParameters(NETWORKS.development);
export const MAINNET: PowParameters = powParameters(NETWORKS.mainnet);
