/**
 * The operator's routes about payouts. They are safe to use: before a payout is given back or marked as sent, this is
 * checked with the wallet. Nothing here pays; the accountant does, and the wallet pays each payout number only once.
 */
import type { FastifyRequest } from 'fastify';
import { object, optional, text } from '../../../protocol/api/schema.ts';
import { API_VERSION, identifier } from '../../../protocol/api/values.ts';
import type { Sql } from '../../database/connect.ts';
import { MAX_WORDS } from '../../edits/editable.ts';
import type { LedgerDate } from '../../payout/earlier-minimums.ts';
import { markSubmitted, markVoid, type OpenPayout, openPayouts } from '../../payout/payout-states.ts';
import { type PayoutWallet, samePayment } from '../../payout/payout-wallet.ts';
import { ApiRefusal } from '../api-error.ts';
import { operator, type Route } from '../route.ts';
import type { PayoutAction, QueueDocument } from './operator-documents.ts';
import * as o from './operator-documents.ts';
import { pausePayouts, payNow, payoutsPaused } from './payout-pause.ts';

export type PayoutRoutesDependencies = {
  readonly sql: Sql;
  readonly wallet: PayoutWallet;
  /** Writes what an operator did into the books. */
  readonly note: (request: FastifyRequest, action: string, details: Record<string, unknown>) => Promise<unknown>;
  readonly chain: () => LedgerDate | undefined;
  /** What everybody is told about the pause; null clears it. */
  readonly pauseNote: (note: string | null, request: FastifyRequest) => Promise<void>;
};

const MOST_SHOWN = 200;

/** What an operator can do with a payout; everything else is refused. */
export function actionsOf({ state, needsPerson }: Pick<OpenPayout, 'state' | 'needsPerson'>): readonly PayoutAction[] {
  if (state === 'reserved') return needsPerson === null ? ['void'] : ['release', 'void'];
  return state === 'submitting' && needsPerson !== null ? ['release', 'void', 'sent'] : [];
}

