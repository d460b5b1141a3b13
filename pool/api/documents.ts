/**
 * Documents of the pool's API (docs/pool-api.md): the answers of its routes, as schemas from which types, checks and
 * the OpenAPI document are made. The dashboard imports the types alone. Amounts are atoms and work is hashes, both as
 * decimal text; hash rates are numbers per second; times are Unix milliseconds. Routes are under `api/v1/`, relative to
 * where the page is served.
 */

import {
  described,
  either,
  flag,
  type Infer,
  integer,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  type Schema,
  text,
} from '../../protocol/api/schema.ts';
import {
  address,
  amount,
  bigNumber,
  count,
  height,
  identifier,
  millis,
  network,
  version,
} from '../../protocol/api/values.ts';
import { WIRE_INTEGER_PATTERN } from '../../protocol/transactions/address-proof.ts';
import { SERVICES } from '../journal/journal-record.ts';
import { NEWS_GROUPS } from '../webhooks/news-groups.ts';

export const service = oneOf(SERVICES, 'reward scheme');
export type ServiceName = Infer<typeof service>;

/** Absent on the last page. */
export const nextCursor = optional(text({ description: 'cursor of the next page; absent on the last' }));

/** A list in pages. */
export const page = <const N extends string, T>(name: N, items: Schema<T>, title: string) =>
  object(
    { api_version: version, [name]: list(items), next_cursor: nextCursor } as {
      readonly api_version: typeof version;
      readonly next_cursor: typeof nextCursor;
    } & { readonly [K in N]: Schema<readonly T[]> },
    title,
  );

/** Hashes per second over ten minutes, an hour and a day; over less where the pool, or the miner, is younger than that. */
export const rates = object({ ten_minutes: number(), hour: number(), day: number() }, 'Rates');
export type RatesDocument = Infer<typeof rates>;

/** Of every count of workers. */
const ONLINE = 'online: with a share in the last ten minutes';

const serviceFigures = object(
  {
    service,
    fee_ppm: count,
    fee_changes: described(
      list(object({ fee_ppm: count, from_slice: count, from_height: height })),
      'fees that are announced, in their order: each holds for work from its slice on, which begins with this cut',
    ),
    window_thousandths: optional(described(count, 'the window in expected blocks, for lists of the present slice')),
    window_changes: optional(
      described(
        list(object({ window_thousandths: count, from_slice: count, from_height: height })),
        'windows that are announced, in expected blocks: each holds for lists of its slice and later ones',
      ),
    ),
    miners: described(count, 'with a worker that is online'),
    workers: described(count, ONLINE),
    hash_rate: rates,
    blocks_found: count,
    blocks_paid: count,
    effort: number({ description: 'work since the last block over the work of one: 1 is what is expected' }),
    luck: described(
      object({ hundred: nullable(number()), day: nullable(number()) }),
      'found over expected blocks: the last hundred, and a day; null while there were none',
    ),
    last_block_millis: nullable(millis),
  },
  'Service',
);
export type ServiceDocument = Infer<typeof serviceFigures>;

export const pool = object(
  {
    api_version: version,
    name: text(),
    network: text(),
    pool_address: address,
    services: list(serviceFigures),
    network_figures: object({
      height,
      hash_rate: number(),
      hash_rate_millis: described(count, 'how far back `hash_rate` reaches'),
      block_work: bigNumber,
      synced: flag(),
    }),
    payouts: object({
      minimum: amount,
      minimum_changes: optional(
        described(
          list(object({ minimum: amount, from_millis: millis })),
          'higher minimums that are announced, and when each begins to count',
        ),
      ),
      interval_seconds: number(),
      paused: flag(),
      resumed_millis: optional(
        described(nullable(millis), 'when payouts were last resumed, or the database fell back to an older copy'),
      ),
      pause_note: described(nullable(text()), 'why, in the words of the operator; escape it where it is shown'),
    }),
    notice: described(nullable(text()), 'what the operator says to everybody; escape it where it is shown'),
    paid_atoms: amount,
    since_millis: described(nullable(millis), "about when the pool's first share came; rates are taken since then"),
    cuts_until_paid: described(
      nullable(number()),
      'cuts from a block to its reward, in the median of the last hundred',
    ),
    slice_cuts: count,
    now_millis: millis,
  },
  'Pool',
);
export type PoolDocument = Infer<typeof pool>;

export const chart = object(
  {
    api_version: version,
    seconds_per_point: count,
    points: list(
      object({
        at_millis: described(millis, 'when it begins; times without work have no point'),
        seconds: described(
          count,
          'how many seconds of it were counted: fewer in the first one and in the one being filled',
        ),
        hash_rate: number(),
        workers: nullable(count),
        shares: nullable(count),
      }),
    ),
  },
  'Chart',
);
export type ChartDocument = Infer<typeof chart>;

