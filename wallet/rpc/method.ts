/**
 * How a method of the daemon is declared: its group, the schema of its params (unknown fields are refused) and what it
 * does. The tables of docs/wallet.md are checked against these declarations.
 */
import { type Address, parseAddress } from '../../protocol/address.ts';
import { parseCoins } from '../../protocol/amount.ts';
import { check, type Infer, integer, type Schema, text } from '../../protocol/api/schema.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import type { AddressRecord } from '../state/records.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';

export const GROUPS = [
  'Wallet',
  'Addresses',
  'Incoming',
  'Outgoing',
  'Staking',
  'Multisig',
  'Messenger',
  'Ownership',
  'Events',
] as const;
export type Group = (typeof GROUPS)[number];
export type Answer = Readonly<Record<string, unknown>>;

export type Method = {
  readonly group: Group;
  readonly summary: string;
  readonly params: Schema<unknown>;
  /** Checks the params and runs; a refusal is thrown as a WalletError. */
  call(wallet: Wallet, params: unknown): Promise<Answer>;
};

export function method<S extends Schema<unknown>>(
  group: Group,
  summary: string,
  params: S,
  run: (wallet: Wallet, params: Infer<S>) => Promise<Answer> | Answer,
): Method {
  return {
    group,
    summary,
    params,
    async call(wallet, given) {
      const problem = check(params, given);
      if (problem !== undefined)
        throw new WalletError('params_invalid', `${problem.field} ${problem.problem}`, { field: problem.field });
      return await run(wallet, given as Infer<S>);
    },
  };
}

export const addressField = text({ minLength: 1, maxLength: 128 });
export const amountField = text({ maxLength: 32, description: 'coins, up to 8 decimals' });
export const labelField = text({ maxLength: 128 });
/** The caller's own text. Control characters could falsify logs and listings. */
export const requestIdField = text({
  pattern: '^[^\\p{Cc}]{1,128}$',
  description: "the caller's own, 1 to 128 characters",
});
export const cursorField = text({ minLength: 1, maxLength: 256 });
export const limitField = (standard: number, maximum: number) => integer({ minimum: 1, maximum, default: standard });

/** During a rescan figures and lists would be incomplete. */
export function refuseWhileRescanning(wallet: Pick<Wallet, 'follower'>): void {
  if (wallet.follower.rescanning) throw new WalletError('wallet_busy', 'the history is being read again');
}

/** An address of this wallet's network, whatever its kind. */
export function readAddress(wallet: Pick<Wallet, 'network'>, value: string, field: string): Address {
  try {
    return parseAddress(value, wallet.network);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new WalletError('address_invalid', error.message, { field, reason: error.code });
  }
}

/** Rewards paid to the burn address would be lost. */
export function readRewardAddress(wallet: Pick<Wallet, 'network'>, address: string, field: string): string {
  if (readAddress(wallet, address, field).kind === 'burn')
    throw new WalletError('burn_needs_method', 'rewards paid to the burn address are lost', { field });
  return address;
}

export function readAmount(value: string, field: string): bigint {
  try {
    const amount = parseCoins(value);
    if (amount > 0n) return amount;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new WalletError('amount_invalid', error.message, { field, reason: error.code });
  }
  throw new WalletError('amount_invalid', 'an amount is more than zero', { field });
}

/** The parameters of a request without its id and `dry_run`: two calls with equal ones are the same request. */
export function wish(params: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { request_id: _, dry_run: __, ...rest } = params;
  return Object.fromEntries(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function ownAddress(wallet: Wallet, value: string, field: string): AddressRecord {
  readAddress(wallet, value, field);
  const record = wallet.book.address(value);
  if (record === undefined || !record.given)
    throw new WalletError('address_not_mine', 'this wallet has not handed out that address', { field });
  return record;
}
