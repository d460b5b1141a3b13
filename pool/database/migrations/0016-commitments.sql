-- The head of the books that a payout carries to the ledger (docs/protocol/books.md, rule 21), on record before the wallet is asked: whatever
-- happens next, the same request is made again.
alter table payouts add column books_slice integer check (books_slice >= 0);
alter table payouts add column books_head bytea check (octet_length(books_head) = 48);
alter table payouts add constraint payouts_commitment check ((books_slice is null) = (books_head is null));
create index payouts_by_books_slice on payouts (books_slice, number) where number is not null;

drop trigger payouts_over on payouts;
create trigger payouts_over before update on payouts for each row
  when (old.state in ('finalized', 'void') and (new.id, new.state, new.transaction_id, new.fee, new.final_height, new.books_slice, new.books_head)
    is distinct from (old.id, old.state, old.transaction_id, old.fee, old.final_height, old.books_slice, old.books_head)
    and not (new.state = 'submitted' and coalesce(current_setting('svc_pool.unsettle', true), '') = 'on'))
  execute function refuse_change();
