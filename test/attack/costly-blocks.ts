/** Blocks whose only purpose is that others check signatures: they execute nothing and are paid all the same. */
import type { Chain, UnspentOutput } from '../../node/full-node.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { decodeTransaction, encodeTransaction, type SingleWitness } from '../../protocol/transactions/transaction.ts';
import { payment } from '../node/bed.ts';

/** As many of eight inputs as a body holds. */
export const PER_BLOCK = 38;

/**
 * Transactions over the same eight outputs of the treasury, whose key is registered: seven good signatures, and in the
 * place of the last a copy of the one before, which fails only at the end of its check. `from`: no two are the same.
 */
export const falseEighths = (
  chain: Pick<Chain, 'chainId' | 'head'>,
  spends: readonly UnspentOutput[],
  from: number,
  count = PER_BLOCK,
): Bytes[] =>
  Array.from({ length: count }, (_, i) => {
    const wire = payment(chain, spends, [], { profile: 'referenced', validUntil: 1_000_000 + from + i });
    const { body, witnesses } = decodeTransaction(wire);
    const good = witnesses.slice(0, -1) as SingleWitness[];
    const { signature } = good.at(-1) as SingleWitness;
    return encodeTransaction({ body, witnesses: [...good, { profile: 'referenced', signature }] });
  });
