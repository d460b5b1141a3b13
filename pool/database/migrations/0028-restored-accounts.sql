-- A row whose payload or address was changed by hand is in the way of the one whose these are: the pool gives it back what it was made with (docs/protocol/books.md, rule 23).
drop trigger accounts_named on accounts;
create trigger accounts_named before update on accounts for each row
  when ((new.id, new.payload, new.address) is distinct from (old.id, old.payload, old.address)
    and coalesce(current_setting('svc_pool.restore', true), '') <> 'on') execute function refuse_change();
