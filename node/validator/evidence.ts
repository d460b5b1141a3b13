/**
 * Submits evidence to the chain (consensus rule 10): two votes of one member for the same height, round and kind, as a
 * transaction paid by this validator's fee key. It is sent again until the member is slashed: a cut may leave it out,
 * and another validator's evidence may come first.
 */
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { Evidence } from '../../protocol/staking/operation.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { FullNode } from '../full-node.ts';
import {
  fundedWire,
  type HeartbeatDependencies,
  type HeartbeatFees,
  heartbeatFee,
  heartbeatTransaction,
} from './heartbeats.ts';

export type EvidenceDependencies = Pick<HeartbeatDependencies, 'unspent'> & {
  readonly node: FullNode;
  readonly fees: Pick<HeartbeatFees, 'key' | 'maxFeeAtoms' | 'feePerMass'>;
  readonly log: Logger;
};

/** One is enough for a validator, and a committee has no more members. */
const MAX_WAITING = 64;
/** Evidence in no cut after this many cuts is sent again, if it is not still waiting. */
const AGAIN_CUTS = 16;

/** It can no longer be in a cut. */
const OVER: ReadonlySet<string> = new Set(['evidence_expired', 'evidence_key_unknown']);
/** Not an error: it already waits, is done, or becomes valid with the next cut. */
const PASSING: ReadonlySet<string> = new Set(['operation_conflict', 'validator_slashed', 'evidence_early']);

export class EvidenceDesk {
  readonly #with: EvidenceDependencies;
  readonly #waiting = new Map<string, { readonly evidence: Evidence; sentAt: number | undefined }>();
  #sending: Promise<void> | undefined;
  #stopped = false;

  constructor(dependencies: EvidenceDependencies) {
    this.#with = dependencies;
  }

  add(evidence: Evidence): void {
    const name = toHex(evidence.validator);
    if (!this.#waiting.has(name) && this.#waiting.size < MAX_WAITING)
      this.#waiting.set(name, { evidence, sentAt: undefined });
  }

  /** After every cut; one at a time. */
  async tick(): Promise<void> {
    if (this.#stopped || this.#sending !== undefined) return;
    this.#sending = this.#sendAll();
    try {
      await this.#sending;
    } finally {
      this.#sending = undefined;
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#sending?.catch(() => undefined);
  }

  async #sendAll(): Promise<void> {
    const { node } = this.#with;
    for (const [name, waiting] of this.#waiting) {
      const { height } = node.chain.head();
      const isSlashed = (node.chain.staking().validator(waiting.evidence.validator)?.slashHeight ?? 0) !== 0;
      if (isSlashed) this.#waiting.delete(name);
      else if (waiting.sentAt === undefined || height >= waiting.sentAt + AGAIN_CUTS)
        if (await this.#send(waiting.evidence)) waiting.sentAt = height;
    }
  }

  /** Whether it is pending, or cannot be sent yet. */
  async #send(evidence: Evidence): Promise<boolean> {
    const { node, fees, log } = this.#with;
    const fields = { validator: evidence.validator as Bytes };
    if (heartbeatFee(evidence, true, fees.feePerMass) > fees.maxFeeAtoms) {
      log.warn('evidence exceeds configured fee cap', fields);
      return true;
    }
    const { feePerMass, key } = fees;
    const wire = await fundedWire(
      this.#with,
      key.address,
      (spend) => heartbeatTransaction(node.chain, evidence, key, spend, { key, feePerMass }),
      () => this.#stopped,
    );
    if (wire === undefined) {
      log.warn('cannot fund evidence', fields);
      return true;
    }
    const outcome = await node.submitTransaction(wire);
    if (outcome.status !== 'refused') {
      log.warn('evidence sent: a validator voted twice', fields);
      return true;
    }
    const { code } = outcome.error;
    if (!PASSING.has(code)) log.warn('evidence was refused', { ...fields, code });
    if (OVER.has(code)) this.#waiting.delete(toHex(evidence.validator));
    return code !== 'evidence_early';
  }
}
