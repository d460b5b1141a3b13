/** Routes for the operator, behind a token: bans, payouts, instances, config, balance sheet. Every change is logged in the books. */
import type { FastifyRequest } from 'fastify';
import { operatorKey } from '../../../bridge/session/operator-ban.ts';
import type { StratumServer } from '../../../bridge/stratum-server.ts';
import type { ConnectionRow } from '../../../bridge/threads/hub.ts';
import { formatAddress } from '../../../protocol/address.ts';
import { integer, object, optional, text } from '../../../protocol/api/schema.ts';
import { API_VERSION } from '../../../protocol/api/values.ts';
import type { NetworkName } from '../../../protocol/network.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { balanceSheet } from '../../books/sheet.ts';
import type { Sql } from '../../database/connect.ts';
import type { Edits } from '../../edits/edits.ts';
import { type Suspect, suspects } from '../../luck/luck-figures.ts';
import { LINE } from '../../luck/withholding.ts';
import type { LedgerDate } from '../../payout/earlier-minimums.ts';
import { payoutsHeld, refusedAccounts } from '../../payout/payout-hold.ts';
import type { PayoutWallet } from '../../payout/payout-wallet.ts';
import type { SharedState } from '../../shared/shared-state.ts';
import { readFigures } from '../../stats/figure-history.ts';
import { ApiRefusal } from '../api-error.ts';
import type { ServiceName } from '../documents.ts';
import { pageOf, readNumberCursor } from '../keyset.ts';
import { CHART_HOURS, tierOfPool } from '../public/chart-view.ts';
import { COSTS, FIELDS, operator, paged, pageOfQuery, type Route } from '../route.ts';
import type { BookAudit } from './book-audit.ts';
import { edit, editorOf, editRoutes } from './edit-routes.ts';
import { acceptReward, heldRewards } from './held-rewards.ts';
import { MAX_BAN_MINUTES } from './logged-bans.ts';
import * as o from './operator-documents.ts';
import { payoutsPaused } from './payout-pause.ts';
import { payoutRoutes } from './payout-routes.ts';

