/**
 * Whether the amounts of a package are those of the outputs that it spends (multisig rule 7). A signature covers only
 * the amount of its own input: from two packages of one transaction, each with a wrong amount for a different input, an
 * attacker could combine the valid signatures of both and pay a fee that no review has shown. So a wallet asks its node
 * before it signs.
 */
import { formatAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import type { MultisigPackage } from '../../protocol/transactions/multisig-package.ts';
import { isAway, type NodeClient, nodeFailure } from '../chain/node-link.ts';
import { WalletError } from '../wallet-error.ts';

/** `spent`: the node has no such output, or not any more. `not_checked`: it did not answer. */
export type AmountsState = 'checked' | 'false' | 'spent' | 'not_checked';

export async function amountsState(
  client: Pick<NodeClient, 'utxoProofs'>,
  { body, amounts, address, network }: MultisigPackage,
): Promise<AmountsState> {
  const outpoints = body.inputs.map(({ transactionId, outputIndex }) => ({
    transaction_id: toHex(transactionId),
    output_index: outputIndex,
  }));
  let proofs: Awaited<ReturnType<NodeClient['utxoProofs']>>['proofs'];
  try {
    ({ proofs } = await client.utxoProofs({ outpoints }));
  } catch (error) {
    if (isAway(error)) return 'not_checked';
    throw nodeFailure(error);
  }
  const owner = formatAddress(address, network);
  const found = outpoints.map(({ transaction_id, output_index }) =>
    proofs.find(({ outpoint }) => outpoint.transaction_id === transaction_id && outpoint.output_index === output_index),
  );
  // An answer about another output is ignored.
  if (found.some((one) => one === undefined)) return 'not_checked';
  if (found.some((one) => one?.output === null)) return 'spent';
  const isTrue = found.every((one, i) => one?.output?.address === owner && BigInt(one.output.amount) === amounts[i]);
  return isTrue ? 'checked' : 'false';
}

/** `trusted`: the caller accepts the amounts in the package if no node can be asked. A contradicting node still counts. */
export function checkAmounts(state: AmountsState, trusted: boolean): void {
  if (state === 'false')
    throw new WalletError(
      'multisig_amount_false',
      'an input does not hold the amount that the package says: the fee shown is not the one that would be paid',
    );
  if (state === 'spent')
    throw new WalletError('multisig_output_missing', 'the node has no such output: it was spent, or never was');
  if (state === 'not_checked' && !trusted)
    throw new WalletError('node_unreachable', 'the amounts of the inputs cannot be checked without a node');
}
