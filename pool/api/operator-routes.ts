/** Routes for the operator, behind a token: bans, payouts, instances, config, balance sheet. Every change is logged in the books. */
import type { FastifyRequest } from 'fastify';
import { clientKey } from '../../runtime/client-address.ts';
import { balanceSheet } from '../books/sheet.ts';
import type { Sql } from '../database/connect.ts';
import { payoutsHeld, refusedAccounts } from '../payout/payout-hold.ts';
import type { PayoutWallet } from '../payout/payout-wallet.ts';
import type { SharedState } from '../shared/shared-state.ts';
import { ApiRefusal } from './api-error.ts';
import type {
  BansDocument,
  HeldRewardsDocument,
  InstancesDocument,
  OperatorLogDocument,
  OperatorStatus,
} from './documents.ts';
import { acceptReward, heldRewards } from './held-rewards.ts';
import { payoutsPaused } from './payout-pause.ts';
import { payoutRoutes } from './payout-routes.ts';
import { bodyObject, PAGE, pageOfRequest, pathPart, type Route } from './route.ts';

export type OperatorDependencies = {
  readonly sql: Sql;
  readonly shared: SharedState;
  readonly now: () => number;
  /** Options as they were read, secrets left out. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly wallet: PayoutWallet;
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
    const answer = await wallet.status();
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
      payouts_held: await payoutsHeld(sql),
      accounts_refused: await refusedAccounts(sql),
      accountant: { term: String(term?.number ?? 0n), holder: term?.holder ?? '', here: isAccountant() },
    };
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
        const { key, minutes } = bodyObject(request);
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
        const { key } = bodyObject(request);
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
    ...payoutRoutes({ sql, wallet, note }, operator),
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
        const { amount } = bodyObject(request);
        if (!/^[0-9a-f]{96}$/.test(id)) throw new ApiRefusal('bad_request', 'a block is named by 96 hex characters');
        if (typeof amount !== 'string' || !/^[1-9]\d{0,17}$/.test(amount))
          throw new ApiRefusal('bad_request', 'amount is the claimed number of atoms');
        if (!(await acceptReward(sql, id, BigInt(amount))))
          throw new ApiRefusal('conflict', 'no reward of this amount is held for this block');
        await note(request, 'reward_accept', { block: id, amount });
        return { api_version: 1, accepted: amount };
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
