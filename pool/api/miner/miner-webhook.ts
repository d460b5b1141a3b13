/**
 * A miner's webhook, and its channels of services for people, set and removed with the key of its address (signed-change.ts). The URL is never shown; whether it
 * works is public.
 */
import { randomBytes } from 'node:crypto';
import type { NetworkName } from '../../../protocol/network.ts';
import { CHANNELS, type Channel, noticePurpose } from '../../../protocol/notices.ts';
import type { AddressProof, AddressProofRequest } from '../../../protocol/transactions/address-proof.ts';
import type { WallClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import { NEWS_GROUPS, type NewsGroup, orderedGroups } from '../../webhooks/news-groups.ts';
import { queueFirst } from '../../webhooks/news-queue.ts';
import { type WebhookReach, webhookFault } from '../../webhooks/webhook-target.ts';
import { ApiRefusal } from '../api-error.ts';
import type { Account } from './miner-view.ts';
import { type Change, madeAlready, SignedChange } from './signed-change.ts';

export type MinerWebhookOptions = {
  readonly network: NetworkName;
  /** Name of the pool: it is part of what the miner signs. */
  readonly pool: string;
  readonly webhooks: WebhookReach | 'off';
};

export type WebhookWish = {
  /** A webhook where it is missing. */
  readonly channel?: Channel | undefined;
  readonly url: string;
  readonly events?: readonly NewsGroup[] | undefined;
};

/** `refused`: it answers, but not with 2xx. More detail would reveal to strangers which hosts exist behind a name. */
export type WebhookFailure = 'refused' | 'unreachable';
export type WebhookState = {
  readonly state: 'none' | 'waiting' | 'working' | 'failing' | 'taken_away';
  readonly last_success_millis: number | null;
  readonly last_failure_millis: number | null;
  readonly failure: WebhookFailure | null;
};
type StateRow = { url: string | null; error: string | null; success: string | null; failed: string | null };

export class MinerWebhook {
  readonly #options: MinerWebhookOptions;
  readonly #sql: Sql;
  readonly #now: WallClock;
  readonly #signed: SignedChange;

  constructor(options: MinerWebhookOptions, dependencies: { sql: Sql; now: WallClock }) {
    this.#options = options;
    this.#sql = dependencies.sql;
    this.#now = dependencies.now;
    this.#signed = new SignedChange(options.network, dependencies);
  }

  /** An empty URL removes the webhook. */
  #change(address: string, { channel = 'webhook', url, events }: WebhookWish): Change {
    const { webhooks, pool } = this.#options;
    if (webhooks === 'off') throw new ApiRefusal('forbidden', 'this pool sends no webhooks to miners');
    const fault = url === '' ? undefined : webhookFault(url, webhooks, channel);
    if (fault !== undefined) throw new ApiRefusal('bad_request', `url ${fault}`);
    if (events?.length === 0) throw new ApiRefusal('bad_request', 'events must name one at least');
    const groups = orderedGroups(events);
    const bound = `${channel} ${url}${groups.length === NEWS_GROUPS.length ? '' : ` ${groups.join(',')}`}`;
    return { address, bound, purpose: `${noticePurpose(channel, url)} at the pool "${pool}"`, what: 'webhook' };
  }

  async request(address: string, wish: WebhookWish): Promise<AddressProofRequest> {
    const [row] = await this.#sql<{ millis: string }[]>`select h.set_millis::text as millis from miner_webhooks h
      join accounts a on a.id = h.account_id where a.address = ${address} and h.channel = ${wish.channel ?? 'webhook'}`;
    return this.#signed.request(this.#change(address, wish), Number(row?.millis ?? -1));
  }

  async change(account: Account, wish: WebhookWish, request: AddressProofRequest, proof: AddressProof) {
    await this.#signed.insist(this.#change(account.address, wish), request, proof);
    const { url, channel = 'webhook' } = wish;
    const secret = randomBytes(32).toString('hex');
    await this.#sql.begin(async (transaction) => {
      const made = await transaction`insert into miner_webhooks (account_id, channel, url, secret, set_millis, events)
        values (${account.id}, ${channel}, ${url || null}, ${secret}, ${request.created_millis}, ${orderedGroups(wish.events)}::text[])
        on conflict (account_id, channel) do update set url = excluded.url, secret = excluded.secret, attempts = 0,
          set_millis = excluded.set_millis, next_at = now(), dropped = 0, last_error = null,
          events = excluded.events, last_success = null, last_failure = null
        where miner_webhooks.set_millis < excluded.set_millis returning account_id`;
      if (made.length === 0) throw madeAlready();
      await transaction`delete from miner_news where account_id = ${account.id} and channel = ${channel}`;
      if (url !== '')
        await queueFirst(transaction, { id: account.id, channel }, { address: account.address, now: this.#now() });
    });
    return { address: account.address, secret: url === '' || channel !== 'webhook' ? null : secret };
  }

  async states(account: Account): Promise<Record<Channel, WebhookState>> {
    const rows = await this.#sql<(StateRow & { channel: string })[]>`select channel, url, last_error as error,
        (extract(epoch from last_success) * 1000)::bigint::text as success,
        (extract(epoch from last_failure) * 1000)::bigint::text as failed
      from miner_webhooks where account_id = ${account.id}`;
    const stateOf = (channel: Channel) => webhookState(rows.find((row) => row.channel === channel));
    return Object.fromEntries(CHANNELS.map((channel) => [channel, stateOf(channel)])) as Record<Channel, WebhookState>;
  }
}

export function webhookState(row: StateRow | undefined): WebhookState {
  const { url = null, error = null, success = null, failed = null } = row ?? {};
  const state =
    url === null
      ? error === null
        ? 'none'
        : 'taken_away'
      : error !== null
        ? 'failing'
        : success === null
          ? 'waiting'
          : 'working';
  const millis = (text: string | null) => (text === null ? null : Number(text));
  const isKept = state !== 'none';
  return {
    state,
    last_success_millis: isKept ? millis(success) : null,
    last_failure_millis: isKept ? millis(failed) : null,
    failure: error === null ? null : /^status \d/.test(error) ? 'refused' : 'unreachable',
  };
}
