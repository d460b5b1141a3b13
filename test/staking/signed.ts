/** Operations as people send them: built, paid for and signed with real keys. */

import type { Chain, UnspentOutput } from '../../node/full-node.ts';
import type { DevelopmentKey } from '../../node/genesis/development.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { type Vote, voteMessage } from '../../protocol/consensus/vote.ts';
import { encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { endpointMessage, possessionMessage } from '../../protocol/staking/names.ts';
import {
  bondedBy,
  type Evidence,
  encodeOperation,
  type Register,
  type Rotate,
  type StakingOperation,
} from '../../protocol/staking/operation.ts';
import { massOf, minimumFee } from '../../protocol/transactions/fee.ts';
import {
  encodeTransaction,
  encodeTransactionBody,
  operationMessage,
  type SingleWitness,
  spendMessage,
  type TransactionBody,
  type Witness,
} from '../../protocol/transactions/transaction.ts';

export type Payer = { readonly key: DevelopmentKey; readonly spend: UnspentOutput };
export type Signing = {
  readonly signer: DevelopmentKey;
  readonly profile?: SingleWitness['profile'];
  readonly feePerMass?: bigint;
  readonly fee?: bigint;
};

export function operationTransaction(
  chain: Pick<Chain, 'chainId' | 'head'>,
  { key, spend }: Payer,
  operation: StakingOperation,
  { signer, profile = 'inline', feePerMass, fee }: Signing,
): Uint8Array<ArrayBuffer> {
  const encoded = encodeOperation(operation);
  const mass = massOf({
    witnesses: ['inline', profile],
    inputs: 1,
    outputs: 1,
    payloadBytes: 0,
    operationBytes: encoded.data.length,
  });
  const body: TransactionBody = {
    chainId: chain.chainId,
    validFromHeight: 0,
    validUntilHeight: chain.head().height + 1_000,
    inputs: [spend.outpoint],
    outputs: [
      { address: key.address, amount: spend.amount - bondedBy(operation) - (fee ?? minimumFee(mass, feePerMass)) },
    ],
    payload: new Uint8Array(0),
    operation: encoded,
  };
  const bytes = encodeTransactionBody(body);
  const witness = (by: DevelopmentKey, message: Uint8Array, how: SingleWitness['profile']): Witness => {
    const signature = signMessage(by.privateKey, message);
    return how === 'inline' ? { profile: how, publicKey: by.publicKey, signature } : { profile: how, signature };
  };
  return encodeTransaction({
    body,
    witnesses: [
      witness(key, spendMessage(bytes, 0, spend), 'inline'),
      witness(signer, operationMessage(bytes), profile),
    ],
  });
}

export const anEndpoint = (first: number): Uint8Array<ArrayBuffer> =>
  encodeEndpoint({ overlayKey: new Uint8Array(32).fill(first), routes: [] });

export const registration = (
  chain: Pick<Chain, 'chainId'>,
  consensus: DevelopmentKey,
  owner: DevelopmentKey,
  amount: bigint,
  more: Partial<Register> = {},
): Register => ({
  name: 'register',
  consensusKey: consensus.publicKey,
  possession: signMessage(consensus.privateKey, possessionMessage(chain.chainId, owner.address, consensus.publicKey)),
  owner: owner.address,
  rewardAddress: owner.address,
  amount,
  commission: 500,
  endpoint: anEndpoint(1),
  ...more,
});

export const rotation = (
  chain: Pick<Chain, 'chainId'>,
  validator: Uint8Array,
  consensus: DevelopmentKey,
  owner: DevelopmentKey,
): Rotate => ({
  name: 'rotate',
  validator,
  consensusKey: consensus.publicKey,
  possession: signMessage(consensus.privateKey, possessionMessage(chain.chainId, owner.address, consensus.publicKey)),
  endpoint: anEndpoint(2),
});

export const newEndpoint = (
  chain: Pick<Chain, 'chainId'>,
  validator: Uint8Array,
  endpoint: Uint8Array,
  consensus: DevelopmentKey,
) => ({
  name: 'endpoint' as const,
  validator,
  endpoint,
  signature: signMessage(consensus.privateKey, endpointMessage(chain.chainId, validator, endpoint)),
});

export const evidenceOf = (
  chain: Pick<Chain, 'chainId'>,
  validator: Uint8Array,
  consensus: DevelopmentKey,
  place: Pick<Vote, 'kind' | 'height' | 'round'>,
): Evidence => {
  const signed = (first: number) => {
    const vote = { ...place, cutId: new Uint8Array(48).fill(first) };
    return { vote, signature: signMessage(consensus.privateKey, voteMessage(chain.chainId, vote)) };
  };
  return { name: 'evidence', validator, votes: [signed(1), signed(2)] };
};
