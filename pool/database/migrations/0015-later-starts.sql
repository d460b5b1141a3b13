-- From which entry on a journal's shares are in a slice that is not open yet: they came again, after the database fell back, or came from a
-- boot that began after it. When a slice closes, its journals' ends (slice_ends) stand before these.
create table later_starts (
  boot_id bytea not null,
  slice integer not null,
  first bigint not null,
  primary key (boot_id, slice)
);
