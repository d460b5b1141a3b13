-- Which run of the database server the term was won on. A server that was restarted, restored or replaced is another run: what an
-- accountant remembers of the books before may not be in them, so every transaction of its term is refused (books rule 11).
alter table term add column server_started timestamptz;

-- Entries that no journal holds any more, by the word of the journals: the books have gone on without them. Alarm when there is one.
create table journal_holes (
  boot_id bytea not null,
  after bigint not null,
  until bigint not null,
  at timestamptz not null default now()
);
