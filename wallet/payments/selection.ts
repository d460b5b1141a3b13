/**
 * Selects the outputs that a payment spends (docs/wallet.md, Coin selection). Pure: the same outputs and the same
 * question give the same plan. One output that covers everything is best (one signature); otherwise the largest first,
 * at most eight.
 */
import { massOf, minimumFee } from '../../protocol/transactions/fee.ts';
import { MAX_INPUTS, type SingleWitness } from '../../protocol/transactions/transaction.ts';
import type { OwnedOutput } from '../state/records.ts';
import type { SortedOutputs } from '../state/sorted-outputs.ts';

export type Profile = SingleWitness['profile'];

export type Ask = {
  readonly amounts: readonly bigint[];
  readonly payloadBytes: number;
  readonly feePerMass: bigint;
  /** The fee comes out of the amounts, in equal parts, the first paying the odd atoms. */
  readonly subtractFee: boolean;
  readonly profileOf: (output: OwnedOutput) => Profile;
  readonly operation?: OperationSize | undefined;
};

/** What a staking operation adds to a transaction: stake beside the recipients, its bytes, and the witness of its owner. */
export type OperationSize = { readonly bonded: bigint; readonly bytes: number; readonly profile: Profile };

export type Plan = {
  readonly inputs: readonly OwnedOutput[];
  readonly profiles: readonly Profile[];
  /** What each recipient gets, in the order of the question. */
  readonly amounts: readonly bigint[];
  /** Zero when no change output is made. */
  readonly change: bigint;
  readonly fee: bigint;
  readonly mass: number;
};

export type NoPlan =
  | { readonly refusal: 'insufficient_funds'; readonly needed: bigint }
  | { readonly refusal: 'too_many_outputs'; readonly needed: bigint; readonly reachable: bigint }
  | { readonly refusal: 'amount_below_fee'; readonly needed: bigint };

const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, amount) => total + amount, 0n);

/** What the inputs must cover beside the fee. */
export const wantedOf = ({ amounts, operation }: Pick<Ask, 'amounts' | 'operation'>): bigint =>
  sum(amounts) + (operation?.bonded ?? 0n);

/** A change output must be worth more than the fee of spending it once its key is known to the chain. */
export const leastChange = (feePerMass: bigint): bigint => minimumFee(52 + 1 + 3309, feePerMass);

/** `profiles` are those of the inputs. */
export function feeOf(
  { payloadBytes, feePerMass, operation }: Pick<Ask, 'payloadBytes' | 'feePerMass' | 'operation'>,
  profiles: readonly Profile[],
  outputs: number,
) {
  const plain = { witnesses: profiles, inputs: profiles.length, outputs, payloadBytes };
  const mass = massOf(
    operation === undefined
      ? plain
      : { ...plain, witnesses: [...profiles, operation.profile], operationBytes: operation.bytes },
  );
  return { mass, fee: minimumFee(mass, feePerMass) };
}

/** The plan with exactly these inputs, or undefined when they do not cover it. */
export function planWith(inputs: readonly OwnedOutput[], ask: Ask): Plan | undefined {
  const profiles = inputs.map(ask.profileOf);
  const recipients = ask.amounts.length;
  const wanted = wantedOf(ask);
  const held = inputs.reduce((total, input) => total + input.amount, 0n);
  const bare = feeOf(ask, profiles, recipients);
  const changed = feeOf(ask, profiles, recipients + 1);
  if (ask.subtractFee) {
    if (held < wanted) return undefined;
    const over = held - wanted;
    if (over >= leastChange(ask.feePerMass)) {
      const amounts = lessFee(ask.amounts, changed.fee);
      return amounts && { inputs, profiles, amounts, change: over, ...changed };
    }
    // A surplus covers the fee first, so that recipients do not pay more than needed.
    const amounts = lessFee(ask.amounts, bare.fee > over ? bare.fee - over : 0n);
    return amounts && { inputs, profiles, amounts, change: 0n, mass: bare.mass, fee: held - sum(amounts) };
  }
  const change = held - wanted - changed.fee;
  if (change >= leastChange(ask.feePerMass)) return { inputs, profiles, amounts: ask.amounts, change, ...changed };
  if (held < wanted + bare.fee) return undefined;
  return { inputs, profiles, amounts: ask.amounts, change: 0n, mass: bare.mass, fee: held - wanted };
}

function lessFee(amounts: readonly bigint[], fee: bigint): readonly bigint[] | undefined {
  const count = BigInt(amounts.length);
  const less = amounts.map((amount, i) => amount - fee / count - (i === 0 ? fee % count : 0n));
  return less.every((amount) => amount > 0n) ? less : undefined;
}

/** Always includes this output: its address has to sign. */
export function selectWith(first: OwnedOutput, available: SortedOutputs, ask: Ask): Plan | NoPlan {
  const inputs = [first];
  for (let i = 1; ; i++) {
    const plan = planWith(inputs, ask);
    if (plan !== undefined) return plan;
    const next = available.at(-i);
    if (inputs.length === MAX_INPUTS || next === undefined) break;
    if (next.key !== first.key) inputs.push(next);
  }
  return { refusal: 'insufficient_funds', needed: wantedOf(ask) + feeOf(ask, inputs.map(ask.profileOf), 1).fee };
}

export function select(available: SortedOutputs, ask: Ask): Plan | NoPlan {
  const wanted = wantedOf(ask);
  const recipients = ask.amounts.length;
  const least = ask.subtractFee ? wanted : wanted + feeOf(ask, ['referenced'], recipients).fee;
  // The fee depends on the key of the output, so the first large enough one may be slightly too small: continue from
  // there.
  for (let from = least; ; ) {
    const single = available.atLeast(from);
    if (single === undefined) break;
    const plan = planWith([single], ask);
    if (plan !== undefined) return plan;
    if (ask.subtractFee) return { refusal: 'amount_below_fee', needed: feeOf(ask, ['inline'], recipients).fee };
    from = single.amount + 1n;
    if (from > least + feeOf(ask, ['inline'], recipients + 1).fee) break;
  }
  const inputs: OwnedOutput[] = [];
  for (let i = 1; i <= Math.min(MAX_INPUTS, available.size); i++) {
    inputs.push(available.at(-i) as OwnedOutput);
    const plan = planWith(inputs, ask);
    if (plan !== undefined) return plan;
  }
  const reachable = inputs.reduce((total, input) => total + input.amount, 0n);
  const needed = ask.subtractFee ? wanted : wanted + feeOf(ask, inputs.map(ask.profileOf), recipients).fee;
  if (ask.subtractFee && reachable >= wanted) return { refusal: 'amount_below_fee', needed };
  if (inputs.length === MAX_INPUTS && available.total >= needed)
    return { refusal: 'too_many_outputs', needed, reachable };
  return { refusal: 'insufficient_funds', needed };
}
