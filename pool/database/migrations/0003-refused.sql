-- Shares that were refused, by worker: statistics for the miner, written every few seconds by each instance.
alter table workers add column stale bigint not null default 0;
alter table workers add column rejected bigint not null default 0;
create table refused_shares (
  result text primary key,
  count bigint not null
);
