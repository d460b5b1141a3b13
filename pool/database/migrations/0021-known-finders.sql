-- The newest credit list that was there when a connection's owner came on record. A list that was made after that knew the finder (docs/protocol/books.md, rule 22):
-- one that is credited to the pool all the same was edited. Of what is here already nobody knows, so it counts as late.
alter table ownerships add column after_list integer not null default 0;
update ownerships set after_list = coalesce((select max(id) from credit_lists), 0);
create trigger ownerships_kept before update or delete on ownerships for each row execute function refuse_change();

-- A finder that is on record stays so; only one that is not known is put right, before the list is made.
create function refuse_other_finder() returns trigger language plpgsql as $$
begin
  if exists (select from workers where id = old.worker_id and name <> '(unknown)') then
    raise exception 'the finder of a block is on record and cannot be changed' using errcode = 'integrity_constraint_violation';
  end if;
  return new;
end $$;
create trigger blocks_finder before update on blocks for each row
  when ((new.account_id, new.worker_id) is distinct from (old.account_id, old.worker_id)) execute function refuse_other_finder();
