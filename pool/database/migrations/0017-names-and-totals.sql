-- What an audit before each payout is held against (docs/protocol/books.md, rule 23). Both tables are only added to.

-- Whose account it is, as it was made. Slices, lists and payouts go by this; the accounts' own payload must be the same. No payload is unique here:
-- a person with a hand in the accounts must not keep the true owner from being known again.
create table account_names (
  account_id integer primary key references accounts,
  payload bytea not null check (octet_length(payload) = 49)
);
insert into account_names select id, payload from accounts;
create trigger account_names_kept before update or delete on account_names for each row execute function refuse_change();

-- All credits of every account through a list, in steps of some lists: nobody has to read all lists that ever were.
-- totals: rows of (u32 account id, u64 atoms), little-endian, ascending by the account's payload; credited is their sum, root commits them.
create table credit_totals (
  list_id integer primary key references credit_lists,
  credited bigint not null,
  root bytea not null,
  totals bytea not null
);
create trigger credit_totals_kept before update or delete on credit_totals for each row execute function refuse_change();
