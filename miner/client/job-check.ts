/**
 * Checks whether a job may be worked on (docs/miner.md, "What the miner refuses"). A miner need not trust its server:
 * the paid address is in the job's reward root (ledger rule 11), and the dataset follows from network and epoch alone.
 */
import { parseAddress } from '../../protocol/address.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { decodeHeader } from '../../protocol/ledger/header.ts';
import { headerPays } from '../../protocol/ledger/reward.ts';
import { NETWORK_NAMES, NETWORKS, type NetworkName, POW_EPOCH_CUTS, powEpoch } from '../../protocol/network.ts';
import { type FarmJob, LAST_FIRST_GENERATION } from '../../protocol/stratum/farm.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { type Refusal, refusal } from '../miner-error.ts';

export type JobExpectation = {
  readonly network: NetworkName;
  /** Payload of the address that every job must pay. */
  readonly payout: Bytes;
  /** Whose address that is, in words for the user. */
  readonly payee: 'your address' | 'the address that the pool named' | 'the address of --expect-payout';
};

/**
 * The address that the jobs of a session must pay: the pinned one if there is one; otherwise the pool's own from the
 * subscribe answer; on a bridge, which names none, the miner's.
 */
export function expectationOf(session: {
  readonly network: NetworkName;
  readonly own: Bytes;
  /** The network that the server named. */
  readonly named: number;
  readonly pool: { readonly address: string } | null;
  readonly pinned: Bytes | undefined;
}): JobExpectation | Refusal {
  const { network, own, named, pool, pinned } = session;
  if (named !== NETWORKS[network].id)
    return refusal(
      'pool_network',
      `the server is on ${NETWORK_NAMES[named - 1] ?? 'an unknown network'}, your address is of ${network}`,
    );
  if (pinned !== undefined) return { network, payout: pinned, payee: 'the address of --expect-payout' };
  if (pool === null) return { network, payout: own, payee: 'your address' };
  try {
    return { network, payout: parseAddress(pool.address, network).payload, payee: 'the address that the pool named' };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return refusal('job_payout_unknown', `the pool named an address that cannot be read: ${error.message}`);
  }
}

/** Far beyond any chain's age: 10,000 epochs of 30 days. Such a height is false. */
const LAST_PLAUSIBLE_EPOCH = 10_000;

/** The form of a job, including its seed, was checked by the decoder; these checks depend on the miner. */
export function checkJob(job: Job, expected: JobExpectation): Refusal | undefined {
  const header = decodeHeader(job.header);
  const network = NETWORKS[expected.network];
  if (header.networkId !== network.id)
    return refusal('job_network', `the job is of network ${header.networkId}, this miner mines ${network.name}`);
  if (header.target === 0n || job.shareTarget === 0n)
    return refusal('job_target_zero', 'a target of zero can never be met');
  if (job.shareTarget < header.target)
    return refusal('job_share_target', 'the share target is harder than the block target: blocks would be lost');
  if (!equalBytes(job.payout, expected.payout) || !headerPays(job.header, job.payout, job.extranonce))
    return refusal('job_pays_other', `the job does not pay ${expected.payee}`);
  return checkEpoch(job, header.anchorHeight, expected.network);
}

/** A farm's counter never goes back, so a pool must not use it up. */
export const checkGeneration = ({ firstGeneration }: FarmJob): Refusal | undefined =>
  firstGeneration > LAST_FIRST_GENERATION
    ? refusal('job_generation', `generation ${firstGeneration} leaves too few for the rigs`)
    : undefined;

function checkEpoch(job: Job, anchorHeight: number, network: NetworkName): Refusal | undefined {
  // A development chain may have shorter epochs, down to one cut; its length is not on the wire.
  const plausible =
    network === 'development'
      ? job.epoch >= powEpoch(anchorHeight) && job.epoch <= anchorHeight
      : job.epoch === powEpoch(anchorHeight) && job.epoch <= LAST_PLAUSIBLE_EPOCH;
  if (!plausible)
    return refusal(
      'job_epoch',
      `epoch ${job.epoch} does not belong to height ${anchorHeight} (${POW_EPOCH_CUTS} cuts an epoch)`,
    );
  return undefined;
}