export const history = object(
  {
    api_version: version,
    seconds_per_point: count,
    points: list(
      object({
        at_millis: described(millis, 'when it begins; times without a block and a payment have no point'),
        blocks: count,
        luck: described(nullable(number()), 'expected over actual work of its blocks: 1 is what is expected'),
        block_work: described(
          nullable(bigNumber),
          "the network's difficulty: work of one block, in the mean of its blocks",
        ),
        paid: described(amount, 'payments sent'),
      }),
    ),
  },
  'History',
);
export type HistoryDocument = Infer<typeof history>;

export const blockState = oneOf(['found', 'accepted', 'registered', 'held', 'paid', 'expired', 'refused']);
export type BlockState = Infer<typeof blockState>;

const blockFields = {
  block_id: identifier,
  service,
  anchor_height: height,
  slice: count,
  found_millis: millis,
  finder: address,
  worker: text(),
  state: blockState,
  reason: nullable(text()),
  effort: number(),
  reward: nullable(amount),
  credited: flag('whether its slice has its credit list: then a proof can be asked for'),
} as const;
const poolBlock = object(blockFields, 'PoolBlock');
export type PoolBlock = Infer<typeof poolBlock>;
export const blocks = page('blocks', poolBlock, 'Blocks');
export type BlocksDocument = Infer<typeof blocks>;
export const block = object({ api_version: version, ...blockFields }, 'Block');
export type BlockDocument = Infer<typeof block>;

const minerSummary = object(
  { address, workers: described(count, ONLINE), hash_rate: rates, last_share_millis: nullable(millis) },
  'MinerSummary',
);
export type MinerSummary = Infer<typeof minerSummary>;
export const miners = page('miners', minerSummary, 'Miners');
export type MinersDocument = Infer<typeof miners>;

const leader = object(
  {
    address,
    blocks: count,
    reward: described(amount, 'of those that are paid'),
    luckiest: described(number(), 'the least effort that one of them took: 1 is what is expected'),
  },
  'Leader',
);
export type LeaderDocument = Infer<typeof leader>;
export const leaders = object({ api_version: version, leaders: list(leader) }, 'Leaders');
export type LeadersDocument = Infer<typeof leaders>;

const bestFields = {
  work: described(bigNumber, 'hashes that one as good takes on average'),
  worker: text(),
  at_millis: millis,
} as const;
const bestOfMiner = object({ address, ...bestFields }, 'BestOfMiner');
export type BestOfMiner = Infer<typeof bestOfMiner>;
export const bestShares = object({ api_version: version, best_shares: list(bestOfMiner) }, 'BestShares');
export type BestSharesDocument = Infer<typeof bestShares>;

export const miner = object(
  {
    api_version: version,
    address,
    since_millis: described(millis, 'when the first share of the address came'),
    hash_rate: rates,
    online: described(flag(), 'one of its workers is'),
    workers: described(count, ONLINE),
    accepted: count,
    stale: count,
    rejected: count,
    last_share_millis: nullable(millis),
    balance: amount,
    in_flight: amount,
    paid: amount,
    advance: described(
      amount,
      'paid beyond what was credited, after the database fell back to an older copy; income makes up for it first',
    ),
    advanced: described(amount, 'what it was paid so in all, each time that the database fell back'),
    pending_estimate: described(amount, 'about what the window and its blocks not credited yet will bring'),
    payout_minimum: amount,
    payout_minimums: described(
      list(object({ amount, until_millis: millis })),
      'higher thresholds of the last month and when each ended, newest first; the highest of its time counts',
    ),
    best_share: described(nullable(object(bestFields)), 'the share with the best hash so far'),
    luck: described(
      list(
        object({
          service,
          expected: described(number(), 'blocks that its shares were expected to be'),
          found: described(count, 'blocks that it found in that time'),
          probability: described(number(), 'the chance of luck as far from what is expected, by chance alone: 0 to 1'),
        }),
      ),
      'by service; slices are counted when the one after them is closed',
    ),
  },
  'Miner',
);
export type MinerDocument = Infer<typeof miner>;

const worker = object(
  {
    name: text(),
    service,
    online: described(flag(), 'it sent a share in the last ten minutes'),
    hash_rate: rates,
    accepted: count,
    stale: count,
    rejected: count,
    last_share_millis: nullable(millis),
  },
  'Worker',
);
export type WorkerDocument = Infer<typeof worker>;
export const workers = page('workers', worker, 'Workers');
export type WorkersDocument = Infer<typeof workers>;

const credit = object({ service, slice: count, amount, reward: amount, blocks: count, made_millis: millis }, 'Credit');
export type CreditDocument = Infer<typeof credit>;
export const credits = page('credits', credit, 'Credits');
export type CreditsDocument = Infer<typeof credits>;
export const earnings = object(
  {
    api_version: version,
    days: described(
      list(object({ at_millis: described(millis, 'when the day begins, in UTC'), amount })),
      'what was credited on each of the last thirty days since the first share, oldest first; the last one is today',
    ),
  },
  'Earnings',
);
export type EarningsDocument = Infer<typeof earnings>;

