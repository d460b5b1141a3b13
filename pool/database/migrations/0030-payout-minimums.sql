-- Thresholds that no longer hold, with the time until which they did: a checker counts the highest of its time, so that a pool has time to
-- pay an account that lowers its own (books rule 29). Without an account: the pool's minimum. Nothing here is money: the books never read it.
create table payout_minimums (
  account_id integer references accounts,
  atoms bigint not null check (atoms > 0),
  until_millis bigint not null
);
create index payout_minimums_by_account on payout_minimums (account_id, until_millis);
