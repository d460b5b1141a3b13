/**
 * A miner's e-mail address, set and removed with the key of its address (signed-change.ts), confirmed by the code of
 * the mail that was sent to it. It is never shown. The answer is the same whether the mailbox is known here or not.
 */
import { randomBytes } from 'node:crypto';
import type { NetworkName } from '../../../protocol/network.ts';
import type { AddressProof, AddressProofRequest } from '../../../protocol/transactions/address-proof.ts';
import type { WallClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import { mailboxFault, mailboxKey } from '../../mail/mailbox.ts';
import { removeMailbox } from '../../mail/miner-mails.ts';
import { type NewsGroup, orderedGroups } from '../../webhooks/news-groups.ts';
import { ApiRefusal } from '../api-error.ts';
import type { Account } from './miner-view.ts';
import { type Change, madeAlready, SignedChange } from './signed-change.ts';

export type MinerMailOptions = {
  readonly network: NetworkName;
  /** Name of the pool: it is part of what the miner signs. */
  readonly pool: string;
  /** Whether the pool has a mail server. */
  readonly sendsMail: boolean;
};

export type MailWish = { readonly email: string; readonly events?: readonly NewsGroup[] | undefined };
export type MailState = 'off' | 'unconfirmed' | 'on';

export class MinerMail {
  readonly #options: MinerMailOptions;
  readonly #sql: Sql;
  readonly #signed: SignedChange;

  constructor(options: MinerMailOptions, dependencies: { sql: Sql; now: WallClock }) {
    this.#options = options;
    this.#sql = dependencies.sql;
    this.#signed = new SignedChange(options.network, dependencies);
  }

  #insist(): void {
    if (!this.#options.sendsMail) throw new ApiRefusal('forbidden', 'this pool sends no e-mail');
  }

  /** An empty address removes it. */
  #change(address: string, { email, events }: MailWish): Change {
    this.#insist();
    const fault = email === '' ? undefined : mailboxFault(email);
    if (fault !== undefined) throw new ApiRefusal('bad_request', `email ${fault}`);
    if (events?.length === 0) throw new ApiRefusal('bad_request', 'events must name one at least');
    const what = email === '' ? 'no e-mail' : `e-mail to ${email}`;
    const bound = `e-mail ${email} ${orderedGroups(events).join(',')}`;
    return { address, bound, purpose: `${what} at the pool "${this.#options.pool}"`, what: 'e-mail address' };
  }

  async request(address: string, wish: MailWish): Promise<AddressProofRequest> {
    const [row] = await this.#sql<{ millis: string }[]>`select m.set_millis::text as millis from miner_mails m
      join accounts a on a.id = m.account_id where a.address = ${address}`;
    return this.#signed.request(this.#change(address, wish), Number(row?.millis ?? -1));
  }

  async change(account: Account, wish: MailWish, request: AddressProofRequest, proof: AddressProof) {
    await this.#signed.insist(this.#change(account.address, wish), request, proof);
    const events = orderedGroups(wish.events);
    const mailbox = wish.email || null;
    const code = randomBytes(24).toString('base64url');
    const state = await this.#sql.begin(async (transaction): Promise<MailState> => {
      const [before] = await transaction<{ mailbox: string | null; set_millis: string }[]>`select mailbox,
        set_millis::text from miner_mails where account_id = ${account.id} for update`;
      if (before !== undefined && Number(before.set_millis) >= request.created_millis) throw madeAlready();
      // The same mailbox stays confirmed, and the links in its mails stay valid. The time of the next mail does not
      // change.
      if (before !== undefined && mailbox !== null && before.mailbox === mailbox) {
        const [row] = await transaction<{ confirmed: boolean }[]>`update miner_mails set events = ${events}::text[],
            set_millis = ${request.created_millis}, since = now(),
            asked_at = case when confirmed then asked_at else null end
          where account_id = ${account.id} returning confirmed`;
        return row?.confirmed === true ? 'on' : 'unconfirmed';
      }
      const made = await transaction`insert into miner_mails (account_id, mailbox, set_millis, code, events)
        values (${account.id}, ${mailbox}, ${request.created_millis}, ${code}, ${events}::text[])
        on conflict (account_id) do update set mailbox = excluded.mailbox, set_millis = excluded.set_millis,
          code = excluded.code, events = excluded.events, confirmed = false, since = now(), asked_at = null,
          attempts = 0, dropped = 0
        where miner_mails.set_millis < excluded.set_millis returning account_id`;
      if (made.length === 0) throw madeAlready();
      await transaction`delete from miner_news where account_id = ${account.id} and channel = 'mail'`;
      return mailbox === null ? 'off' : 'unconfirmed';
    });
    return { address: account.address, state };
  }

  /** Only a reader of the mailbox has its code. */
  async confirm(code: string): Promise<{ address: string; state: MailState }> {
    this.#insist();
    const address = await this.#sql.begin(async (transaction) => {
      const [row] = await transaction<{ address: string }[]>`update miner_mails m set confirmed = true from accounts a
        where a.id = m.account_id and m.code = ${code} and m.mailbox is not null returning a.address`;
      if (row === undefined) throw unknownCode();
      await transaction`update mail_confirmations set code = null where code = ${code}`;
      return row.address;
    });
    return { address, state: 'on' };
  }

  /**
   * Works also while the pool sends no mail. A mailbox that was never confirmed gets no more mail, whatever its miner
   * has set since: otherwise a miner that enters one mailbox after another would leave their owners no way to refuse.
   */
  async stop(code: string): Promise<{ address: string; state: MailState }> {
    const address = await this.#sql.begin(async (transaction) => {
      const [row] = await transaction<{ id: number; address: string; mailbox: string | null; confirmed: boolean }[]>`
        select m.account_id as id, a.address, m.mailbox, m.confirmed from miner_mails m
        join accounts a on a.id = m.account_id where m.code = ${code} for update of m`;
      const [asked] = await transaction<{ key: string; address: string }[]>`select c.mailbox_key as key, a.address
        from mail_confirmations c join accounts a on a.id = c.account_id where c.code = ${code} limit 1`;
      const address = row?.address ?? asked?.address;
      if (address === undefined) throw unknownCode();
      const named = row?.mailbox ?? null;
      const key = asked?.key ?? (named === null ? undefined : mailboxKey(named));
      if (key !== undefined && row?.confirmed !== true)
        await transaction`insert into mail_refusals (mailbox_key) values (${key}) on conflict do nothing`;
      if (row !== undefined) await removeMailbox(transaction, row.id);
      return address;
    });
    return { address, state: 'off' };
  }
}

const unknownCode = () =>
  new ApiRefusal('not_found', 'this link is no longer valid: the e-mail address was changed or removed');
