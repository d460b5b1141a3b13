-- Slice records (docs/protocol/books.md, rules 2, 3 and 12): the terms a slice opened with, and the chain of hashes over closed slices.
-- Roots of the first format did not commit the number of entries; such books cannot be turned into these.
do $$
begin
  if exists (select from slices where closed_height is not null) then
    raise exception 'this database holds books of an older format, which this release cannot read: keep it for your records and start with an empty database';
  end if;
end $$;
delete from slices;
alter table slices
  add column slice_cuts integer not null,
  add column window_thousandths integer not null,
  add column fee_ppm integer not null check (fee_ppm between 0 and 1000000),
  add column target bytea not null check (octet_length(target) = 32),
  add column previous bytea,
  add column chain bytea,
  add check ((closed_height is null) = (chain is null)),
  add check ((closed_height is null) = (previous is null));
-- One list may credit blocks whose anchors lie before its slice; W of the slice it was divided by is stored in the list.
alter table credit_lists add column window_work numeric(78,0) not null default 1;
