/** The faucet: pays a fixed amount to whoever asks, within the limits of a day (giving.ts), through the wallet's own methods. */
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { attempt } from '../../protocol/errors.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { clientNetwork } from '../../runtime/clients/client-address.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { DOOR_ERRORS } from '../../runtime/door/door.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { Fields } from '../command/session.ts';
import { dayOf, type FaucetLimits, Giving, millisToNextDay, requestOf, requestPrefix } from './giving.ts';

/** Refusals with their HTTP status. */
export const FAUCET_ERRORS = {
  ...DOOR_ERRORS,
  not_found: 404,
  method_not_allowed: 405,
  body_too_large: 413,
  address_invalid: 400,
  address_paid: 429,
  network_limit: 429,
  day_limit: 429,
  faucet_busy: 503,
  faucet_empty: 503,
  faucet_unavailable: 503,
} as const;
export type FaucetErrorCode = keyof typeof FAUCET_ERRORS;

export type FaucetRefused = { readonly code: FaucetErrorCode; readonly message: string; readonly retryMillis?: number };
export type FaucetGiven = { readonly address: string; readonly amount: string; readonly transaction: string | null };

export type FaucetOptions = FaucetLimits & { readonly network: NetworkName; readonly amount: bigint };

export type FaucetDependencies = {
  /** A method of the wallet; its refusals are errors with a code. */
  readonly call: (method: string, params: unknown) => Promise<Fields>;
  readonly now: SteadyClock;
  readonly log: Pick<Logger, 'info' | 'warn'>;
};

/** Payments on their way to the wallet: each holds memory and outputs. */
const MOST_AT_ONCE = 16;
const PAGE = 1_000;
const BUSY_MILLIS = 10_000;

const MESSAGES = {
  address_paid: 'this address had coins today: come back tomorrow (UTC)',
  network_limit: 'your network had its coins for today: come back tomorrow (UTC)',
  day_limit: 'today’s coins are given: come back tomorrow (UTC)',
} as const;

const BUSY = ['funds_in_flight', 'wallet_busy', 'wallet_behind', 'too_many_outputs', 'too_many_requests'];
const EMPTY = ['insufficient_funds'];
/** Nothing was signed: the same address may ask again, from another network too, which is then another request. */
const UNPAID = [
  ...BUSY,
  ...EMPTY,
  'node_unreachable',
  'node_not_synced',
  'fee_too_high',
  'payments_stopped',
  'spend_not_on_record',
  'address_invalid',
  'wallet_locked',
];

export class Faucet {
  readonly options: FaucetOptions;
  readonly #with: FaucetDependencies;
  /** Of the day that it is; read from the wallet's record once. */
  #today: { readonly day: string; readonly giving: Promise<Giving> } | undefined;
  #atOnce = 0;

  constructor(options: FaucetOptions, dependencies: FaucetDependencies) {
    this.options = options;
    this.#with = dependencies;
  }

  async left(): Promise<number> {
    return Math.max(0, this.options.perDay - (await this.#giving(dayOf(this.#with.now()))).count);
  }

  /** `client`: its IP address. */
  async give(asked: string, client: string): Promise<FaucetGiven | FaucetRefused> {
    const { network, amount } = this.options;
    const parsed = attempt(() => parseAddress(asked, network));
    if (!parsed.ok) return { code: 'address_invalid', message: parsed.error.message };
    if (parsed.value.kind === 'burn') return { code: 'address_invalid', message: 'that is the burn address' };
    // It may be written in capitals too.
    const address = formatAddress(parsed.value.payload, network);
    if (this.#atOnce >= MOST_AT_ONCE) return busy();
    this.#atOnce++;
    try {
      const now = this.#with.now();
      const day = dayOf(now);
      const giving = await this.#giving(day);
      const from = clientNetwork(client);
      const refusal = giving.refusal(address, from);
      if (refusal !== undefined)
        return { code: refusal, message: MESSAGES[refusal], retryMillis: millisToNextDay(now) };
      const requestId = requestOf(day, address, giving.take(address, from));
      return await this.#pay(giving, { to: address, amount: formatCoins(amount), request_id: requestId });
    } catch (error) {
      // The record of the day could not be read.
      return this.#failed(error);
    } finally {
      this.#atOnce--;
    }
  }

  async #pay(
    giving: Giving,
    params: { readonly to: string; readonly amount: string; readonly request_id: string },
  ): Promise<FaucetGiven | FaucetRefused> {
    const { to: address, amount } = params;
    try {
      const { transaction } = await this.#with.call('send', params);
      this.#with.log.info('paid', { address, amount, transaction });
      return { address, amount, transaction: typeof transaction === 'string' ? transaction : null };
    } catch (error) {
      const code = codeOf(error);
      // The wallet has signed it, and goes on sending it.
      const { transaction } = ((error as { readonly data?: unknown }).data ?? {}) as Fields;
      if (code === 'outcome_unknown' && typeof transaction === 'string') return { address, amount, transaction };
      if (code === 'outcome_unknown') giving.leaveUnclear(address);
      else if (UNPAID.includes(code)) giving.giveBack(address);
      return this.#failed(error);
    }
  }

  #failed(error: unknown): FaucetRefused {
    const code = codeOf(error);
    if (BUSY.includes(code)) return busy();
    this.#with.log.warn('a payment was refused', { code, error });
    if (EMPTY.includes(code)) return { code: 'faucet_empty', message: 'the faucet has no coins left' };
    return { code: 'faucet_unavailable', message: 'the faucet cannot pay now', retryMillis: BUSY_MILLIS };
  }

  #giving(day: string): Promise<Giving> {
    if (this.#today?.day === day) return this.#today.giving;
    const giving = this.#recall(day);
    const today = { day, giving };
    this.#today = today;
    // The next one who asks tries again.
    giving.catch(() => {
      if (this.#today === today) this.#today = undefined;
    });
    return giving;
  }

  async #recall(day: string): Promise<Giving> {
    const giving = new Giving(this.options);
    let cursor: string | undefined;
    do {
      const page = await this.#with.call('requests', {
        prefix: requestPrefix(day),
        limit: PAGE,
        ...(cursor !== undefined && { cursor }),
      });
      for (const { request_id: id } of page.requests as { readonly request_id: string }[]) giving.recall(id);
      cursor = page.next_cursor as string | undefined;
    } while (cursor !== undefined);
    return giving;
  }
}

const busy = (): FaucetRefused => ({
  code: 'faucet_busy',
  message: 'others are being paid: try again in some seconds',
  retryMillis: BUSY_MILLIS,
});

const codeOf = (error: unknown): string => {
  const { code } = error as { readonly code?: unknown };
  if (typeof code !== 'string') throw error;
  return code;
};
