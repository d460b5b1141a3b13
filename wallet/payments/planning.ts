/**
 * Plans an order (docs/wallet.md, Coin selection): whether the wallet may pay at all, which outputs the order takes and
 * its cost. Reads the book and changes nothing. Nothing in here awaits, so a caller that reserves the outputs of a plan
 * at once cannot conflict with another plan.
 */
import { formatCoins } from '../../protocol/amount.ts';
import type { Follower } from '../chain/follower.ts';
import type { OwnSpends } from '../chain/own-spends.ts';
import { changeAddress } from '../state/address-book.ts';
import type { Book } from '../state/book.ts';
import type { MoveKind, OperationRecord, OwnedOutput, Recipient, StakingKind } from '../state/records.ts';
import { SortedOutputs } from '../state/sorted-outputs.ts';
import { WalletError } from '../wallet-error.ts';
import type { Draft } from './build.ts';
import { gather, type Merge, merges, nextRound } from './compounding.ts';
import { type Ask, type Plan, type Profile, select, selectWith } from './selection.ts';

/** Transactions one sweep or compound call makes; the rest is for the next call. */
export const MAX_MOVES = 64;
/** Further behind than this the wallet's outputs are not known well enough to pay. */
const MAX_LAG = 16;

export type PlanningOptions = {
  /** How many cuts a transaction stays valid: after that its fate is known. */
  readonly validityCuts: number;
  /** A higher fee per mass from a node is refused. */
  readonly maxFeePerMass: bigint;
};

export type PlanningDependencies = {
  readonly book: Book;
  readonly follower: Follower;
  readonly ownSpends: Pick<OwnSpends, 'trouble'>;
};

export type PayOrder = {
  readonly requestId: string;
  readonly kind: 'payment' | 'burn' | StakingKind;
  readonly recipients: readonly Recipient[];
  readonly payload: Uint8Array;
  readonly subtractFee: boolean;
  readonly compoundFirst: boolean;
  /** Spends only outputs of this address, and change returns to it; without it all outputs, and the change address. */
  readonly fromAddress: string | undefined;
  /** Spends an output of this address among others: its key signs, and so says whose the payload is. */
  readonly including?: string | undefined;
  readonly operation?: OperationRecord | undefined;
  readonly params: unknown;
};

/** Moves whole outputs to one address. */
export type MoveOrder = {
  readonly requestId: string;
  readonly kind: MoveKind;
  readonly to: string;
  readonly outputs: () => readonly OwnedOutput[];
  /** A group of one is worth moving to another address, but not into itself. */
  readonly single: boolean;
  readonly most: number;
  readonly params: unknown;
};

export type Quote = {
  readonly recipients: readonly Recipient[];
  readonly fee: bigint;
  readonly feePerMass: bigint;
  readonly transactions: number;
};

/** A payment that needs its outputs merged first. */
export type Gathering = { readonly held: readonly OwnedOutput[] };

const empty = new Uint8Array(0);

/** The remedy for insufficient funds. Any address of the wallet will do, unless the order spends from only one. */
const remedy = ({ fromAddress, including }: Pick<PayOrder, 'fromAddress' | 'including'>): string => {
  const to =
    fromAddress ?? (including === undefined ? 'an address of this wallet' : `${including}, which has to sign,`);
  return `pay to ${to} first, and wait until it is final`;
};

export class Planning {
  readonly #options: PlanningOptions;
  readonly #with: PlanningDependencies;

  constructor(options: PlanningOptions, dependencies: PlanningDependencies) {
    this.#options = options;
    this.#with = dependencies;
  }

  /** What a payment would cost now. Nothing is reserved or kept. */
  quotePay(order: PayOrder): Quote {
    const ask = this.ask(order);
    const plan = this.plan(ask, order);
    const { feePerMass } = ask;
    if (!('held' in plan)) {
      const recipients = order.recipients.map(({ to }, i) => ({ to, amount: plan.amounts[i] as bigint }));
      return { recipients, fee: plan.fee, feePerMass, transactions: 1 };
    }
    const round = nextRound(plan.held, ask);
    const fee = round.reduce((total, one) => total + one.fee, 0n);
    return { recipients: order.recipients, fee, feePerMass, transactions: round.length + 1 };
  }

