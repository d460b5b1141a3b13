/**
 * A template as the bridge uses it: taken from a node's answer and checked before anyone hashes on it. It decodes, its
 * roots follow from its body, its target and anchor make sense, its epoch is that of its anchor and its dataset seed the network's own.
 */
import { MAX_SUPPLY } from '../../protocol/amount.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { merkleLeaf, merkleRootOfHashes } from '../../protocol/crypto/merkle.ts';
import { datasetSeed } from '../../protocol/crypto/pow.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { type Body, bodyBytes, MAX_BODY_BYTES, parentsRoot } from '../../protocol/ledger/body.ts';
import { decodeHeader, type Header, NONCE_OFFSET, registrationWindowEnd } from '../../protocol/ledger/header.ts';
import { headerPays } from '../../protocol/ledger/reward.ts';
import { MAX_EXTRANONCE } from '../../protocol/ledger/tag.ts';
import { timestampFault } from '../../protocol/ledger/timestamp.ts';
import { type Network, POW_EPOCH_CUTS, powEpoch } from '../../protocol/network.ts';
import type { JobTemplate } from '../session/job-book.ts';
import type { OriginJob } from './origin-job.ts';

/** What a template is made from, as a node gave it, unchecked. */
export type TemplateAnswer = {
  readonly header: Bytes;
  /** When the anchor was finalized, where the node says it. */
  readonly anchorMillis: number | undefined;
  readonly body: Body;
  readonly fees: bigint;
  readonly pow: { readonly epoch: number; readonly seed: Bytes; readonly epochLength: number | undefined };
};

export type CheckedTemplate = JobTemplate & {
  readonly anchorHeight: number;
  readonly header: Header;
  /** 312 bytes, nonce zero, reward root of the node's own choice: each connection's own replaces it. */
  readonly headerBytes: Bytes;
  /** Up to a mebibyte; only what a block can still need is kept of it (template-store.ts). */
  readonly body: Body;
  /** Hashes of its transactions, which the root was computed from. */
  readonly leaves: readonly Bytes[];
  readonly epoch: number;
  /** Cuts of an epoch, where the node says it: the next dataset is prepared ahead of time. */
  readonly epochLength: number | undefined;
  readonly fees: bigint;
  /** Where it is another server's job, and not a node's template. */
  readonly origin?: OriginJob;
};

export type TemplateCheck =
  | { readonly ok: true; readonly template: CheckedTemplate }
  | { readonly ok: false; readonly reason: string };

const refuse = (reason: string): TemplateCheck => ({ ok: false, reason });

export type KnownChain = { readonly network: Network; readonly headHeight: number; readonly nowMillis: number };

/** This clock and the node's may differ by as much. */
const CLOCK_SLACK_MILLIS = 60_000;

/**
 * With a valid seed of the wrong epoch, all miners would hash on a dataset whose blocks no node accepts. The epoch
 * follows from the anchor's height; only a development network may have epochs of another length, and then states it.
 */
function epochFault(
  { name }: Network,
  anchorHeight: number,
  { epoch, epochLength = POW_EPOCH_CUTS }: { epoch: number; epochLength: number | undefined },
): string | undefined {
  if (!Number.isSafeInteger(epochLength) || epochLength < 1)
    return 'the length of an epoch is not a valid number of cuts';
  if (name !== 'development' && epochLength !== POW_EPOCH_CUTS)
    return `an epoch has ${POW_EPOCH_CUTS} cuts on ${name}, not ${epochLength}`;
  const due = powEpoch(anchorHeight, epochLength);
  return epoch === due ? undefined : `work on anchor ${anchorHeight} is of epoch ${due}, not ${epoch}`;
}

export function checkTemplate(answer: TemplateAnswer, chain: KnownChain): TemplateCheck {
  try {
    const headerBytes = answer.header;
    const header = decodeHeader(headerBytes);
    const { body } = answer;
    if (header.networkId !== chain.network.id) return refuse(`template is of network ${header.networkId}`);
    if (bodyBytes(body) - body.extranonce.length + MAX_EXTRANONCE > MAX_BODY_BYTES)
      return refuse('the body leaves no room for an extranonce');
    if (headerBytes.subarray(NONCE_OFFSET).some((byte) => byte !== 0)) return refuse('the nonce is not zero');
    if (header.target === 0n) return refuse('the target is zero');
    if (registrationWindowEnd(header.anchorHeight) <= chain.headHeight)
      return refuse(`anchor ${header.anchorHeight} is too old: the head is ${chain.headHeight}`);
    // The node may have advanced by a few cuts since it reported its head.
    if (header.anchorHeight > registrationWindowEnd(chain.headHeight))
      return refuse(`anchor ${header.anchorHeight} is not there yet: the head is ${chain.headHeight}`);
    const wrongTime = timestampFault(header.timestampMillis, {
      anchorMillis: answer.anchorMillis ?? 0,
      nowMillis: chain.nowMillis,
      aheadMillis: CLOCK_SLACK_MILLIS,
    });
    if (wrongTime === 'too_early') return refuse("the timestamp is not after the anchor's");
    if (wrongTime === 'too_late')
      return refuse('the timestamp is more than a minute ahead of this clock and of the anchor');
    if (!equalBytes(header.parentsRoot, parentsRoot(body))) return refuse('parents_root does not follow from the body');
    const leaves = body.transactions.map(merkleLeaf);
    if (!equalBytes(header.transactionsRoot, merkleRootOfHashes(leaves)))
      return refuse('transactions_root does not follow from the body');
    if (!headerPays(headerBytes, body.payout, body.extranonce))
      return refuse('reward_root does not follow from the body');
    if (answer.fees > (leaves.length === 0 ? 0n : MAX_SUPPLY)) return refuse('the fees are more than there can be');
    const { epoch, seed, epochLength } = answer.pow;
    if (!Number.isInteger(epoch) || epoch < 0 || !equalBytes(seed, datasetSeed(chain.network.id, epoch)))
      return refuse(`the dataset seed of epoch ${epoch} is not the network's`);
    const misfit = epochFault(chain.network, header.anchorHeight, { epoch, epochLength });
    if (misfit !== undefined) return refuse(misfit);
    return {
      ok: true,
      template: {
        header,
        headerBytes,
        body,
        leaves,
        epoch,
        epochLength,
        fees: answer.fees,
        anchorHeight: header.anchorHeight,
        registrationWindowEnd: registrationWindowEnd(header.anchorHeight),
      },
    };
  } catch (error) {
    if (error instanceof ProtocolError) return refuse(error.message);
    throw error;
  }
}
