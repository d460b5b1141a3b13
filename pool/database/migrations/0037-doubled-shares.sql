-- The first and the last share of a journal that counted before, from another one: a copy that a person put back. Its front end signs no receipts
-- of what lies between (docs/protocol/books.md, rule 17).
alter table journal_positions add column doubled_from bigint;
alter table journal_positions add column doubled_through bigint;