export const payoutState = oneOf(['reserved', 'submitting', 'submitted', 'finalized', 'void']);
export type PayoutStateName = Infer<typeof payoutState>;

const payment = object(
  {
    payout_id: text(),
    state: payoutState,
    address,
    amount,
    transaction_id: nullable(identifier),
    created_millis: millis,
    final_height: nullable(height),
  },
  'Payment',
);
export type PaymentDocument = Infer<typeof payment>;
export const payments = page('payments', payment, 'Payments');
export type PaymentsDocument = Infer<typeof payments>;

const port = nullable(integer({ maximum: 65_535 }));
export const connect = object(
  {
    api_version: version,
    services: list(
      object({
        service,
        port,
        tls: flag(),
        websocket_port: port,
        websocket_path: text({
          description: "path of the WebSocket on this page's own origin, relative to the page",
        }),
        fixed: described(
          list(object({ port: count, work: bigNumber })),
          'further ports, where every share has this work',
        ),
      }),
    ),
    downloads: described(
      list(
        object({
          name: text(),
          bytes: count,
          sha256: text(),
          path: text({ description: 'relative to the page' }),
        }),
      ),
      'files for miners that this pool hands out',
    ),
  },
  'Connect',
);
export type ConnectDocument = Infer<typeof connect>;

export const proofRequest = object(
  {
    version: count,
    network,
    address,
    purpose: text(),
    challenge: text(),
    created_millis: millis,
    expires_millis: millis,
  },
  'AddressProofRequest',
);
export const addressProof = object(
  {
    version: described(
      either(count, text({ pattern: WIRE_INTEGER_PATTERN })),
      'decimal text where a protocol module signed',
    ),
    address,
    challenge: text(),
    public_key: text(),
    signature: text(),
  },
  'AddressProof',
);
export const thresholdChange = object({ address, payout_min_atoms: amount }, 'PayoutThreshold');
export const workerChange = object({ address, worker: text(), named: flag() }, 'NamedWorker');

export const webhookChange = object(
  {
    address,
    secret: described(
      nullable(text()),
      'what the requests are signed with, shown this once; null where it was taken away',
    ),
  },
  'MinerWebhook',
);

export const newsGroups = described(
  list(oneOf(NEWS_GROUPS), { maxItems: NEWS_GROUPS.length }),
  'which news; all of them where it is missing',
);

export const mailChange = object(
  {
    address,
    state: oneOf(['off', 'unconfirmed', 'on'], 'unconfirmed: a mail with a link to confirm it is on its way'),
  },
  'MinerMail',
);

const channelState = described(
  object({
    state: oneOf(['none', 'waiting', 'working', 'failing', 'taken_away']),
    last_success_millis: nullable(millis),
    last_failure_millis: nullable(millis),
    failure: nullable(oneOf(['refused', 'unreachable'])),
  }),
  'how the last messages to this place of the address went; its URL is shown to nobody',
);

export const notifications = object(
  {
    api_version: version,
    webhooks: flag('whether the pool sends webhooks to miners'),
    mail: flag('whether the pool sends e-mail to miners'),
    webhook: channelState,
    discord: channelState,
    telegram: channelState,
    ntfy: channelState,
  },
  'Notifications',
);
export type NotificationsDocument = Infer<typeof notifications>;

/** https://www.jsonfeed.org/version/1.1/ */
export const feed = object(
  {
    version: text(),
    title: text(),
    home_page_url: optional(text()),
    items: list(
      object({
        id: text({ description: 'stays the same while the entry changes' }),
        title: text(),
        content_text: text(),
        date_published: text({ description: 'in UTC' }),
        url: optional(text()),
      }),
    ),
  },
  'Feed',
);
export type FeedDocument = Infer<typeof feed>;

const partState = oneOf(['working', 'limited', 'away']);
export const status = object(
  {
    api_version: version,
    state: described(partState, 'limited: miners are served, but not everything works; away: nobody is served'),
    parts: list(
      object({
        name: oneOf(['mining', 'node', 'database', 'books', 'payouts']),
        state: partState,
        note: text({ description: 'for people; escape it where it is shown' }),
      }),
    ),
    front_ends: described(
      list(object({ name: text(), state: partState, connections: count })),
      'the instances that serve miners, as far as this one knows',
    ),
    now_millis: millis,
  },
  'Status',
);
export type StatusDocument = Infer<typeof status>;

/** GET api/v1/live, a WebSocket; the first frame is the pool's figures. */
export type LiveFrame =
  | { readonly type: 'pool'; readonly data: PoolDocument }
  | { readonly type: 'block'; readonly data: PoolBlock }
  | { readonly type: 'payment'; readonly data: PaymentDocument };

export const error = object(
  {
    api_version: version,
    error: object({ code: text(), message: text(), retry_after_millis: optional(integer()) }),
  },
  'Refusal',
);
export type ErrorDocument = Infer<typeof error>;
