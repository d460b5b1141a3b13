/**
 * Heartbeats of the validators of this node (specification: Validator liveness): one per epoch each. Validators inside
 * a node pay with their own coins, which are their stake rewards; a separate validator has a fee key, with a fee limit.
 * Without coins there is no heartbeat; if no validator has coins, the committee stays as it is (ledger rule 63).
 */
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { type Evidence, encodeOperation, type Heartbeat } from '../../protocol/staking/operation.ts';
import { massOf, minimumFee } from '../../protocol/transactions/fee.ts';
import {
  encodeTransaction,
  encodeTransactionBody,
  type Outpoint,
  operationMessage,
  spendMessage,
  type TransactionBody,
} from '../../protocol/transactions/transaction.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Chain, FullNode, UnspentOutput } from '../full-node.ts';
import type { DevelopmentKey } from '../genesis/development.ts';
import { asOf, isActive } from '../ledger/staking/validator.ts';
import { signMessage } from '../ml-dsa.ts';

/** The payer of a validator's heartbeats, if not its consensus key. */
export type HeartbeatFees = {
  /** It stays the same when the consensus key is rotated. */
  readonly validatorId: Bytes;
  readonly key: DevelopmentKey;
  readonly maxFeeAtoms: bigint;
  /** Default: the network's minimum. */
  readonly feePerMass?: bigint | undefined;
};

export type HeartbeatDependencies = {
  readonly node: FullNode;
  /** Consensus keys of this node; each pays for its own heartbeats. */
  readonly keys: readonly DevelopmentKey[];
  /** Payer for the only key, if it does not pay itself. */
  readonly fees?: HeartbeatFees | undefined;
  /** A page of the unspent outputs of an address, after an output if one is given; an empty page is the end. */
  unspent(address: Bytes, after: Outpoint | undefined): Promise<readonly Omit<UnspentOutput, 'address'>[]>;
  readonly log: Logger;
};

/** A heartbeat in no cut after this many cuts is sent again, if it is not still waiting. */
const AGAIN_CUTS = 16;

/** An epoch ended meanwhile, or another heartbeat came first: not an error. */
const OVERTAKEN: ReadonlySet<string> = new Set(['operation_conflict', 'heartbeat_epoch', 'heartbeat_repeated']);

/** `key` signs the operation and, without a separate payer, pays. Undefined if the output is too small. */
export function heartbeatTransaction(
  chain: Pick<Chain, 'chainId' | 'head'>,
  heartbeat: Heartbeat | Evidence,
  key: DevelopmentKey,
  spend: UnspentOutput,
  fees?: Pick<HeartbeatFees, 'key' | 'feePerMass'>,
): Uint8Array<ArrayBuffer> | undefined {
  const operation = encodeOperation(heartbeat);
  const payer = fees?.key ?? key;
  const isInline = payer !== key || heartbeat.name === 'evidence';
  const change = spend.amount - heartbeatFee(heartbeat, isInline, fees?.feePerMass);
  if (change < 1n) return undefined;
  const height = chain.head().height;
  const body: TransactionBody = {
    chainId: chain.chainId,
    validFromHeight: 0,
    validUntilHeight: height + 1_000,
    inputs: [spend.outpoint],
    outputs: [{ address: payer.address, amount: change }],
    payload: new Uint8Array(0),
    operation,
  };
  const bytes = encodeTransactionBody(body);
  const signature = signMessage(key.privateKey, operationMessage(bytes));
  return encodeTransaction({
    body,
    witnesses: [
      {
        profile: 'inline',
        publicKey: payer.publicKey,
        signature: signMessage(payer.privateKey, spendMessage(bytes, 0, spend)),
      },
      // The ledger knows the consensus key; any other key must be included.
      isInline ? { profile: 'inline', publicKey: key.publicKey, signature } : { profile: 'referenced', signature },
    ],
  });
}

