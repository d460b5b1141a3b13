-- Receipts of closed slices (books rules 17 to 19): for each front end, slice and service the signed head and the leaves of all receipts, in
-- their order. Front ends write them, so that a miner gets what it missed at any instance. Kept for a day.
create table receipt_sheets (
  boot_id bytea not null,
  slice integer not null,
  service smallint not null,
  head bytea not null,
  signature bytea not null,
  leaves bytea not null,
  made_at timestamptz not null default now(),
  primary key (slice, service, boot_id)
);
create index receipt_sheets_by_time on receipt_sheets (made_at);
