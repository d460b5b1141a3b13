/**
 * Farm sessions of svc-mining-v2 (docs/protocol/stratum.md, S70 to S76): one connection for many rigs. The server sends a job
 * without the last four bytes of its extranonce, and the client makes a header of its own for every generation.
 */
import { type ByteReader, type Bytes, ByteWriter, concat } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';
import { headerForPayout } from '../ledger/reward.ts';
import { MAX_EXTRANONCE } from '../ledger/tag.ts';
import { checkInteger, checkJob, checkWorker, type Job, U32_MAX } from './messages.ts';

/** Rigs of one farm session at most. */
export const MAX_RIGS = 4096;
export const GENERATION_BYTES = 4;
/** No farm job begins above it: half of all generations are left for the client (S73). */
export const LAST_FIRST_GENERATION = 0x7fffffff;

/** `header` has a zeroed `reward_root`; `extranonceHead` is the extranonce without its generation, so this is no Job yet. */
export interface FarmJob extends Omit<Job, 'extranonce'> {
  extranonceHead: Bytes;
  firstGeneration: number;
}

/** `rigs` 0: this server has no farms, and the session goes on as a plain one. */
export interface FarmOffer {
  rigs: number;
  submitsPerSecond: number;
}

/** `worker` '' : the rig is gone. */
export interface Rig {
  index: number;
  worker: string;
}

/** `nonce` is the 8 bytes as in the header, all of them the client's choice. */
export interface FarmSubmit {
  jobId: number;
  generation: number;
  rig: number;
  nonce: Bytes;
}

export function checkRigs(rigs: number): number {
  if (rigs < 1 || rigs > MAX_RIGS) throw new ProtocolError('out_of_range', `a farm has 1 to ${MAX_RIGS} rigs`);
  return rigs;
}

export function checkFarmOffer(offer: FarmOffer): FarmOffer {
  checkInteger('rigs', offer.rigs, MAX_RIGS);
  checkInteger('submits per second', offer.submitsPerSecond, U32_MAX);
  return offer;
}

export function checkRig(rig: Rig): Rig {
  checkInteger('index', rig.index, MAX_RIGS - 1);
  checkWorker(rig.worker);
  return rig;
}

/** The fields of a farm job that a plain job has too. */
export const plainPart = ({ extranonceHead, firstGeneration, ...job }: FarmJob): Job => ({
  ...job,
  extranonce: extranonceHead,
});

export function checkFarmJob(farm: FarmJob): FarmJob {
  const header = checkJob(plainPart(farm));
  if (header.rewardRoot.some((byte) => byte !== 0))
    throw new ProtocolError('not_canonical', 'the reward root of a farm job is zero');
  if (farm.extranonceHead.length > MAX_EXTRANONCE - GENERATION_BYTES)
    throw new ProtocolError('too_long', 'the extranonce of a farm job has no room for a generation');
  checkInteger('first generation', farm.firstGeneration, U32_MAX);
  return farm;
}

export function readFarmJob(job: Job, reader: ByteReader): FarmJob {
  const { extranonce, ...plain } = job;
  return checkFarmJob({ ...plain, extranonceHead: extranonce, firstGeneration: reader.u32() });
}

/** The extranonce of one generation (S71). */
export const extranonceOfGeneration = (head: Bytes, generation: number): Bytes =>
  concat(head, new ByteWriter(GENERATION_BYTES).u32(generation).done());

/** The job of one generation: what a rig works on, and what the server judges by. */
export function jobOfFarm(farm: FarmJob, generation: number): Job {
  const { extranonceHead, firstGeneration, ...job } = farm;
  const extranonce = extranonceOfGeneration(extranonceHead, generation);
  return { ...job, header: headerForPayout(farm.header, farm.payout, extranonce), extranonce };
}

/** How often the rigs of a farm may be named (S74): all of them `atOnce` times, and then all of them once a minute. */
export function namesRate(rigs: number, atOnce: number): { perSecond: number; burst: number } {
  const least = 5;
  return { perSecond: Math.max(least, rigs / 60), burst: atOnce * rigs + least };
}
