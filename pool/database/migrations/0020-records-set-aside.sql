-- Records of journals that the books cannot read, as they came; they count nothing (docs/protocol/books.md, rule 11). Empty in a healthy pool.
create table unread_records (
  boot_id bytea not null,
  sequence bigint not null,
  record bytea not null,
  reason text not null,
  at timestamptz not null default now(),
  primary key (boot_id, sequence)
);

-- Of several notes of a slice the newest counts: when, by the clock of the database, the books said so. What is here is noted again by each front end that starts.
delete from noted_terms;
alter table noted_terms add column at_millis bigint not null,
  add check (from_slice >= 0 and from_slice <= through_slice and through_slice < 2147483648),
  add check (window_thousandths between 1 and 2147483647),
  add check (fee_ppm between 0 and 1000000);
