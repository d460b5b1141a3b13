-- How far each journal was in the books when a slice closed. The front end with the journal reads it, so that entries that come again, after the
-- database fell back to an older state, come with the slice they were in (books rule 2).
create table slice_ends (
  slice integer not null,
  boot_id bytea not null,
  through bigint not null,
  at timestamptz not null default now(),
  primary key (boot_id, slice)
);
create index slice_ends_by_time on slice_ends (at);

-- Work of slices that are not open yet: it came again, after the database fell back, before the chain did. Opening a slice moves its
-- work to open_work.
create table later_work (
  service smallint not null,
  slice integer not null,
  account_id integer not null references accounts,
  work numeric(39,0) not null check (work > 0),
  primary key (service, slice, account_id)
);
