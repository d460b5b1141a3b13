-- Which record of a slice front ends have signed (pool/receipts/signed-slices.ts). Each remembers its own on its disk, and tells them here again when the
-- database was replaced by an older copy, so that a front end that was away does not sign another one.
create table signed_slices (
  service smallint not null,
  slice integer not null,
  name text not null,
  primary key (service, slice)
);
