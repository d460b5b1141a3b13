-- Figures and news (docs/pool.md, statistics and webhooks). Nothing here is money: the books never read these tables.

-- Work taken in and not folded into the buckets yet; written in the transaction that took the shares, so that each
-- counts once. packed: rows of (u32 worker id, u32 minute, u32 shares, u128 work), little-endian.
create table stats_pending (
  id bigint generated always as identity primary key,
  packed bytea not null
);

-- Recent work by worker: minutes (tier 60), ten minutes (600) and hours (3600), each kept only as long as a rate needs.
-- packed: rows of (u32 worker id, u32 shares, u128 work), ascending by worker id.
create table stats_recent (
  tier integer not null,
  bucket integer not null,
  version bigint not null,
  packed bytea not null,
  primary key (tier, bucket)
);
create sequence stats_versions;
create index stats_recent_by_version on stats_recent (version);

-- Charts: one row per day with 24 hours of work. Written when an hour is over, bounded by retention.
create table worker_days (
  worker_id integer not null references workers,
  day integer not null,
  hours numeric(39,0)[] not null,
  primary key (worker_id, day)
);
create index worker_days_by_day on worker_days (day);
create table account_days (
  account_id integer not null references accounts,
  day integer not null,
  hours numeric(39,0)[] not null,
  primary key (account_id, day)
);
create index account_days_by_day on account_days (day);

-- The pool as a whole, by ten minutes (tier 600) and by hour (tier 3600).
create table pool_history (
  tier integer not null,
  service smallint not null,
  bucket integer not null,
  shares bigint not null,
  work numeric(39,0) not null,
  workers integer not null,
  accounts integer not null,
  primary key (tier, service, bucket)
);

-- The last hour that went into worker_days and account_days.
create table stats_state (
  one boolean primary key default true check (one),
  rolled_hour integer not null
);

-- News, in order, for live pages and webhooks. Written by triggers, so that only changes in the books are reported.
create table events (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  kind text not null,
  data jsonb not null
);
create index events_by_time on events (at);

create function tell(event_kind text, event_data jsonb) returns void language plpgsql as $$
declare
  event_id bigint;
begin
  insert into events (kind, data) values (event_kind, event_data) returning id into event_id;
  perform pg_notify('svc_pool_events', event_id::text);
end $$;

create function tell_block() returns trigger language plpgsql as $$
declare
  base jsonb;
begin
  select jsonb_build_object('block_id', encode(new.block_id, 'hex'), 'service', (array['pplns', 'solo'])[new.service + 1],
    'anchor_height', new.anchor_height, 'finder', a.address, 'worker', w.name) into base
    from accounts a, workers w where a.id = new.account_id and w.id = new.worker_id;
  if tg_op = 'INSERT' then
    perform tell('block_found', base);
  elsif new.state = 'paid' and old.state <> 'paid' then
    perform tell('block_paid', base || jsonb_build_object('reward', new.reward::text,
      'transaction_id', encode(new.reward_transaction, 'hex'), 'output_index', new.reward_output));
  elsif new.state = 'expired' and old.state <> 'expired' then
    perform tell('block_expired', base);
  end if;
  return null;
end $$;
create trigger blocks_tell after insert or update of state on blocks for each row execute function tell_block();

create function tell_payout() returns trigger language plpgsql as $$
declare
  kind text := case new.state when 'submitted' then 'payout_sent' when 'finalized' then 'payout_final'
    when 'void' then 'payout_void' end;
begin
  if kind is not null and new.state <> old.state then
    perform tell(kind, jsonb_build_object('payout_id', new.id, 'transaction_id', encode(new.transaction_id, 'hex'),
      'recipients', (select jsonb_agg(jsonb_build_object('address', a.address, 'amount', i.amount::text) order by a.id)
        from payout_items i join accounts a on a.id = i.account_id where i.payout_id = new.id)));
  end if;
  if new.needs_person is not null and new.needs_person is distinct from old.needs_person then
    perform tell('payout_needs_person', jsonb_build_object('payout_id', new.id, 'why', new.needs_person));
  end if;
  return null;
end $$;
create trigger payouts_tell after update on payouts for each row execute function tell_payout();

create function tell_slice() returns trigger language plpgsql as $$
begin
  if old.closed_height is null and new.closed_height is not null then
    perform tell('slice_closed', jsonb_build_object('service', (array['pplns', 'solo'])[new.service + 1],
      'slice', new.number, 'total', new.total::text, 'root', encode(new.root, 'hex'), 'height', new.closed_height));
  end if;
  return null;
end $$;
create trigger slices_tell after update on slices for each row execute function tell_slice();

-- The last event sent to each webhook, and when it is tried again.
create table webhooks (
  url text primary key,
  told bigint not null,
  attempts integer not null default 0,
  next_at timestamptz not null default now(),
  last_error text
);

-- Workers that stopped sending; a share of theirs takes them out again.
create table silent_workers (
  worker_id integer primary key references workers,
  since timestamptz not null
);
create index workers_by_last_share on workers (last_share_at);
