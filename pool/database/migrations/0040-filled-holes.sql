-- Where a hole began before a copy of the journal filled it from its start (pool/journal/filled-holes.ts). What a copy brought counted from the copy: if a sheet of the
-- damaged journal was signed before the books fell, it may have counted the same entries (docs/protocol/books.md, rule 17).
alter table journal_holes add column began bigint;
update journal_holes set began = after;
alter table journal_holes alter column began set not null;
