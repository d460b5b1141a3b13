/** A miner's webhook, set and taken away with the key of its address (signed-change.ts). The URL is shown to nobody. */
import { randomBytes } from 'node:crypto';
import type { AddressProof, AddressProofRequest } from '../../protocol/address-proof.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Sql } from '../database/connect.ts';
import { FIRST_NEWS, queueNews } from '../webhooks/miner-webhooks.ts';
import { type WebhookReach, webhookFault } from '../webhooks/webhook-target.ts';
import { ApiRefusal } from './api-error.ts';
import type { Account } from './miner-view.ts';
import { type Change, madeAlready, SignedChange } from './signed-change.ts';

export type MinerWebhookOptions = {
  readonly network: NetworkName;
  /** Name of the pool: it is part of what the miner signs. */
  readonly pool: string;
  readonly webhooks: WebhookReach | 'off';
};

export class MinerWebhook {
  readonly #options: MinerWebhookOptions;
  readonly #sql: Sql;
  readonly #now: () => number;
  readonly #signed: SignedChange;

  constructor(options: MinerWebhookOptions, dependencies: { sql: Sql; now: () => number }) {
    this.#options = options;
    this.#sql = dependencies.sql;
    this.#now = dependencies.now;
    this.#signed = new SignedChange(options.network, dependencies);
  }

  /** An empty URL takes the webhook away. */
  #change(address: string, url: string): Change {
    const { webhooks, pool } = this.#options;
    if (webhooks === 'off') throw new ApiRefusal('forbidden', 'this pool sends no webhooks to miners');
    const fault = url === '' ? undefined : webhookFault(url, webhooks);
    if (fault !== undefined) throw new ApiRefusal('bad_request', `url ${fault}`);
    const what = url === '' ? 'no webhook' : `webhook ${url}`;
    return { address, bound: `webhook ${url}`, purpose: `${what} at the pool "${pool}"`, what: 'webhook' };
  }

  async request(address: string, url: string): Promise<AddressProofRequest> {
    const [row] = await this.#sql<{ millis: string }[]>`select h.set_millis::text as millis from miner_webhooks h
      join accounts a on a.id = h.account_id where a.address = ${address}`;
    return this.#signed.request(this.#change(address, url), Number(row?.millis ?? -1));
  }

  async change(account: Account, url: string, request: AddressProofRequest, proof: AddressProof) {
    await this.#signed.insist(this.#change(account.address, url), request, proof);
    const secret = randomBytes(32).toString('hex');
    await this.#sql.begin(async (transaction) => {
      const made = await transaction`insert into miner_webhooks (account_id, url, secret, set_millis)
        values (${account.id}, ${url || null}, ${secret}, ${request.created_millis})
        on conflict (account_id) do update set url = excluded.url, secret = excluded.secret, attempts = 0,
          set_millis = excluded.set_millis, next_at = now(), dropped = 0, last_error = null
        where miner_webhooks.set_millis < excluded.set_millis returning account_id`;
      if (made.length === 0) throw madeAlready();
      await transaction`delete from miner_news where account_id = ${account.id}`;
      const first = { eventId: 0, kind: FIRST_NEWS, data: {}, address: account.address, atMillis: this.#now() };
      await queueNews(transaction, first);
    });
    return { address: account.address, secret: url === '' ? null : secret };
  }
}
