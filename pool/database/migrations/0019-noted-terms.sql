-- Terms of slices that are not open yet: they were published before the database fell back, and the journals note them
-- (docs/protocol/books.md, rule 11). Empty but for the time until these slices are open again.
create table noted_terms (
  id bigint generated always as identity primary key,
  service smallint not null,
  from_slice bigint not null,
  through_slice bigint not null,
  window_thousandths bigint not null,
  fee_ppm bigint not null
);
