-- Each share of a journal that counted before (pool/journal/doubled-shares.ts), as it stands in that journal. Until now there were runs of them, at most 1,024 of a
-- journal. What was a run has no more than the place: of an inexact one what counted is left out.
alter table doubled_shares rename to doubled_runs;
alter table doubled_runs rename constraint doubled_shares_pkey to doubled_runs_pkey;
create table doubled_shares (
  boot_id bytea not null,
  sequence bigint not null,
  service smallint,
  account_id integer,
  work numeric(39,0),
  anchor_height bigint,
  identity bytea,
  primary key (boot_id, sequence)
);
insert into doubled_shares (boot_id, sequence) select d.boot_id, place from doubled_runs d, generate_series(d.first, d.through) place
  where not exists (select 1 from shares s where s.boot_id = d.boot_id and s.sequence = place)
  on conflict do nothing;
drop table doubled_runs;
-- Which entries of a journal front ends signed sheets of, and what they passed over in them (pool/receipts/signed-slices.ts). Told anew as signed_slices is.
create table signed_sheets (
  service smallint not null,
  slice integer not null,
  sheet text not null,
  primary key (service, slice, sheet)
);
