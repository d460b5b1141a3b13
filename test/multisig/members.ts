/** Members of multisig addresses with real keys, and transactions that they sign: as they should, or as a test says. */

import type { Chain, UnspentOutput } from '../../node/full-node.ts';
import { type DevelopmentKey, developmentKey } from '../../node/genesis/development.ts';
import type { CutEffects } from '../../node/ledger/effects.ts';
import { signMessage, verifyMessage } from '../../node/ml-dsa.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { bondedBy, encodeOperation, type StakingOperation } from '../../protocol/staking/operation.ts';
import { massOf, minimumFee } from '../../protocol/transactions/fee.ts';
import {
  type MultisigDescriptor,
  multisigAddressPayload,
  multisigDescriptor,
} from '../../protocol/transactions/multisig.ts';
import {
  type MultisigPackage,
  type MultisigProfile,
  newPackage,
  packageMessages,
  withSignatures,
} from '../../protocol/transactions/multisig-package.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { multisigShape } from '../../protocol/transactions/witness.ts';
import { type Bed, createdFor } from '../node/bed.ts';

export type Group = {
  readonly descriptor: MultisigDescriptor;
  readonly address: Bytes;
  /** In the order of the descriptor. */
  readonly members: readonly DevelopmentKey[];
};

export function groupOf(threshold: 2 | 3, name = 'group'): Group {
  const keys = Array.from({ length: threshold === 2 ? 3 : 5 }, (_, i) => developmentKey(`${name} ${i}`));
  const descriptor = multisigDescriptor(
    threshold,
    keys.map(({ publicKey }) => publicKey),
  );
  const members = descriptor.keys.map((key) => keys.find((one) => equalBytes(one.publicKey, key)) as DevelopmentKey);
  return { descriptor, address: multisigAddressPayload(descriptor), members };
}

export type Proposal = {
  readonly profile?: MultisigProfile;
  readonly fee?: bigint;
  readonly operation?: StakingOperation;
};

/** What is left after the outputs and the fee goes back to the group. */
export function proposal(
  chain: Pick<Chain, 'chainId' | 'head'>,
  { descriptor, address }: Group,
  spends: readonly Pick<UnspentOutput, 'outpoint' | 'amount'>[],
  outputs: readonly Output[],
  { profile = 'multisig_inline', fee, operation }: Proposal = {},
): MultisigPackage {
  const encoded = operation && encodeOperation(operation);
  const shape = multisigShape(profile, descriptor.threshold);
  const mass = massOf({
    witnesses: Array(spends.length + (encoded ? 1 : 0)).fill(shape),
    inputs: spends.length,
    outputs: outputs.length + 1,
    payloadBytes: 0,
    ...(encoded && { operationBytes: encoded.data.length }),
  });
  let left = -(fee ?? minimumFee(mass)) - bondedBy(operation);
  for (const { amount } of spends) left += amount;
  for (const { amount } of outputs) left -= amount;
  return newPackage({
    profile,
    network: 'development',
    body: {
      chainId: chain.chainId,
      validFromHeight: 0,
      validUntilHeight: chain.head().height + 1_000,
      inputs: spends.map(({ outpoint }) => outpoint),
      outputs: [...outputs, { address, amount: left }],
      payload: new Uint8Array(0),
      ...(encoded && { operation: encoded }),
    },
    amounts: spends.map(({ amount }) => amount),
    descriptor,
  });
}

export const signaturesBy = (of: MultisigPackage, key: DevelopmentKey): Bytes[] =>
  packageMessages(of).map((message) => signMessage(key.privateKey, message));

export const signedBy = (of: MultisigPackage, ...keys: readonly DevelopmentKey[]): MultisigPackage =>
  keys.reduce((all, key) => withSignatures(all, key.publicKey, signaturesBy(all, key), verifyMessage), of);

const miner = developmentKey('miner').address;

export async function mined(bed: Bed): Promise<CutEffects> {
  await bed.mine(miner);
  return await bed.seal();
}

/** Outputs of ten coins for an address, from the treasury. */
export async function funded(bed: Bed, address: Bytes, outputs = 1, from = 0): Promise<UnspentOutput[]> {
  const paid = Array.from({ length: outputs }, () => ({ address, amount: 1_000_000_000n }));
  await bed.pay([bed.treasury(from)], paid);
  return createdFor(await mined(bed), address);
}

/** `accepted`, or the code of the refusal. */
export async function send(bed: Bed, wire: Bytes): Promise<string> {
  const submission = await bed.node.submitTransaction(wire);
  return submission.status === 'refused' ? submission.error.code : submission.status;
}
