-- Webhooks that miners set with the key of their address (docs/pool.md, webhooks of miners). Nothing here is money: the books never read it.
create table miner_webhooks (
  account_id integer primary key references accounts,
  -- Null: taken away. The row stays, because only a request newer than set_millis changes it again.
  url text,
  secret text not null,
  set_millis bigint not null,
  attempts integer not null default 0,
  next_at timestamptz not null default now(),
  -- News that found the queue full, or were never accepted, since the last one that was.
  dropped integer not null default 0,
  last_error text
);
-- What waits to be sent, in order.
create table miner_news (
  id bigint generated always as identity primary key,
  account_id integer not null references miner_webhooks,
  event_id bigint not null,
  at timestamptz not null,
  kind text not null,
  data jsonb not null
);
create index miner_news_by_account on miner_news (account_id, id);