/** Its fee in atoms; higher if the key of the operation's signature must be included. */
export function heartbeatFee(heartbeat: Heartbeat | Evidence, isInline: boolean, feePerMass?: bigint): bigint {
  const mass = massOf({
    witnesses: ['inline', isInline ? 'inline' : 'referenced'],
    inputs: 1,
    outputs: 1,
    payloadBytes: 0,
    operationBytes: encodeOperation(heartbeat).data.length,
  });
  return minimumFee(mass, feePerMass);
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

  /** Called before the node closes: pending reads must not outlive the store. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#beating?.catch(() => undefined);
  }

  async #beat(key: DevelopmentKey): Promise<void> {
    const { node, log } = this.#dependencies;
    const { epoch, validator: find } = node.chain.staking();
    const { height } = node.chain.head();
    const sent = this.#sent.get(key);
    if (sent?.epoch === epoch && height < sent.height + AGAIN_CUTS) return;
    const { fees } = this.#dependencies;
    const id = fees?.validatorId ?? validatorId(key.publicKey);
    const record = find(id);
    // A rotated key takes over with its epoch, whether or not the record was written since. The holder of the other key
    // sends none.
    const validator = record && asOf(record, epoch);
    if (validator === undefined || !isActive(validator) || !equalBytes(validator.key, key.publicKey)) return;
    if (validator.heartbeatEpoch >= epoch) return;
    this.#sent.set(key, { epoch, height });
    const heartbeat = { name: 'heartbeat', validator: id, epoch } as const;
    const isFirst = sent?.epoch !== epoch;
    const fee = fees && heartbeatFee(heartbeat, true, fees.feePerMass);
    if (fee !== undefined && fee > (fees as HeartbeatFees).maxFeeAtoms) {
      if (isFirst)
        log.warn('validator heartbeat exceeds configured fee cap', {
          validator: id,
          epoch,
          fee_atoms: fee,
          advice:
            'raise validator.heartbeat.max_fee_atoms to the fee or more: without heartbeats the seat is lost after two epochs',
        });
      return;
    }
    const wire = await this.#wire(key, heartbeat);
    if (wire === undefined) {
      if (isFirst) this.#tellUnfunded(id, epoch);
      return;
    }
    const outcome = await node.submitTransaction(wire);
    if (outcome.status === 'refused' && !OVERTAKEN.has(outcome.error.code))
      log.warn('a heartbeat was refused', { validator: id, epoch, code: outcome.error.code });
  }

  /** Validators inside a node pay from their stake rewards. */
  #tellUnfunded(validator: Bytes, epoch: number): void {
    const { node, fees, log } = this.#dependencies;
    const message = 'cannot fund validator heartbeat';
    if (fees === undefined) log.info(message, { validator, epoch });
    else
      log.warn(message, {
        validator,
        epoch,
        address: formatAddress(fees.key.address, node.chain.genesis.network),
        advice: 'send coins to this address: without heartbeats the seat is lost after two epochs',
      });
  }

  #wire(key: DevelopmentKey, heartbeat: Heartbeat): Promise<Uint8Array | undefined> {
    const { node, fees } = this.#dependencies;
    const { address } = fees?.key ?? key;
    return fundedWire(
      this.#dependencies,
      address,
      (spend) => heartbeatTransaction(node.chain, heartbeat, key, spend, fees),
      () => this.#stopped,
    );
  }
}

/** Strangers can send dust, so several pages of outputs may have to be read. The largest output of a page pays. */
export async function fundedWire(
  { node, unspent }: Pick<HeartbeatDependencies, 'node' | 'unspent'>,
  address: Bytes,
  make: (spend: UnspentOutput) => Uint8Array | undefined,
  isStopped: () => boolean,
): Promise<Uint8Array | undefined> {
  for (let after: Outpoint | undefined; !isStopped(); ) {
    const page = await unspent(address, after);
    const free = page.filter(({ outpoint }) => node.mempool.spender(outpoint) === undefined);
    const [largest] = free.sort((a, b) => (a.amount < b.amount ? 1 : a.amount > b.amount ? -1 : 0));
    const wire = largest === undefined ? undefined : make({ ...largest, address });
    if (wire !== undefined) return wire;
    after = page.at(-1)?.outpoint;
    if (after === undefined) break;
  }
  return undefined;
}