  quoteMove(order: MoveOrder): Quote {
    const { found, feePerMass } = this.moves(order);
    const amount = found.reduce((total, one) => total + one.amount, 0n);
    const fee = found.reduce((total, one) => total + one.fee, 0n);
    return { recipients: [{ to: order.to, amount }], fee, feePerMass, transactions: found.length };
  }

  readonly profileOf = ({ address }: Pick<OwnedOutput, 'address'>): Profile =>
    this.#with.book.address(address)?.registered === true ? 'referenced' : 'inline';

  ask(order: PayOrder): Ask {
    return this.askFor(order, this.feePerMass());
  }

  /** The selection question for an order, at a given fee. */
  askFor(
    { recipients, payload, subtractFee, operation }: Omit<PayOrder, 'requestId' | 'kind' | 'compoundFirst' | 'params'>,
    feePerMass: bigint,
  ): Ask {
    return {
      amounts: recipients.map(({ amount }) => amount),
      payloadBytes: payload.length,
      feePerMass,
      subtractFee,
      profileOf: this.profileOf,
      operation: operation && {
        bonded: operation.bonded,
        bytes: operation.dataHex.length / 2,
        profile: this.profileOf({ address: operation.owner }),
      },
    };
  }

  plan(
    ask: Ask,
    { compoundFirst, fromAddress, including }: Pick<PayOrder, 'compoundFirst' | 'fromAddress' | 'including'>,
  ): Plan | Gathering {
    const { book } = this.#with;
    const available =
      fromAddress === undefined
        ? book.available
        : new SortedOutputs([...book.available].filter(({ address }) => address === fromAddress));
    const found =
      including === undefined ? select(available, ask) : selectWith(this.#outputOf(including), available, ask);
    if (!('refusal' in found)) return found;
    if (found.refusal === 'amount_below_fee')
      throw new WalletError('amount_below_fee', 'the fee is larger than an amount it is taken from');
    const needed = found.needed;
    // The newest cuts may contain enough: they are read before the payment is refused.
    if (!this.#with.follower.caughtUp) throw this.#behind();
    // Pending change and merged outputs will be available soon: then the same call will succeed.
    const inFlight = (): boolean => this.#returning() > 0n && available.total + this.#returning() >= needed;
    if (found.refusal === 'too_many_outputs') {
      if (compoundFirst) {
        const held = gather(available, ask);
        if (!('needed' in held)) return { held };
      }
      if (inFlight()) throw new WalletError('funds_in_flight', 'other payments hold the outputs this one needs');
      throw new WalletError(
        'too_many_outputs',
        'the payment needs more than 8 outputs: use compound_first or compound',
        {
          needed: formatCoins(needed),
          reachable: formatCoins(found.reachable),
        },
      );
    }
    if (inFlight()) throw new WalletError('funds_in_flight', 'other payments hold the outputs this one needs');
    const figures = { needed: formatCoins(needed), spendable: formatCoins(available.total) };
    throw new WalletError(
      'insufficient_funds',
      `not enough funds: ${figures.needed} coins are needed, fee included, and ${figures.spendable} can be spent; ${remedy({ fromAddress, including })}`,
      figures,
    );
  }

  moves(order: MoveOrder): { found: readonly Merge[]; left: number; feePerMass: bigint } {
    const feePerMass = this.feePerMass();
    const terms = { feePerMass, profileOf: this.profileOf };
    const outputs = order.outputs();
    const found = merges(outputs, terms, order.most, order.single ? 1 : 2);
    if (found.length === 0 && !this.#with.follower.caughtUp) throw this.#behind();
    if (found.length === 0) throw new WalletError('nothing_to_move', 'there is no output worth moving');
    const taken = found.reduce((total, one) => total + one.inputs.length, 0);
    return { found, left: outputs.length - taken, feePerMass };
  }

  payDraft(
    plan: Plan,
    {
      recipients,
      payload,
      fromAddress,
      operation,
    }: Pick<PayOrder, 'recipients' | 'payload' | 'fromAddress' | 'operation'>,
  ): Draft {
    return {
      inputs: plan.inputs,
      profiles: plan.profiles,
      recipients: recipients.map(({ to }, i) => ({ to, amount: plan.amounts[i] as bigint })),
      change: plan.change,
      changeAddress: this.changeTo(fromAddress),
      payload,
      ...this.#heights(operation?.lastHeight),
      ...(operation && { operation: { record: operation, profile: this.profileOf({ address: operation.owner }) } }),
    };
  }

  #outputOf(address: string): OwnedOutput {
    const found = [...this.#with.book.available].findLast((output) => output.address === address);
    if (found !== undefined) return found;
    if (!this.#with.follower.caughtUp) throw this.#behind();
    throw new WalletError(
      'chat_address_empty',
      `${address} has to sign and holds no output that is free: pay to it first, and wait until that is final`,
      { address },
    );
  }

  /** The address for change and merged outputs of an order. */
  changeTo(fromAddress: string | undefined): string {
    return fromAddress ?? changeAddress(this.#with.book);
  }

  moveDraft(merge: Merge, to: string): Draft {
    return {
      inputs: merge.inputs,
      profiles: merge.profiles,
      recipients: [{ to, amount: merge.amount }],
      change: 0n,
      changeAddress: to,
      payload: empty,
      ...this.#heights(),
    };
  }

  /** An impossible request must not keep its outputs reserved. */
  #heights(lastHeight = Number.POSITIVE_INFINITY): Pick<Draft, 'validFromHeight' | 'validUntilHeight'> {
    const validFromHeight = this.#with.book.meta.indexedHeight;
    const validUntilHeight = Math.min(lastHeight, validFromHeight + this.#options.validityCuts);
    return { validFromHeight: Math.min(validFromHeight, validUntilHeight), validUntilHeight };
  }

  /** The guard of every outgoing call: a wallet whose outputs are not up to date must not pay. */
  feePerMass(): bigint {
    const { follower, book, ownSpends } = this.#with;
    const { trouble, synced, behindBy, manifest, finalizedHeight } = follower.node;
    const { stopped } = book.meta;
    if (stopped !== null) throw new WalletError('payments_stopped', stopped.message, { reason: stopped.reason });
    if (trouble !== null) throw trouble;
    if (follower.rescanning) throw new WalletError('wallet_busy', 'the history is being read again');
    if (manifest === null || !synced)
      throw new WalletError('node_not_synced', 'the node is not synchronized yet', { behind_by: behindBy });
    if (finalizedHeight - book.meta.indexedHeight > MAX_LAG) throw this.#behind();
    if (ownSpends.trouble !== undefined) throw ownSpends.trouble;
    const feePerMass = BigInt(manifest.min_fee_per_mass);
    if (feePerMass > this.#options.maxFeePerMass)
      throw new WalletError('fee_too_high', `the node asks for ${feePerMass} atoms per mass`, {
        fee_per_mass: feePerMass.toString(),
        max_fee_per_mass: this.#options.maxFeePerMass.toString(),
      });
    return feePerMass;
  }

  #behind(): WalletError {
    return new WalletError('wallet_behind', 'the wallet is still reading finalized cuts', {
      indexed_height: this.#with.book.meta.indexedHeight,
      finalized_height: this.#with.follower.node.finalizedHeight,
    });
  }

  /** What open transactions will give back to this wallet once they are final. */
  #returning(): bigint {
    const { book } = this.#with;
    let total = 0n;
    for (const { change, recipients, operation } of book.open.values()) {
      total += change;
      if (operation?.kind === 'withdraw') total += operation.amount;
      for (const { to, amount } of recipients) if (book.address(to) !== undefined) total += amount;
    }
    return total;
  }
}
