-- News for miners have one queue, whatever carries them: the webhook, a channel of Discord, Telegram or ntfy (docs/pool.md, webhooks of miners), or mails.
alter table miner_news drop constraint miner_news_account_id_fkey;
alter table miner_webhooks drop constraint miner_webhooks_pkey;
alter table miner_webhooks add column channel text not null default 'webhook';
alter table miner_webhooks add primary key (account_id, channel);
alter table miner_news add column channel text not null default 'webhook';
alter table miner_news add foreign key (account_id) references accounts;
insert into miner_news (account_id, channel, event_id, at, kind, data)
  select account_id, 'mail', 0, at, kind, data from miner_mail_news order by id;
drop table miner_mail_news;
drop index miner_news_by_account;
create index miner_news_by_receiver on miner_news (account_id, channel, id);
-- One position for all: the later one, because the other may have stood still for as long as its carrier was switched off.
update settings s set value = greatest(s.value::bigint, m.value::bigint)::text from settings m
  where s.name = 'miner_news_through' and m.name = 'miner_mail_through';
update settings set name = 'miner_news_through' where name = 'miner_mail_through'
  and not exists (select from settings where name = 'miner_news_through');
delete from settings where name = 'miner_mail_through';
