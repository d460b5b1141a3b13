-- A (header, nonce) counts once: its 16 + 8 bytes, and the anchor of the header, are stored with each raw share. Shares come nearly
-- in the order of their anchors, so a list of block ranges finds those of an anchor and costs the intake nothing. Shares of
-- before have neither.
alter table shares add column identity bytea, add column anchor_height bigint;
create index shares_by_anchor on shares using brin (anchor_height) with (pages_per_range = 32, autosummarize = on);
