/** The cache of the development network by the reference, made once in a process: it takes half a second. */
import { buildCache, datasetSeed } from '../../protocol/crypto/pow.ts';
import { NETWORKS } from '../../protocol/network.ts';

const { id, pow } = NETWORKS.development;
const caches = new Map<number, Uint8Array<ArrayBuffer>>();

export function developmentCache(epoch: number): Uint8Array<ArrayBuffer> {
  const cache = caches.get(epoch) ?? buildCache(datasetSeed(id, epoch), pow.cacheLog2);
  caches.set(epoch, cache);
  return cache;
}
