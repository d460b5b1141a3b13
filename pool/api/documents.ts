/**
 * Documents of the pool's API (docs/pool.md, API): what its routes answer and the page reads. Types alone, so that the
 * dashboard may import them. Amounts are atoms and work is hashes, both as decimal text; hash rates are numbers per second;
 * times are Unix milliseconds. Routes stand under `api/v1/`, relative to where the page is served.
 */

export type ServiceName = 'pplns' | 'solo';
/** Hashes per second over ten minutes, an hour and a day. */
export type RatesDocument = { readonly ten_minutes: number; readonly hour: number; readonly day: number };

export type ServiceDocument = {
  readonly service: ServiceName;
  readonly fee_ppm: number;
  readonly miners: number;
  readonly workers: number;
  readonly hash_rate: RatesDocument;
  readonly blocks_found: number;
  readonly blocks_paid: number;
  /** Work since the last block over the work of one: 1 is what is expected. */
  readonly effort: number;
  /** Found over expected blocks: the last hundred, and a day. Null while there were none. */
  readonly luck: { readonly hundred: number | null; readonly day: number | null };
  readonly last_block_millis: number | null;
};

/** GET api/v1/pool */
export type PoolDocument = {
  readonly api_version: 1;
  readonly name: string;
  readonly network: string;
  readonly pool_address: string;
  readonly services: readonly ServiceDocument[];
  readonly network_figures: {
    readonly height: number;
    readonly hash_rate: number;
    readonly block_work: string;
    readonly synced: boolean;
  };
  readonly payouts: { readonly minimum: string; readonly interval_seconds: number; readonly paused: boolean };
  readonly paid_atoms: string;
  readonly slice_cuts: number;
  readonly now_millis: number;
};

/** GET api/v1/pool/chart?hours=24 and api/v1/miners/{address}/chart?hours=24 */
export type ChartDocument = {
  readonly api_version: 1;
  readonly seconds_per_point: number;
  readonly points: readonly {
    readonly at_millis: number;
    readonly hash_rate: number;
    readonly workers: number | null;
  }[];
};

export type BlockState = 'found' | 'accepted' | 'registered' | 'held' | 'paid' | 'expired' | 'refused';

export type PoolBlock = {
  readonly block_id: string;
  readonly service: ServiceName;
  readonly anchor_height: number;
  readonly slice: number;
  readonly found_millis: number;
  readonly finder: string;
  readonly worker: string;
  readonly state: BlockState;
  readonly reason: string | null;
  readonly effort: number;
  readonly reward: string | null;
  /** Whether its slice's credit list is made: then a proof can be asked for. */
  readonly credited: boolean;
};

/** GET api/v1/blocks?service=&state=&finder=&cursor=&limit= */
export type BlocksDocument = {
  readonly api_version: 1;
  readonly blocks: readonly PoolBlock[];
  readonly next_cursor?: string;
};
/** GET api/v1/blocks/{id} */
export type BlockDocument = { readonly api_version: 1 } & PoolBlock;

export type MinerSummary = {
  readonly address: string;
  readonly workers: number;
  readonly hash_rate: RatesDocument;
  readonly last_share_millis: number | null;
};
/** GET api/v1/miners?cursor=&limit=, the fastest first */
export type MinersDocument = {
  readonly api_version: 1;
  readonly miners: readonly MinerSummary[];
  readonly next_cursor?: string;
};

/** GET api/v1/miners/{address} */
export type MinerDocument = {
  readonly api_version: 1;
  readonly address: string;
  readonly hash_rate: RatesDocument;
  readonly workers: number;
  readonly accepted: number;
  readonly stale: number;
  readonly rejected: number;
  readonly last_share_millis: number | null;
  readonly balance: string;
  readonly in_flight: string;
  readonly paid: string;
  /** Paid beyond what was credited, after the database fell back to an older copy; income makes up for it first. */
  readonly advance: string;
  /** An estimate of what the window and its blocks not credited yet will bring. */
  readonly pending_estimate: string;
  readonly payout_minimum: string;
};

export type WorkerDocument = {
  readonly name: string;
  readonly service: ServiceName;
  readonly online: boolean;
  readonly hash_rate: RatesDocument;
  readonly accepted: number;
  readonly stale: number;
  readonly rejected: number;
  readonly last_share_millis: number | null;
};
/** GET api/v1/miners/{address}/workers?cursor=&limit= */
export type WorkersDocument = {
  readonly api_version: 1;
  readonly workers: readonly WorkerDocument[];
  readonly next_cursor?: string;
};

