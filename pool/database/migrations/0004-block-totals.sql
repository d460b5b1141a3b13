-- A pool finds thousands of blocks a day: what pages and metrics show of all of them is counted as it happens, and what they show of
-- some is found by an index, never by reading the table.
create table block_totals (
  service smallint not null,
  state text not null,
  count bigint not null,
  primary key (service, state)
);
insert into block_totals select service, state, count(*) from blocks group by service, state;

create function count_block() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    if new.service = old.service and new.state = old.state then
      return null;
    end if;
    update block_totals set count = count - 1 where service = old.service and state = old.state;
  end if;
  insert into block_totals as t (service, state, count) values (new.service, new.state, 1)
    on conflict (service, state) do update set count = t.count + 1;
  return null;
end $$;
create trigger blocks_count after insert or update of service, state on blocks for each row execute function count_block();

create index blocks_uncredited on blocks (service, account_id) where credit_list is null;
create index blocks_by_finder on blocks (account_id, found_at desc);
create index blocks_by_service on blocks (service, found_at desc);
create index blocks_by_state on blocks (state, found_at desc);
