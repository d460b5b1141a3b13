/** What the fake node says of outputs; without proofs, because the wallet believes its node. */
import type { OutpointDocument } from '../../protocol/api/values.ts';
import { outputKey } from '../../wallet/state/records.ts';

export function outpointDocument(key: string): OutpointDocument {
  const [transaction_id = '', index] = key.split(':');
  return { transaction_id, output_index: Number(index) };
}

export const utxoDocument = <S>(
  key: string,
  { address, amount, source, height }: { address: string; amount: bigint; source: S; height: number },
) => ({ outpoint: outpointDocument(key), amount: amount.toString(), address, source, finalized_height: height });

type Outputs = ReadonlyMap<string, { readonly address: string; readonly amount: bigint }>;

export const outputProofs = <C>(
  outputs: Outputs,
  outpoints: readonly OutpointDocument[],
  at: { height: number; cut: C },
) => ({
  api_version: 1 as const,
  finalized_height: at.height,
  cut: at.cut,
  state_hex: '',
  proofs: outpoints.map((outpoint) => {
    const found = outputs.get(outputKey(outpoint.transaction_id, outpoint.output_index));
    const output = found === undefined ? null : { address: found.address, amount: found.amount.toString() };
    return { outpoint, output, proof_hex: '' };
  }),
});