export type CreditDocument = {
  readonly service: ServiceName;
  readonly slice: number;
  readonly amount: string;
  readonly reward: string;
  readonly blocks: number;
  readonly made_millis: number;
};
/** GET api/v1/miners/{address}/credits?cursor=&limit= */
export type CreditsDocument = {
  readonly api_version: 1;
  readonly credits: readonly CreditDocument[];
  readonly next_cursor?: string;
};

export type PayoutStateName = 'reserved' | 'submitting' | 'submitted' | 'finalized' | 'void';
export type PaymentDocument = {
  readonly payout_id: string;
  readonly state: PayoutStateName;
  readonly address: string;
  readonly amount: string;
  readonly transaction_id: string | null;
  readonly created_millis: number;
  readonly final_height: number | null;
};
/** GET api/v1/payments?address=&cursor=&limit= */
export type PaymentsDocument = {
  readonly api_version: 1;
  readonly payments: readonly PaymentDocument[];
  readonly next_cursor?: string;
};

/** GET api/v1/connect */
export type ConnectDocument = {
  readonly api_version: 1;
  readonly services: readonly {
    readonly service: ServiceName;
    readonly port: number | null;
    readonly tls: boolean;
    readonly websocket_port: number | null;
    /** Path of the WebSocket on this page's own origin, relative to the page. */
    readonly websocket_path: string;
  }[];
};

/** GET api/v1/live, a WebSocket; the first frame is the pool's figures. */
export type LiveFrame =
  | { readonly type: 'pool'; readonly data: PoolDocument }
  | { readonly type: 'block'; readonly data: PoolBlock }
  | { readonly type: 'payment'; readonly data: PaymentDocument };

/** Operator routes, under api/v1/operator/, with `Authorization: Bearer TOKEN`. */
export type OperatorStatus = {
  readonly api_version: 1;
  readonly sheet: {
    readonly rewards: string;
    readonly uncredited: string;
    readonly balances: string;
    readonly in_flight: string;
    readonly paid: string;
    readonly pool_fees: string;
    readonly network_fees: string;
    readonly gap: string;
  };
  readonly wallet: {
    readonly ready: boolean;
    readonly reason: string | null;
    readonly spendable: string | null;
    readonly outputs: number | null;
  };
  readonly payouts_paused: boolean;
  /** Why the accountant pays nothing: the books and the wallet do not agree. */
  readonly payouts_held: string | null;
  /** Accounts that are not paid because their books fail the audit before a payout, and why. */
  readonly accounts_refused: readonly { readonly account: number; readonly address: string; readonly why: string }[];
  readonly accountant: { readonly term: string; readonly holder: string; readonly here: boolean };
};
export type InstanceDocument = {
  readonly instance: string;
  readonly boot_id: string;
  readonly connections: number;
  readonly accountant: boolean;
  readonly started_millis: number;
  readonly seen_millis: number;
};
export type InstancesDocument = { readonly api_version: 1; readonly instances: readonly InstanceDocument[] };
export type BansDocument = {
  readonly api_version: 1;
  readonly bans: readonly { readonly key: string; readonly until_millis: number }[];
};
export type PayoutAction = 'release' | 'void' | 'sent';
export type QueueDocument = {
  readonly api_version: 1;
  readonly payouts: readonly {
    readonly payout_id: string;
    /** Its place in the wallet's record, once the wallet was asked. */
    readonly number: number | null;
    readonly state: PayoutStateName;
    readonly total: string;
    readonly recipients: number;
    readonly items: readonly { readonly address: string; readonly amount: string }[];
    readonly needs_person: string | null;
    readonly reason: string | null;
    readonly created_millis: number;
    /** What the operator can do about it now. */
    readonly actions: readonly PayoutAction[];
  }[];
};
/** GET api/v1/operator/rewards: blocks whose reward is held. */
export type HeldRewardsDocument = {
  readonly api_version: 1;
  readonly rewards: readonly {
    readonly block_id: string;
    readonly service: ServiceName;
    readonly anchor_height: number;
    readonly claimed: string | null;
    readonly reason: string | null;
    readonly accepted: string | null;
  }[];
};
export type OperatorLogDocument = {
  readonly api_version: 1;
  readonly entries: readonly {
    readonly at_millis: number;
    readonly actor: string;
    readonly action: string;
    readonly details: object;
  }[];
};

export type ErrorDocument = {
  readonly api_version: 1;
  readonly error: { readonly code: string; readonly message: string };
};
