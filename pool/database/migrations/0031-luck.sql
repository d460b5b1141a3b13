-- Blocks that were expected of each account and blocks that it found (docs/pool.md, luck and withholding), by slice, two slices late. Statistics: the books never
-- read them. Account 0: all of a service together.
create table luck (
  service smallint not null,
  account_id integer not null,
  work numeric(39,0) not null,
  expected double precision not null,
  found integer not null,
  -- 12 doubles, little-endian: ten logarithms, the blocks expected and the beginnings counted (pool/luck/withholding.ts).
  evidence bytea not null check (octet_length(evidence) = 96),
  worked_at timestamptz not null default now(),
  -- When its evidence first reached the line, and the highest that it reached (its natural logarithm).
  named_at timestamptz,
  highest double precision not null,
  primary key (service, account_id)
);
create index luck_named on luck (named_at) where named_at is not null;

-- From which slice on, and through which, a service's work is counted in it.
create table luck_slices (
  service smallint primary key,
  first integer not null,
  through integer not null
);
