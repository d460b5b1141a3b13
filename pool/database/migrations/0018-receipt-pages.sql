-- Receipts are kept in pages of a few leaves, each with the siblings above it: those of one account are made from the pages that it is in,
-- without the rest of the sheet. Receipts made before are gone: they were kept for a day only.
delete from receipt_sheets;
alter table receipt_sheets drop column leaves;
create table receipt_pages (
  slice integer not null,
  service smallint not null,
  boot_id bytea not null,
  page integer not null,
  first_account bytea not null,
  last_account bytea not null,
  leaves bytea not null,
  above bytea not null,
  primary key (slice, service, boot_id, page),
  foreign key (slice, service, boot_id) references receipt_sheets on delete cascade
);
