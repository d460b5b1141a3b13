-- Each owner of connections a second time, in the order in which they came on record, in a table that is only added to (docs/protocol/books.md, rule 22): an edit of
-- one of the two shows, and lists only ever become more.
create table ownership_notes (
  number bigint generated always as identity primary key,
  owner bytea not null unique,
  service smallint not null,
  account_id integer not null,
  worker_id integer not null,
  after_list integer not null
);
insert into ownership_notes (owner, service, account_id, worker_id, after_list)
  select owner, service, account_id, worker_id, after_list from ownerships order by after_list, owner;
create trigger ownership_notes_kept before update or delete on ownership_notes for each row execute function refuse_change();

create function note_ownership() returns trigger language plpgsql as $$
begin
  insert into ownership_notes (owner, service, account_id, worker_id, after_list)
    values (new.owner, new.service, new.account_id, new.worker_id, new.after_list);
  return null;
end $$;
create trigger ownerships_noted after insert on ownerships for each row execute function note_ownership();
