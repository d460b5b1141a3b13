-- When the books last took a share of a worker, by the clock of the database: silence is told by it (docs/notices.md). The time in a share is that of a front
-- end's clock.
alter table workers add column last_taken_at timestamptz;
update workers set last_taken_at = least(last_share_at, now()) where last_share_at > now() - interval '2 days';
drop index workers_by_last_share;
create index workers_by_last_taken on workers (last_taken_at);
