/**
 * Heartbeats of the validators inside this node (specification: Validator liveness): one per epoch each, paid with the validator's own coins, which are
 * its stake rewards. Without coins there is none; a chain whose validators all have none keeps its committee (ledger rule 63).
 */
import { type Bytes, equalBytes } from '../protocol/bytes.ts';
import { massOf, minimumFee } from '../protocol/fee.ts';
import { validatorId } from '../protocol/staking/names.ts';
import { encodeOperation, type Heartbeat } from '../protocol/staking/operation.ts';
import {
  encodeTransaction,
  encodeTransactionBody,
  type Outpoint,
  operationMessage,
  spendMessage,
  type TransactionBody,
} from '../protocol/transaction.ts';
import type { Logger } from '../runtime/log.ts';
import type { DevelopmentKey } from './development.ts';
import type { FullNode, UnspentOutput } from './full-node.ts';
import { isActive } from './ledger/staking/validator.ts';
import { signMessage } from './ml-dsa.ts';

export type HeartbeatDependencies = {
  readonly node: FullNode;
  /** Consensus keys that live here; each pays for its own heartbeats. */
  readonly keys: readonly DevelopmentKey[];
  /** A page of the unspent outputs of an address, those behind an output if one is named; an empty one ends them. */
  unspent(address: Bytes, after: Outpoint | undefined): Promise<readonly Omit<UnspentOutput, 'address'>[]>;
  readonly log: Logger;
};

/** A heartbeat that is in no cut after so many is sent again, if it is not still waiting. */
const AGAIN_CUTS = 16;

/** An epoch ended meanwhile, or another heartbeat was quicker: nothing is wrong. */
const OVERTAKEN: ReadonlySet<string> = new Set(['operation_conflict', 'heartbeat_epoch', 'heartbeat_repeated']);

export function heartbeatTransaction(
  node: Pick<FullNode, 'chainId' | 'head'>,
  heartbeat: Heartbeat,
  key: DevelopmentKey,
  spend: UnspentOutput,
): Uint8Array<ArrayBuffer> | undefined {
  const operation = encodeOperation(heartbeat);
  const mass = massOf({
    witnesses: ['inline', 'referenced'],
    inputs: 1,
    outputs: 1,
    payloadBytes: 0,
    operationBytes: operation.data.length,
  });
  const change = spend.amount - minimumFee(mass);
  if (change < 1n) return undefined;
  const height = node.head().height;
  const body: TransactionBody = {
    chainId: node.chainId,
    validFromHeight: 0,
    validUntilHeight: height + 1_000,
    inputs: [spend.outpoint],
    outputs: [{ address: key.address, amount: change }],
    payload: new Uint8Array(0),
    operation,
  };
  const bytes = encodeTransactionBody(body);
  const signed = (message: Bytes) => signMessage(key.privateKey, message);
  return encodeTransaction({
    body,
    witnesses: [
      { profile: 'inline', publicKey: key.publicKey, signature: signed(spendMessage(bytes, 0, spend)) },
      { profile: 'referenced', signature: signed(operationMessage(bytes)) },
    ],
  });
}

export class Heartbeats {
  readonly #dependencies: HeartbeatDependencies;
  readonly #sent = new Map<DevelopmentKey, { readonly epoch: number; readonly height: number }>();
  #beating: Promise<void> | undefined;
  #stopped = false;

  constructor(dependencies: HeartbeatDependencies) {
    this.#dependencies = dependencies;
  }

  /** After every cut; one at a time. */
  async tick(): Promise<void> {
    if (this.#stopped || this.#beating !== undefined) return;
    this.#beating = this.#beatAll();
    try {
      await this.#beating;
    } finally {
      this.#beating = undefined;
    }
  }

  async #beatAll(): Promise<void> {
    for (const key of this.#dependencies.keys) if (!this.#stopped) await this.#beat(key);
  }

  /** Before the node closes: what is being read must not outlive the store. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#beating?.catch(() => undefined);
  }

  async #beat(key: DevelopmentKey): Promise<void> {
    const { node, log } = this.#dependencies;
    const { epoch, validator: find } = node.staking();
    const { height } = node.head();
    const sent = this.#sent.get(key);
    if (sent?.epoch === epoch && height < sent.height + AGAIN_CUTS) return;
    const id = validatorId(key.publicKey);
    const validator = find(id);
    // A rotated key is not the one that lives here.
    if (validator === undefined || !isActive(validator) || !equalBytes(validator.key, key.publicKey)) return;
    if (validator.heartbeatEpoch >= epoch) return;
    this.#sent.set(key, { epoch, height });
    const wire = await this.#wire(key, { name: 'heartbeat', validator: id, epoch });
    if (wire === undefined) {
      if (sent?.epoch !== epoch) log.info('cannot fund validator heartbeat', { validator: id, epoch });
      return;
    }
    const outcome = await node.submitTransaction(wire);
    if (outcome.status === 'refused' && !OVERTAKEN.has(outcome.error.code))
      log.warn('a heartbeat was refused', { validator: id, epoch, code: outcome.error.code });
  }

  async #wire(key: DevelopmentKey, heartbeat: Heartbeat): Promise<Uint8Array | undefined> {
    const { node, unspent } = this.#dependencies;
    // Strangers can send dust: as many pages are read as it fills. Of a page the largest output pays.
    for (let after: Outpoint | undefined; !this.#stopped; ) {
      const page = await unspent(key.address, after);
      const free = page.filter(({ outpoint }) => node.mempool.spender(outpoint) === undefined);
      const [largest] = free.sort((a, b) => (a.amount < b.amount ? 1 : a.amount > b.amount ? -1 : 0));
      const wire =
        largest === undefined
          ? undefined
          : heartbeatTransaction(node, heartbeat, key, { ...largest, address: key.address });
      if (wire !== undefined) return wire;
      after = page.at(-1)?.outpoint;
      if (after === undefined) break;
    }
    return undefined;
  }
}
