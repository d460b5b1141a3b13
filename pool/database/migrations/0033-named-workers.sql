-- Workers that the key of an account names: their news need no day of trust, and they have figures of their own (pool/books/own-workers.ts). The
-- time is that of the signed request: an older one changes nothing.
create table named_workers (
  account_id integer not null references accounts,
  name text not null,
  is_named boolean not null,
  set_millis bigint not null,
  primary key (account_id, name)
);
