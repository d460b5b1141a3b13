-- Payouts are numbered in the order in which the wallet is asked for them (books rule 16). The wallet keeps what it paid under each number, so
-- a database that falls back to an older copy asks for a number that is taken, and learns what it has forgotten.
alter table payouts add column number bigint unique check (number > 0);
alter table payouts add column request_id text unique;
-- Height that the wallet had read when it was asked: a payment that it forgot can run no more once its validity is over.
alter table payouts add column asked_height bigint;
update payouts set request_id = id::text where state <> 'reserved';
alter table compoundings add column number bigint unique check (number > 0);
alter table compoundings add column request_id text unique;
update compoundings set request_id = id::text;

-- What the wallet paid an account beyond what the books have credited it, after they fell back: later income makes up for it.
alter table accounts add column advance bigint not null default 0 check (advance >= 0);
alter table accounts drop constraint accounts_balance_check;
alter table accounts add constraint accounts_balance_check check (balance + advance >= 0);

-- A payout that is over does not change, but for one case: the chain was rolled back, and a person says so (svc-pool repair-payouts).
drop trigger payouts_over on payouts;
create trigger payouts_over before update on payouts for each row
  when (old.state in ('finalized', 'void') and (new.id, new.state, new.transaction_id, new.fee, new.final_height)
    is distinct from (old.id, old.state, old.transaction_id, old.fee, old.final_height)
    and not (new.state = 'submitted' and coalesce(current_setting('svc_pool.unsettle', true), '') = 'on'))
  execute function refuse_change();
