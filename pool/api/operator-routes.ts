/** Routes for the operator, behind a token: bans, payouts, instances, config, balance sheet. Every change is logged in the books. */
import type { FastifyRequest } from 'fastify';
import { addressKey } from '../../bridge/ban-score.ts';
import { balanceSheet } from '../books/sheet.ts';
import type { Sql } from '../database/connect.ts';
import { markVoid } from '../payout/payout-states.ts';
import type { SharedState } from '../shared/shared-state.ts';
import { ApiRefusal } from './api-error.ts';
import { PAGE, pageOfRequest, pathPart, type Route } from './route.ts';

export type OperatorDependencies = {
  readonly sql: Sql;
  readonly shared: SharedState;
  readonly now: () => number;
  /** Options as they were read, secrets left out. */
  readonly config: Readonly<Record<string, unknown>>;
};

/** The switch that the payout loop reads before it reserves anything. */
export const PAUSE_SETTING = 'payouts_paused';

export async function payoutsPaused(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ value: string }[]>`select value from settings where name = ${PAUSE_SETTING}`;
  return row?.value === 'true';
}

export function operatorRoutes({ sql, shared, now, config }: OperatorDependencies): Route[] {
  const note = (request: FastifyRequest, action: string, details: Record<string, unknown>) =>
    sql`insert into operator_log (actor, action, details) values (${request.ip}, ${action}, ${sql.json(details as never)})`;
  const operator = (route: Omit<Route, 'group' | 'operator'>): Route => ({
    ...route,
    path: `/operator${route.path}`,
    group: 'Operator',
    operator: true,
  });
  const payoutId = (request: FastifyRequest): string => {
    const id = pathPart(request, 'id');
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id))
      throw new ApiRefusal('bad_request', 'a payout is named by its id');
    return id;
  };

  return [
    operator({
      method: 'GET',
      path: '/bans',
      summary: 'Addresses that are banned, and until when',
      handle: async () => ({ bans: (await shared.bans()).map(banDocument) }),
    }),
    operator({
      method: 'POST',
      path: '/bans',
      summary: 'Bans an address on all instances',
      body: {
        type: 'object',
        required: ['address', 'seconds'],
        properties: { address: { type: 'string' }, seconds: { type: 'integer', minimum: 1, maximum: 31_536_000 } },
      },
      handle: async (request) => {
        const { address, seconds } = objectOf(request);
        if (typeof address !== 'string' || address === '' || address.length > 64)
          throw new ApiRefusal('bad_request', 'address is an IPv4 or IPv6 address');
        if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 1 || seconds > 31_536_000)
          throw new ApiRefusal('bad_request', 'seconds is a whole number from 1 to a year');
        const ban = { key: addressKey(address), untilMillis: now() + seconds * 1000 };
        await note(request, 'ban', { key: ban.key, seconds });
        await shared.ban(ban);
        return banDocument(ban);
      },
    }),
    operator({
      method: 'DELETE',
      path: '/bans/:key',
      summary: 'Lifts a ban',
      handle: async (request) => {
        const key = pathPart(request, 'key');
        await note(request, 'unban', { key });
        return { lifted: await shared.unban(key) };
      },
    }),
    operator({
      method: 'GET',
      path: '/instances',
      summary: 'Instances heard of lately',
      handle: async () => ({ instances: await shared.instances() }),
    }),
    operator({
      method: 'GET',
      path: '/config',
      summary: 'Options as this instance read them; secrets are left out',
      handle: async () => config,
    }),
    operator({
      method: 'GET',
      path: '/sheet',
      summary: 'The balance sheet; a gap that is not 0 is an alarm',
      handle: async () =>
        Object.fromEntries(Object.entries(await balanceSheet(sql)).map(([name, value]) => [name, String(value)])),
    }),
    operator({
      method: 'GET',
      path: '/payouts',
      summary: 'Payouts that are open, and those that need a person',
      handle: async () => ({ paused: await payoutsPaused(sql), payouts: await openList(sql) }),
    }),
    operator({
      method: 'POST',
      path: '/payouts/pause',
      summary: 'Stops or resumes new payouts; those under way are still followed',
      body: { type: 'object', required: ['paused'], properties: { paused: { type: 'boolean' } } },
      handle: async (request) => {
        const { paused } = objectOf(request);
        if (typeof paused !== 'boolean') throw new ApiRefusal('bad_request', 'paused is true or false');
        await note(request, 'payouts_pause', { paused });
        await sql`insert into settings values (${PAUSE_SETTING}, ${String(paused)})
          on conflict (name) do update set value = excluded.value`;
        return { paused };
      },
    }),
    operator({
      method: 'POST',
      path: '/payouts/:id/resume',
      summary:
        'Lets a payout go on that waited for a person and was found unpaid: it is asked for again with the same request id',
      handle: async (request) => {
        const id = payoutId(request);
        const rows = await sql`update payouts set needs_person = null, request_table = null,
            state = case when state = 'submitting' then 'reserved' else state end, updated_at = now()
          where id = ${id} and needs_person is not null and state in ('reserved', 'submitting') returning id`;
        if (rows.length === 0) throw new ApiRefusal('conflict', 'this payout does not wait for a person');
        await note(request, 'payout_resume', { payout: id });
        return { resumed: id };
      },
    }),
    operator({
      method: 'POST',
      path: '/payouts/:id/sent',
      summary: 'Says by which transaction a payout was sent that waited for a person; its fate is then followed',
      body: {
        type: 'object',
        required: ['transaction_id', 'fee_atoms'],
        properties: { transaction_id: { type: 'string', pattern: '^[0-9a-f]{96}$' }, fee_atoms: { type: 'string' } },
      },
      handle: async (request) => {
        const id = payoutId(request);
        const { transaction_id, fee_atoms } = objectOf(request);
        if (typeof transaction_id !== 'string' || !/^[0-9a-f]{96}$/.test(transaction_id))
          throw new ApiRefusal('bad_request', 'transaction_id has 96 hex characters');
        if (typeof fee_atoms !== 'string' || !/^\d{1,18}$/.test(fee_atoms))
          throw new ApiRefusal('bad_request', 'fee_atoms is a decimal number');
        const rows =
          await sql`update payouts set state = 'submitted', transaction_id = decode(${transaction_id}, 'hex'),
            fee = ${BigInt(fee_atoms)}, needs_person = null, updated_at = now()
          where id = ${id} and needs_person is not null and state = 'submitting' returning id`;
        if (rows.length === 0) throw new ApiRefusal('conflict', 'this payout does not wait for a person');
        await note(request, 'payout_sent', { payout: id, transaction: transaction_id });
        return { sent: id };
      },
    }),
    operator({
      method: 'POST',
      path: '/payouts/:id/void',
      summary: 'Gives the balances of a payout back that the wallet has never been asked for',
      handle: async (request) => {
        const id = payoutId(request);
        await sql.begin(async (transaction) => {
          const [row] = await transaction`select 1 from payouts where id = ${id} and state = 'reserved' for update`;
          if (row === undefined) throw new ApiRefusal('conflict', 'only a reserved payout can be given back');
          await markVoid(transaction, id, 'reserved', 'by the operator');
        });
        await note(request, 'payout_void', { payout: id });
        return { voided: id };
      },
    }),
    operator({
      method: 'GET',
      path: '/log',
      summary: 'What operators did, newest first',
      parameters: PAGE,
      handle: async (request) => {
        const { limit } = pageOfRequest(request);
        const rows = await sql<
          { id: bigint; at: Date; actor: string; action: string; details: unknown }[]
        >`select id, at,
          actor, action, details from operator_log order by id desc limit ${limit}`;
        return {
          log: rows.map((row) => ({
            id: Number(row.id),
            at_millis: row.at.getTime(),
            actor: row.actor,
            action: row.action,
            details: row.details,
          })),
        };
      },
    }),
  ];
}

const banDocument = ({ key, untilMillis }: { key: string; untilMillis: number }) => ({
  key,
  until_millis: untilMillis,
});

const objectOf = (request: FastifyRequest): Record<string, unknown> => {
  if (typeof request.body !== 'object' || request.body === null)
    throw new ApiRefusal('bad_request', 'the body is a JSON object');
  return request.body as Record<string, unknown>;
};

async function openList(sql: Sql) {
  const rows = await sql<
    { id: string; state: string; needs_person: string | null; reason: string | null; millis: string; items: unknown }[]
  >`select p.id, p.state, p.needs_person, p.reason, (extract(epoch from p.created_at) * 1000)::bigint::text as millis,
      json_agg(json_build_object('address', a.address, 'amount_atoms', i.amount::text) order by a.id) as items
    from payouts p join payout_items i on i.payout_id = p.id join accounts a on a.id = i.account_id
    where p.state in ('reserved', 'submitting', 'submitted') group by p.id order by p.created_at limit 200`;
  return rows.map((row) => ({
    payment_id: row.id,
    state: row.state,
    needs_person: row.needs_person,
    reason: row.reason,
    created_millis: Number(row.millis),
    recipients: row.items,
  }));
}
