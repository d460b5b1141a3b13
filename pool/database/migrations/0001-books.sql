-- The books (docs/pool.md). Amounts are atoms in bigint, work is an exact integer in numeric(39,0). Services: 0 pplns, 1 solo.

create table settings (
  name text primary key,
  value text not null
);

-- Fences the one active accountant: every transaction of it checks that its term is still the newest.
create table term (
  one boolean primary key default true check (one),
  number bigint not null,
  holder text not null,
  since timestamptz not null default now()
);
insert into term (number, holder) values (0, 'nobody');

create table accounts (
  id integer generated always as identity primary key,
  payload bytea not null unique check (octet_length(payload) = 49),
  address text not null unique,
  balance bigint not null default 0 check (balance >= 0),
  in_flight bigint not null default 0 check (in_flight >= 0),
  paid bigint not null default 0 check (paid >= 0),
  payout_min bigint check (payout_min > 0),
  created_at timestamptz not null default now()
);

create table workers (
  id integer generated always as identity primary key,
  account_id integer not null references accounts,
  service smallint not null,
  name text not null,
  accepted bigint not null default 0,
  work numeric(39,0) not null default 0,
  last_share_at timestamptz,
  unique (account_id, service, name)
);

-- How far each boot's journal has been taken in: a replay below this counts nothing.
create table journal_positions (
  boot_id bytea primary key,
  through bigint not null,
  updated_at timestamptz not null default now()
);

-- Which account a connection's extranonces belong to, written before its first job.
create table ownerships (
  owner bytea primary key,
  service smallint not null,
  account_id integer not null references accounts,
  worker_id integer not null references workers,
  at timestamptz not null default now()
);

-- Work of the open slice. Closing a slice moves it into slices.leaves and empties this.
create table open_work (
  service smallint not null,
  account_id integer not null references accounts,
  work numeric(39,0) not null check (work > 0),
  primary key (service, account_id)
);

-- leaves: rows of (u32 account id, u128 work), little-endian, ascending by the account's payload. Never pruned.
create table slices (
  service smallint not null,
  number integer not null,
  window_work numeric(78,0) not null check (window_work > 0),
  opened_height bigint not null,
  closed_height bigint,
  total numeric(39,0),
  root bytea,
  leaves bytea,
  primary key (service, number),
  check ((closed_height is null) = (root is null))
);

-- Work since the service's last block: what the block's effort is told from.
create table effort (
  service smallint primary key,
  work numeric(39,0) not null
);
insert into effort values (0, 0), (1, 0);

create table shares (
  boot_id bytea not null,
  sequence bigint not null,
  service smallint not null,
  account_id integer not null,
  worker_id integer not null,
  slice integer not null,
  work numeric(39,0) not null,
  at timestamptz not null
) partition by range (at);

create table blocks (
  block_id bytea primary key check (octet_length(block_id) = 48),
  service smallint not null,
  account_id integer not null references accounts,
  worker_id integer not null references workers,
  anchor_height bigint not null,
  slice integer not null,
  target_work numeric(78,0) not null,
  effort_work numeric(39,0) not null,
  found_at timestamptz not null,
  state text not null check (state in ('found', 'accepted', 'registered', 'paid', 'expired', 'refused')),
  reason text,
  reward bigint check (reward >= 0),
  reward_transaction bytea,
  reward_output integer,
  settled_height bigint,
  credit_list integer,
  check ((state = 'paid') = (reward is not null))
);
create index blocks_by_slice on blocks (service, slice);
create index blocks_open on blocks (anchor_height) where state in ('found', 'accepted', 'registered');
create index blocks_by_time on blocks (found_at desc);

-- One list per service and slice: the rewards of all blocks whose anchor lies in the slice.
-- credits: rows of (u32 account id, u64 atoms), little-endian, ascending by the account's payload.
create table credit_lists (
  id integer generated always as identity primary key,
  service smallint not null,
  slice integer not null,
  blocks integer not null,
  reward bigint not null,
  fee bigint not null,
  fee_ppm integer not null,
  credited bigint not null,
  window_parts jsonb not null,
  root bytea not null,
  credits bytea not null,
  made_height bigint not null,
  made_at timestamptz not null default now(),
  unique (service, slice),
  check (reward = fee + credited)
);
alter table blocks add foreign key (credit_list) references credit_lists;

create table payouts (
  id uuid primary key,
  state text not null check (state in ('reserved', 'submitting', 'submitted', 'finalized', 'void')),
  request_table text,
  transaction_id bytea,
  fee bigint check (fee >= 0),
  final_height bigint,
  reason text,
  needs_person text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index payouts_open on payouts (created_at) where state in ('reserved', 'submitting', 'submitted');

create table payout_items (
  payout_id uuid not null references payouts,
  account_id integer not null references accounts,
  amount bigint not null check (amount > 0),
  primary key (payout_id, account_id)
);
create index payout_items_by_account on payout_items (account_id);

-- Merging the hot wallet's small outputs; its fees are the pool's own cost.
create table compoundings (
  id uuid primary key,
  state text not null check (state in ('submitting', 'submitted', 'finalized', 'void')),
  fee bigint check (fee >= 0),
  created_at timestamptz not null default now()
);

create table operator_log (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  details jsonb not null default '{}'
);
