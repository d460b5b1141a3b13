-- The best share of each miner: how many hashes one as good takes on average. A figure: the books never read it.
create table best_shares (
  account_id integer primary key references accounts,
  worker_id integer not null references workers,
  work bigint not null,
  at timestamptz not null
);
create index best_shares_by_work on best_shares (work desc, account_id);
