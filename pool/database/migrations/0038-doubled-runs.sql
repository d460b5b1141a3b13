-- Runs of shares of a journal that counted before (pool/journal/doubled-shares.ts): receipts of the journal pass over these, and of a slice with shares in an inexact
-- run there are none (docs/protocol/books.md, rule 17). Until now there was one range for each journal, which any share grew that came twice.
create table doubled_shares (
  boot_id bytea not null,
  first bigint not null,
  through bigint not null,
  is_exact boolean not null default true,
  primary key (boot_id, first)
);
insert into doubled_shares select boot_id, doubled_from, doubled_through, false from journal_positions where doubled_from is not null;
alter table journal_positions drop column doubled_from, drop column doubled_through;
-- Of which journal this one seems to be a copy, and in how many shares in a row (pool/journal/filled-holes.ts).
alter table journal_positions add column copy_of bytea, add column agreed integer not null default 0;
-- What of a payment the balance did not cover when it was booked. It is no advance any more when the payment never came to the chain.
alter table payout_items add column advanced bigint not null default 0 check (advanced >= 0);
