-- When a worker got figures of its own (pool/books/own-workers.ts): only one that has had them for a day makes news. Those of before are trusted.
alter table workers add column since timestamptz not null default '2000-01-01';
alter table workers alter column since set default now();
-- Workers have a lane of their own in the operator's webhooks: what strangers' workers do delays no news of blocks and payments.
alter table webhooks add column lane text not null default 'pool';
alter table webhooks drop constraint webhooks_pkey;
alter table webhooks add primary key (url, lane);
