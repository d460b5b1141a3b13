/** Routes for the operator, behind a token: bans, payouts, instances, config, balance sheet. Every change is logged in the books. */
import type { FastifyRequest } from 'fastify';
import { clientKey } from '../../runtime/client-address.ts';
import { balanceSheet } from '../books/sheet.ts';
import type { Sql } from '../database/connect.ts';
import { markVoid } from '../payout/payout-states.ts';
import type { WalletAnswer, WalletStatus } from '../payout/payout-wallet.ts';
import type { SharedState } from '../shared/shared-state.ts';
import { ApiRefusal } from './api-error.ts';
import type {
  BansDocument,
  HeldRewardsDocument,
  InstancesDocument,
  OperatorLogDocument,
  OperatorStatus,
  QueueDocument,
} from './documents.ts';
import { acceptReward, heldRewards } from './held-rewards.ts';
import { pausePayouts, payoutsPaused } from './payout-pause.ts';
import { PAGE, pageOfRequest, pathPart, type Route } from './route.ts';

export type OperatorDependencies = {
  readonly sql: Sql;
  readonly shared: SharedState;
  readonly now: () => number;
  /** Options as they were read, secrets left out. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly wallet: () => Promise<WalletAnswer<WalletStatus>>;
  readonly isAccountant: () => boolean;
};

export function operatorRoutes({ sql, shared, now, config, wallet, isAccountant }: OperatorDependencies): Route[] {
  const note = (request: FastifyRequest, action: string, details: Record<string, unknown>) =>
    sql`insert into operator_log (actor, action, details) values (${request.ip}, ${action}, ${sql.json(details as never)})`;
  const operator = (route: Omit<Route, 'group' | 'operator'>): Route => ({
    ...route,
    path: `/operator${route.path}`,
    group: 'Operator',
    operator: true,
  });
  const status = async (): Promise<OperatorStatus> => {
    const sheet = await balanceSheet(sql);
    const answer = await wallet();
    const [term] = await sql<{ number: bigint; holder: string }[]>`select number, holder from term`;
    return {
      api_version: 1,
      sheet: {
        rewards: String(sheet.rewards),
        uncredited: String(sheet.uncredited),
        balances: String(sheet.balances),
        in_flight: String(sheet.inFlight),
        paid: String(sheet.paid),
        pool_fees: String(sheet.poolFees),
        network_fees: String(sheet.networkFees),
        gap: String(sheet.gap),
      },
      wallet:
        answer.kind === 'ok'
          ? { ready: true, reason: null, spendable: String(answer.value.spendable), outputs: answer.value.outputs }
          : { ready: false, reason: answer.reason, spendable: null, outputs: null },
      payouts_paused: await payoutsPaused(sql),
      accountant: { term: String(term?.number ?? 0n), holder: term?.holder ?? '', here: isAccountant() },
    };
  };
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
      handle: async (): Promise<BansDocument> => ({ api_version: 1, bans: (await shared.bans()).map(banDocument) }),
    }),
    operator({
      method: 'POST',
      path: '/bans',
      summary: 'Bans an address on all instances',
      body: {
        type: 'object',
        required: ['key', 'minutes'],
        properties: { key: { type: 'string' }, minutes: { type: 'integer', minimum: 1, maximum: 525_600 } },
      },
      handle: async (request) => {
        const { key, minutes } = objectOf(request);
        if (typeof key !== 'string' || key.length > 64 || clientKey(key) === 'unknown')
          throw new ApiRefusal('bad_request', 'key is an IPv4 or IPv6 address');
        if (typeof minutes !== 'number' || !Number.isInteger(minutes) || minutes < 1 || minutes > 525_600)
          throw new ApiRefusal('bad_request', 'minutes is a whole number from 1 to a year');
        const ban = { key: clientKey(key), untilMillis: now() + minutes * 60_000 };
        await note(request, 'ban', { key: ban.key, minutes });
        await shared.ban(ban);
        return { api_version: 1, ...banDocument(ban) };
      },
    }),
    operator({
      method: 'DELETE',
      path: '/bans',
      summary: 'Lifts a ban',
      body: { type: 'object', required: ['key'], properties: { key: { type: 'string' } } },
      handle: async (request) => {
        const { key } = objectOf(request);
        if (typeof key !== 'string') throw new ApiRefusal('bad_request', 'key names a ban of the list');
        await note(request, 'unban', { key });
        return { api_version: 1, lifted: await shared.unban(key) };
      },
    }),
    operator({
      method: 'GET',
      path: '/instances',
      summary: 'Instances heard of lately',
      handle: async (): Promise<InstancesDocument> => ({
        api_version: 1,
        instances: (await shared.instances()).map((each) => ({
          instance: each.name,
          boot_id: each.instance,
          connections: Object.values(each.connections).reduce((sum, count) => sum + count, 0),
          accountant: each.accountant,
          started_millis: each.startedMillis,
          seen_millis: each.atMillis,
        })),
      }),
    }),
    operator({
      method: 'GET',
      path: '/config',
      summary: 'Options as this instance read them; secrets are left out',
      handle: async () => ({ api_version: 1, config }),
    }),
    operator({
      method: 'GET',
      path: '/status',
      summary: 'Balance sheet (a gap that is not 0 is an alarm), wallet, and who keeps the books',
      handle: () => status(),
    }),
    operator({
      method: 'GET',
      path: '/queue',
      summary: 'Payouts that are open, and those that need a person',
      handle: async (): Promise<QueueDocument> => ({ api_version: 1, payouts: await openList(sql) }),
    }),
    operator({
      method: 'GET',
      path: '/rewards',
      summary: 'Rewards that are held: what a node claims and why it is not believed',
      handle: async (): Promise<HeldRewardsDocument> => ({ api_version: 1, rewards: await heldRewards(sql) }),
    }),
    operator({
      method: 'POST',
      path: '/rewards/:id/accept',
      summary: 'Accepts the amount of a held reward, after you have looked it up at a node that you trust',
      body: { type: 'object', required: ['amount'], properties: { amount: { type: 'string' } } },
      handle: async (request) => {
        const id = pathPart(request, 'id');
        const { amount } = objectOf(request);
        if (!/^[0-9a-f]{96}$/.test(id)) throw new ApiRefusal('bad_request', 'a block is named by 96 hex characters');
        if (typeof amount !== 'string' || !/^[1-9]\d{0,17}$/.test(amount))
          throw new ApiRefusal('bad_request', 'amount is the claimed number of atoms');
        if (!(await acceptReward(sql, id, BigInt(amount))))
          throw new ApiRefusal('conflict', 'no reward of this amount is held for this block');
        await note(request, 'reward_accept', { block: id, amount });
        return { api_version: 1, accepted: amount };
      },
    }),
    ...[true, false].map((isPaused) =>
      operator({
        method: 'POST',
        path: isPaused ? '/pause' : '/resume',
        summary: isPaused ? 'Stops new payouts; those under way are still followed' : 'Lets payouts go on',
        handle: async (request) => {
          await note(request, isPaused ? 'payouts_pause' : 'payouts_resume', {});
          await pausePayouts(sql, isPaused);
          return { api_version: 1, payouts_paused: isPaused };
        },
      }),
    ),
    operator({
      method: 'POST',
      path: '/payouts/:id/release',
      summary:
        'Lets a payout go on that waited for a person and was found unpaid: it is asked for again with the same request id',
      handle: async (request) => {
        const id = payoutId(request);
        const rows = await sql`update payouts set needs_person = null, request_table = null,
            state = case when state = 'submitting' then 'reserved' else state end, updated_at = now()
          where id = ${id} and needs_person is not null and state in ('reserved', 'submitting') returning id`;
        if (rows.length === 0) throw new ApiRefusal('conflict', 'this payout does not wait for a person');
        await note(request, 'payout_release', { payout: id });
        return { api_version: 1, released: id };
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
        return { api_version: 1, sent: id };
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
        return { api_version: 1, voided: id };
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
        const entries = rows.map((row) => ({
          at_millis: row.at.getTime(),
          actor: row.actor,
          action: row.action,
          details: row.details as object,
        }));
        return { api_version: 1, entries } satisfies OperatorLogDocument;
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

async function openList(sql: Sql): Promise<QueueDocument['payouts']> {
  type Row = {
    id: string;
    state: QueueDocument['payouts'][number]['state'];
    needs_person: string | null;
    reason: string | null;
    millis: string;
    total: string;
    recipients: number;
  };
  const rows = await sql<Row[]>`select p.id, p.state, p.needs_person, p.reason, sum(i.amount)::text as total,
      count(*)::int as recipients, (extract(epoch from p.created_at) * 1000)::bigint::text as millis
    from payouts p join payout_items i on i.payout_id = p.id
    where p.state in ('reserved', 'submitting', 'submitted') group by p.id order by p.created_at limit 200`;
  return rows.map((row) => ({
    payout_id: row.id,
    state: row.state,
    total: row.total,
    recipients: row.recipients,
    needs_person: row.needs_person,
    reason: row.reason,
    created_millis: Number(row.millis),
  }));
}