const ofPayout = object({
  id: text({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$', description: 'id of the payout' }),
});

export function payoutRoutes({ sql, wallet, note, chain, pauseNote }: PayoutRoutesDependencies): Route[] {
  const payoutFor = async ({ id }: { readonly id: string }, action: PayoutAction): Promise<OpenPayout> => {
    const payout = (await openPayouts(sql)).find((one) => one.id === id);
    if (payout === undefined) throw new ApiRefusal('not_found', 'there is no open payout of this id');
    if (!actionsOf(payout).includes(action))
      throw new ApiRefusal(
        'conflict',
        `this cannot be done to a payout that is ${payout.state} and waits for no person`,
      );
    return payout;
  };
  /** Throws a refusal unless the wallet confirms that it has never been asked for this payout. */
  const neverAsked = async ({ requestId, requestTable }: OpenPayout): Promise<void> => {
    const status = await wallet.status();
    const listed = requestId === null ? undefined : await wallet.payments(requestId);
    if (status.kind !== 'ok' || listed?.kind !== 'ok')
      throw new ApiRefusal('unavailable', 'the wallet does not answer now whether it has paid this: try again');
    if (listed.value.some((one) => one.requestId === requestId))
      throw new ApiRefusal('conflict', 'the wallet has this payment on record: release it, and it is followed');
    if (status.value.requestTable !== requestTable)
      throw new ApiRefusal(
        'conflict',
        'the wallet has lost its request table since: release it; it is followed until it is certain whether it was paid',
      );
  };
  return [
    operator({
      method: 'GET',
      path: '/queue',
      summary: 'Payouts that are open, and those that need a person, with what can be done about each',
      answer: o.queue,
      handle: async () => ({ api_version: API_VERSION, payouts: await openList(sql) }),
    }),
    operator({
      method: 'POST',
      path: '/pause',
      summary: 'Nothing is paid; what is under way is still followed',
      body: object({
        note: optional(text({ maxLength: MAX_WORDS, description: 'the setting pause_note: shown to everybody' })),
      }),
      answer: o.pause,
      handle: async ({ body }, { request }) => {
        if (body.note !== undefined) await pauseNote(body.note, request);
        await note(request, 'payouts_pause', {});
        await pausePayouts(sql, true);
        return { api_version: API_VERSION, payouts_paused: true };
      },
    }),
    operator({
      method: 'POST',
      path: '/resume',
      summary: 'Lets payouts go on, and takes the note about the pause away',
      answer: o.pause,
      handle: async (_input, { request }) => {
        await note(request, 'payouts_resume', {});
        await pausePayouts(sql, false, chain());
        await pauseNote(null, request);
        return { api_version: API_VERSION, payouts_paused: false };
      },
    }),
    operator({
      method: 'POST',
      path: '/pay-now',
      summary: 'Pays balances that have reached the minimum within seconds, without waiting for the interval',
      answer: o.payNow,
      handle: async (_input, { request }) => {
        if (await payoutsPaused(sql)) throw new ApiRefusal('conflict', 'payouts are paused: resume them first');
        await note(request, 'payouts_now', {});
        await payNow(sql);
        return { api_version: API_VERSION, asked: true };
      },
    }),
    operator({
      method: 'POST',
      path: '/payouts/:id/release',
      summary:
        'Lets a payout go on that waited for a person: the wallet is asked again, under the same number if it was asked',
      params: ofPayout,
      answer: o.released,
      handle: async ({ params }, { request }) => {
        const { id } = await payoutFor(params, 'release');
        const rows = await sql`update payouts set needs_person = null, updated_at = now()
          where id = ${id} and needs_person is not null and state in ('reserved', 'submitting') returning id`;
        if (rows.length === 0) throw new ApiRefusal('conflict', 'this payout has changed meanwhile');
        await note(request, 'payout_release', { payout: id });
        return { api_version: API_VERSION, released: id };
      },
    }),
    operator({
      method: 'POST',
      path: '/payouts/:id/sent',
      summary:
        'Says by which transaction a payout was sent; the wallet must know it and it must pay exactly these recipients',
      params: ofPayout,
      body: object({ transaction_id: identifier }),
      answer: o.sent,
      handle: async ({ params, body: { transaction_id: name } }, { request }) => {
        const payout = await payoutFor(params, 'sent');
        const paid = await wallet.payment(name);
        if (paid.kind !== 'ok') throw new ApiRefusal('conflict', `the wallet does not know it: ${paid.reason}`);
        if (!samePayment(paid.value.recipients, payout.items))
          throw new ApiRefusal('conflict', 'that transaction does not pay exactly what this payout owes');
        await sql.begin(async (transaction) => {
          const [other] = await transaction`select 1 from payouts where transaction_id = decode(${name}, 'hex')`;
          if (other !== undefined) throw new ApiRefusal('conflict', 'that transaction belongs to another payout');
          await markSubmitted(transaction, payout.id, name, paid.value.fee);
        });
        await note(request, 'payout_sent', { payout: payout.id, transaction: name });
        return { api_version: API_VERSION, sent: payout.id };
      },
    }),
    operator({
      method: 'POST',
      path: '/payouts/:id/void',
      summary: 'Gives the balances of a payout back that the wallet has not paid; they are due again',
      params: ofPayout,
      answer: o.voided,
      handle: async ({ params }, { request }) => {
        const [seen] = await sql<{ at: string }[]>`select updated_at::text as at from payouts where id = ${params.id}`;
        const payout = await payoutFor(params, 'void');
        const { id, state } = payout;
        if (state === 'submitting') await neverAsked(payout);
        await sql.begin(async (transaction) => {
          // Released while the wallet was asked, it may have been asked for it since.
          const [row] = await transaction`select 1 from payouts where id = ${id} and state = ${state}
            and updated_at::text = ${seen?.at ?? ''} for update`;
          if (row === undefined) throw new ApiRefusal('conflict', 'this payout has changed meanwhile');
          await markVoid(transaction, id, state as 'reserved' | 'submitting', 'by the operator');
        });
        await note(request, 'payout_void', { payout: id });
        return { api_version: API_VERSION, voided: id };
      },
    }),
  ];
}

async function openList(sql: Sql): Promise<QueueDocument['payouts']> {
  type Row = { id: string; reason: string | null; millis: string };
  const open = await openPayouts(sql);
  // Payouts that wait for a person come first: a long queue must not hide them.
  const shown = [...open.filter((one) => one.needsPerson !== null), ...open.filter((one) => one.needsPerson === null)];
  const rows = await sql<Row[]>`select id, reason, (extract(epoch from created_at) * 1000)::bigint::text as millis
    from payouts where state in ('reserved', 'submitting', 'submitted')`;
  const notes = new Map(rows.map((row) => [row.id, row]));
  return shown.slice(0, MOST_SHOWN).map((payout) => ({
    payout_id: payout.id,
    number: payout.number,
    state: payout.state,
    total: String(payout.items.reduce((sum, { amount }) => sum + amount, 0n)),
    recipients: payout.items.length,
    items: payout.items.map(({ address, amount }) => ({ address, amount: String(amount) })),
    needs_person: payout.needsPerson,
    reason: notes.get(payout.id)?.reason ?? null,
    created_millis: Number(notes.get(payout.id)?.millis ?? 0),
    actions: actionsOf(payout),
  }));
}
