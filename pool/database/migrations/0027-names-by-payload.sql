-- Accounts are found by the payload that they were made with.
create index account_names_payload on account_names (payload);
