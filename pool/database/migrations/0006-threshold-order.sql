-- The time of the request behind the last change of an account's threshold: older ones count no more.
alter table accounts add column payout_min_millis bigint;
