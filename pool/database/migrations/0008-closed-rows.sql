-- What is closed does not change (docs/protocol/books.md, rules 2 and 7). The pool never tries; this stops mistakes by hand and a
-- program with a fault. The owner of the database can still remove the triggers: `svc-pool audit` finds what was changed.
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the row of % is closed and cannot be changed', tg_table_name using errcode = 'integrity_constraint_violation';
end $$;

create trigger slices_closed before update or delete on slices for each row
  when (old.closed_height is not null) execute function refuse_change();
create trigger credit_lists_closed before update or delete on credit_lists for each row execute function refuse_change();
create trigger blocks_credited before update on blocks for each row
  when (old.credit_list is not null and (new.block_id, new.service, new.slice, new.state, new.reward, new.reward_transaction,
    new.reward_output, new.credit_list) is distinct from (old.block_id, old.service, old.slice, old.state, old.reward,
    old.reward_transaction, old.reward_output, old.credit_list)) execute function refuse_change();
create trigger blocks_kept before delete on blocks for each row execute function refuse_change();
create trigger payouts_over before update on payouts for each row
  when (old.state in ('finalized', 'void') and (new.id, new.state, new.transaction_id, new.fee, new.final_height)
    is distinct from (old.id, old.state, old.transaction_id, old.fee, old.final_height)) execute function refuse_change();
create trigger payouts_kept before delete on payouts for each row execute function refuse_change();
create function refuse_change_of_sent() returns trigger language plpgsql as $$
begin
  if exists (select from payouts where id = old.payout_id and state in ('submitted', 'finalized')) then
    raise exception 'this payment was sent and cannot be changed' using errcode = 'integrity_constraint_violation';
  end if;
  return coalesce(new, old);
end $$;
create trigger payout_items_kept before update or delete on payout_items for each row execute function refuse_change_of_sent();
create trigger accounts_named before update on accounts for each row
  when ((new.id, new.payload, new.address) is distinct from (old.id, old.payload, old.address)) execute function refuse_change();
create trigger accounts_kept before delete on accounts for each row execute function refuse_change();
