/** Sizes for tests: a whole dataset in milliseconds, in the reference too. */

import {
  buildCache,
  datasetPage,
  datasetSeed,
  type PowParameters,
  powFinish,
  powFold,
  powMix,
  powNonce,
  powParameters,
  powPreHash,
  powSeed,
} from '../../protocol/crypto/pow.ts';
import { NETWORKS, type Network } from '../../protocol/network.ts';

export const TINY: Network = { ...NETWORKS.development, pow: { cacheLog2: 6, pagesLog2: 9 } };

/** The reference with its pages remembered: the same functions, each page computed once. */
export function referenceHasher(network: Network, epoch: number): (header: Uint8Array) => Uint8Array<ArrayBuffer> {
  const parameters: PowParameters = powParameters(network);
  const cache = buildCache(datasetSeed(parameters.networkId, epoch), parameters.cacheLog2);
  const pages = new Map<number, Uint32Array<ArrayBuffer>>();
  const page = (p: number): Uint32Array<ArrayBuffer> => {
    let known = pages.get(p);
    if (known === undefined) {
      known = datasetPage(cache, parameters.cacheLog2, p);
      pages.set(p, known);
    }
    return known;
  };
  return (header) => {
    const seed = powSeed(powPreHash(header), powNonce(header));
    return powFinish(seed, powFold(powMix(seed, parameters.pagesLog2, page)));
  };
}

/** A header of noise that can be told from its neighbours by its number. */
export function noiseHeader(number: number): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(312);
  let x = (number * 2_654_435_761 + 12_345) >>> 0;
  for (let i = 0; i < header.length; i++) {
    x = (Math.imul(x, 1_664_525) + 1_013_904_223) >>> 0;
    header[i] = x >>> 24;
  }
  return header;
}
