-- E-mail addresses that miners set with the key of their address (docs/pool.md, e-mail to miners), and events that they choose. Nothing here is money: the books never read it.
create table miner_mails (
  account_id integer primary key references accounts,
  -- Null: taken away. The row stays, because only a request newer than set_millis changes it again.
  mailbox text,
  set_millis bigint not null,
  -- Only in mails to this mailbox: it confirms it and stops the mails.
  code text not null unique,
  events text[] not null,
  confirmed boolean not null default false,
  -- When it was set, and when its confirmation was sent; null: that waits.
  since timestamptz not null default now(),
  asked_at timestamptz,
  attempts integer not null default 0,
  next_at timestamptz not null default now(),
  -- News that found the queue full, or became too old, since the last mail.
  dropped integer not null default 0
);
create table miner_mail_news (
  id bigint generated always as identity primary key,
  account_id integer not null references miner_mails,
  at timestamptz not null,
  kind text not null,
  data jsonb not null
);
create index miner_mail_news_by_account on miner_mail_news (account_id, id);
-- Confirmations of the last week, for the limits: mailboxes as hashes.
create table mail_confirmations (
  mailbox_key text not null,
  account_id integer not null references accounts,
  at timestamptz not null default now()
);
create index mail_confirmations_by_mailbox on mail_confirmations (mailbox_key);
-- Mailboxes, as hashes, whose holder wants no confirmations of this pool.
create table mail_refusals (
  mailbox_key text primary key,
  at timestamptz not null default now()
);
alter table miner_webhooks add column events text[] not null default '{blocks,payments,workers}';
alter table miner_webhooks add column last_success timestamptz;
alter table miner_webhooks add column last_failure timestamptz;