export type OperatorDependencies = {
  readonly sql: Sql;
  readonly shared: SharedState;
  readonly edits: Edits;
  readonly now: SteadyClock;
  readonly chain: () => LedgerDate | undefined;
  /** The options of this instance, without secrets. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly wallet: PayoutWallet;
  readonly isAccountant: () => boolean;
  readonly network: NetworkName;
  readonly connections: StratumServer['connections'];
  readonly audit: Pick<BookAudit, 'state' | 'start'>;
};

const MOST_CONNECTIONS = 200;
const SEARCHED =
  'those that a ban of this would cover: an IP address, a network or a mining address; else a part of a worker, of a program or of an IP address';

export function operatorRoutes(dependencies: OperatorDependencies): Route[] {
  const { sql, shared, edits, now, chain, config, wallet, isAccountant, network, connections, audit } = dependencies;
  /** The request itself may be long over when its act is noted. */
  const noteOf = (request: FastifyRequest) => {
    const { host, token } = editorOf(request);
    return (action: string, details: Record<string, unknown>) => sql`insert into operator_log (actor, action, details)
      values (${host}, ${action}, ${sql.json({ ...details, token } as never)})`;
  };
  const note = (request: FastifyRequest, action: string, details: Record<string, unknown>) =>
    noteOf(request)(action, details);
  const status = async (): Promise<o.OperatorStatus> => {
    const sheet = await balanceSheet(sql);
    const answer = await wallet.status();
    const [term] = await sql<{ number: bigint; holder: string }[]>`select number, holder from term`;
    return {
      api_version: API_VERSION,
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
      answer: o.bans,
      handle: async () => ({ api_version: API_VERSION, bans: (await shared.bans()).map(banDocument) }),
    }),
    operator({
      method: 'POST',
      path: '/bans',
      summary: 'Bans an address, a network or a mining address on all instances, and closes its connections',
      body: object({
        key: text({ maxLength: 128, description: '192.0.2.1, 192.0.2.0/24, 2001:db8::/32 or a mining address' }),
        minutes: integer({ minimum: 1, maximum: MAX_BAN_MINUTES }),
      }),
      answer: o.ban,
      handle: async ({ body: { key, minutes } }, { request }) => {
        const banned = operatorKey(key);
        if (banned === undefined)
          throw new ApiRefusal(
            'bad_request',
            'what is banned must be an IPv4 or IPv6 address, a network (at least /8, of IPv6 /16) or a mining address',
          );
        const ban = { key: banned, untilMillis: now() + minutes * 60_000 };
        await note(request, 'ban', { key: ban.key, minutes });
        await shared.ban(ban);
        return { api_version: API_VERSION, ...banDocument(ban) };
      },
    }),
    operator({
      method: 'DELETE',
      path: '/bans',
      summary: 'Lifts a ban',
      body: object({ key: text({ description: 'key of a ban of the list, or what was banned' }) }),
      answer: o.lifted,
      handle: async ({ body: { key } }, { request }) => {
        await note(request, 'unban', { key });
        const lifted = await shared.unban(key);
        const written = operatorKey(key) ?? key;
        return { api_version: API_VERSION, lifted: (written !== key && (await shared.unban(written))) || lifted };
      },
    }),
    operator({
      method: 'GET',
      path: '/connections',
      summary: 'Connections of this instance, the newest first',
      query: object({ search: optional(text({ maxLength: 128, description: SEARCHED })) }),
      answer: o.connections,
      handle: async ({ query }) => {
        const { all, found, rows } = await connections({ text: query.search ?? '', most: MOST_CONNECTIONS });
        return { api_version: API_VERSION, all, found, connections: rows.map(connectionDocument(network, now())) };
      },
    }),
    operator({
      method: 'GET',
      path: '/instances',
      summary: 'Instances heard of lately',
      answer: o.instances,
      handle: async () => ({
        api_version: API_VERSION,
        instances: (await shared.instances()).map((each) => ({
          instance: each.name,
          boot_id: each.instance,
          connections: Object.values(each.connections).reduce((sum, count) => sum + count, 0),
          version: each.version,
          ready: each.ready,
          accepted: each.accepted,
          rejected: each.rejected,
          height: each.height,
          waiting: each.waiting,
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
      answer: o.config,
      handle: async () => ({ api_version: API_VERSION, config }),
    }),
    operator({
      method: 'GET',
      path: '/status',
      summary: 'Balance sheet (a gap that is not 0 is an alarm), wallet, and who keeps the books',
      answer: o.operatorStatus,
      handle: () => status(),
    }),
    ...editRoutes({ edits }),
    ...payoutRoutes({
      sql,
      wallet,
      note,
      chain,
      pauseNote: (text, request) => edit(edits, 'pause_note', text, request),
    }),
    operator({
      method: 'GET',
      path: '/rewards',
      summary: 'Rewards that are held: what a node claims and why it is not confirmed',
      answer: o.heldRewards,
      handle: async () => ({ api_version: API_VERSION, rewards: await heldRewards(sql) }),
    }),
    operator({
      method: 'POST',
      path: '/rewards/:id/accept',
      summary: 'Accepts the amount of a held reward, after you have looked it up at a node that you trust',
      params: object({ id: FIELDS.blockId }),
      body: object({ amount: text({ pattern: '^[1-9]\\d{0,17}$', description: 'the claimed number of atoms' }) }),
      answer: o.acceptedReward,
      handle: async ({ params: { id }, body: { amount } }, { request }) => {
        if (!(await acceptReward(sql, id, BigInt(amount))))
          throw new ApiRefusal('conflict', 'no reward of this amount is held for this block');
        await note(request, 'reward_accept', { block: id, amount });
        return { api_version: API_VERSION, accepted: amount };
      },
    }),
    operator({
      method: 'GET',
      path: '/audit',
      summary: 'The audit of the books that this instance makes, or made last: how far it is, or what it found',
      answer: o.audit,
      handle: async () => ({ api_version: API_VERSION, ...audit.state }),
    }),
    operator({
      method: 'POST',
      path: '/audit',
      summary: 'Starts an audit of the books, the ledger and the wallet beside the running pool, if none runs here',
      answer: o.audit,
      handle: async (_input, { request }) => ({ api_version: API_VERSION, ...audit.start(noteOf(request)) }),
    }),
    operator({
      method: 'GET',
      path: '/withholding',
      summary: 'Accounts that found too few blocks for their work, newest first',
      answer: o.withholding,
      handle: async () => ({
        api_version: API_VERSION,
        line: LINE,
        suspects: (await suspects(sql)).map(suspectDocument),
      }),
    }),
    operator({
      method: 'GET',
      path: '/history',
      summary:
        'Shares by verdict, books’ lag, payouts under way, the wallet’s balance and connections by front end over time',
      query: object({ hours: FIELDS.hours }),
      answer: o.operatorHistory,
      cost: COSTS.chart,
      handle: async ({ query: { hours = CHART_HOURS.default } }) => {
        const tier = tierOfPool(hours);
        const first = Math.floor(now() / 1000 / tier) - (hours * 3600) / tier;
        const points = await readFigures(sql, tier, first);
        return {
          api_version: API_VERSION,
          seconds_per_point: tier,
          points: points.map((one) => ({
            at_millis: one.bucket * tier * 1000,
            accepted: one.accepted,
            refused: one.refused,
            books_behind: one.booksBehind,
            payouts_open: one.payoutsOpen,
            wallet_spendable: one.walletSpendable === null ? null : String(one.walletSpendable),
            front_ends: one.frontEnds,
          })),
        };
      },
    }),
    operator({
      method: 'GET',
      path: '/log',
      summary: 'What operators did, newest first',
      query: paged,
      answer: o.operatorLog,
      handle: async ({ query }) => {
        const { limit, cursor } = pageOfQuery(query);
        const before = readNumberCursor(cursor) ?? null;
        const rows = await sql<
          { id: bigint; at: Date; actor: string; action: string; details: unknown }[]
        >`select id, at,
          actor, action, details from operator_log where ${before}::bigint is null or id < ${before}::bigint
          order by id desc limit ${limit + 1}`;
        const page = pageOf(rows, limit, ({ id }) => `${id}-0`);
        const entries = page.rows.map((row) => ({
          at_millis: row.at.getTime(),
          actor: row.actor,
          action: row.action,
          details: row.details,
        }));
        return { api_version: API_VERSION, entries, ...page.more };
      },
    }),
  ];
}

const connectionDocument =
  (network: NetworkName, nowMillis: number) =>
  (row: ConnectionRow): o.ConnectionsDocument['connections'][number] => ({
    ip: row.address,
    service: row.service as ServiceName,
    address: row.miner === null ? null : formatAddress(row.miner.account, network),
    worker: row.miner?.worker ?? '',
    agent: row.miner?.agent ?? '',
    since_millis: Math.round(nowMillis - row.ageMillis),
    accepted: row.accepted,
    stale: row.stale,
    rejected: row.rejected,
  });

const suspectDocument = (suspect: Suspect): o.WithholdingDocument['suspects'][number] => ({
  address: suspect.address,
  expected: suspect.expected,
  found: suspect.found,
  evidence: suspect.evidence,
  withheld_work: String(suspect.withheldWork),
  named_millis: suspect.namedMillis,
  worked_millis: suspect.workedMillis,
});

const banDocument = ({ key, untilMillis }: { key: string; untilMillis: number }) => ({
  key,
  until_millis: untilMillis,
});
