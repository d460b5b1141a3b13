-- The code of the mail: its stop link also works after the miner named another mailbox, or the pool forgot this one. Null: the mailbox was confirmed with it.
alter table mail_confirmations add column code text;
create index mail_confirmations_by_code on mail_confirmations (code);
