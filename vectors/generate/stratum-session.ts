/**
 * The sample session that both stratum vector files spell: a bridge and a pool on the development network, with real
 * hashes. The share is a share and the block is a block, so a miner can be checked against them end to end.
 */
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, ByteWriter, concat, fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { ID_BYTES, id } from '../../protocol/crypto/identifier.ts';
import { powStages } from '../../protocol/crypto/pow.ts';
import { blockId, encodeHeader, NONCE_OFFSET, REWARD_ROOT_OFFSET } from '../../protocol/ledger/header.ts';
import { headerForPayout } from '../../protocol/ledger/reward.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { targetFromBytes, targetOfWork, workOfTarget } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { type FarmJob, jobOfFarm } from '../../protocol/stratum/farm.ts';
import type { Job, WorkerStats } from '../../protocol/stratum/messages.ts';
import { composeNonce } from '../../protocol/stratum/nonce.ts';
import { developmentCache } from './development-cache.ts';

export type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain };

/** Values as JSON: bytes are `{"hex": ...}`, integers that may pass 2^53 `{"integer": ...}`. */
export function toPlain(value: unknown): Plain {
  if (value instanceof Uint8Array) return { hex: toHex(value) };
  if (typeof value === 'bigint') return { integer: value.toString() };
  if (Array.isArray(value)) return value.map(toPlain);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toPlain(item)]));
  return value as Plain;
}

export function fromPlain(value: Plain): unknown {
  if (Array.isArray(value)) return value.map(fromPlain);
  if (typeof value !== 'object' || value === null) return value;
  const keys = Object.keys(value);
  if (keys.length === 1 && typeof value.hex === 'string') return fromHex(value.hex);
  if (keys.length === 1 && typeof value.integer === 'string') return BigInt(value.integer);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fromPlain(item)]));
}

const network = NETWORKS.development;
const session = '00112233445566778899aabbccddeeff';
const minerPayload = keyAddressPayload(utf8('miner of the vectors'));
const poolPayload = keyAddressPayload(utf8('pool of the vectors'));
const shareTarget = targetOfWork(16n);
const blockTarget = targetOfWork(64n);

export const prefix = Uint8Array.of(0x0a, 0x01);
export const minerAddress = formatAddress(minerPayload, network.name);
export const shareWork = workOfTarget(shareTarget);

function sampleJob(jobId: number, payout: Bytes, tag: string, clean: boolean): Job {
  const some = (name: string): Bytes => id('SVC_VECTOR_V1', utf8(name));
  const extranonce = encodeExtranonce(tag, fromHex('0102030405060708000000010000'));
  const template = encodeHeader({
    networkId: network.id,
    anchorHeight: 1234,
    timestampMillis: 1_767_225_600_000,
    anchorId: some('anchor'),
    parentsRoot: some('parents'),
    transactionsRoot: some('transactions'),
    rewardRoot: new Uint8Array(48),
    stateRoot: some('state'),
    target: blockTarget,
    nonce: new Uint8Array(8),
  });
  const header = headerForPayout(template, payout, extranonce);
  return { jobId, header, shareTarget, epoch: 0, payout, extranonce, clean };
}

export const bridgeJob = sampleJob(0x1a, minerPayload, 'rig one', true);
export const poolJob = sampleJob(0x1b, poolPayload, '', false);

/** The pool's job as a farm gets it: without reward root and generation. */
function sampleFarmJob({ extranonce, ...job }: Job): FarmJob {
  const header = Uint8Array.from(job.header).fill(0, REWARD_ROOT_OFFSET, REWARD_ROOT_OFFSET + ID_BYTES);
  return { ...job, jobId: 0x1c, header, extranonceHead: extranonce.subarray(0, -4), firstGeneration: 5 };
}

export const farmJob = sampleFarmJob(poolJob);
export const farmGeneration = 6;

const parameters = { networkId: network.id, ...network.pow };
const cache = developmentCache(0);

const hashOf = (header: Bytes): bigint => targetFromBytes(powStages(parameters, cache, header).pow);
const withNonce = ({ header }: Job, nonce: Bytes): Bytes => concat(header.subarray(0, NONCE_OFFSET), nonce);

/** The first nonce from this number on whose hash meets the target. The numbers below are those that were found: to search from 0 takes some sixty hashes. */
function search(job: Job, target: bigint, from: bigint, nonceOf: (counter: bigint) => Bytes): Bytes {
  for (let counter = from; ; counter++) {
    const nonce = nonceOf(counter);
    if (hashOf(withNonce(job, nonce)) <= target) return nonce;
  }
}

const bridgeNonce = (counter: bigint): Bytes => composeNonce(counter, prefix);
const block = search(bridgeJob, blockTarget, 0x29n, bridgeNonce);

/** Nonces of the bridge's job whose hash is a share, and a block. */
export const found = {
  share: search(bridgeJob, shareTarget, 7n, bridgeNonce),
  block,
  blockId: blockId(withNonce(bridgeJob, block)),
};

/** A nonce of the farm job's second generation whose hash is a share. */
export const foundByRig = search(jobOfFarm(farmJob, farmGeneration), shareTarget, 0x0102030405060716n, (counter) =>
  new ByteWriter(8).u64(counter).done(),
);

export const subscribe = { agent: 'example/1.0', tag: 'rig one', session: null };
export const resume = { agent: 'example/1.0', tag: '', session };
export const onBridge = {
  session,
  noncePrefix: prefix,
  network: network.id,
  server: 'svc-bridge/0.1.0',
  pool: null,
};
export const onPool = {
  session,
  noncePrefix: Uint8Array.of(0x7f),
  network: network.id,
  server: 'svc-pool/0.1.0',
  pool: { address: formatAddress(poolPayload, network.name), name: 'Example Pool' },
};
export const authorize = { username: `${minerAddress}.rig-1.gpu0`, password: 'd=1000000' };
export const authorizeBare = { username: minerAddress, password: '' };
export const authorized = { address: minerAddress, worker: 'rig-1.gpu0' };
export const sameHost = { host: '', port: 0, waitMillis: 2000 };
export const otherHost = { host: 'eu.pool.example', port: 28720, waitMillis: 0 };
export const bridgeStats: WorkerStats = {
  accepted: 0,
  rejected: {},
  stale: 0,
  work: 0n,
  hashRate: 0n,
  shareWork,
  pool: null,
};
export const poolStats: WorkerStats = {
  accepted: 120,
  rejected: { duplicate: 1, above_target: 2 },
  stale: 3,
  work: 18_446_744_073_709_551_616n,
  hashRate: 547_000_000n,
  shareWork: 4_294_967_296n,
  pool: { pendingAtoms: 12_345_678n, paidAtoms: 900_000_000n },
};
