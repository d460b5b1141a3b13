-- Figures over time for the operator (pool/stats/figure-history.ts): one row for each minute (tier 60) and each ten minutes (tier 600), bounded as pool_history is.
create table figure_history (
  tier integer not null,
  bucket integer not null,
  figure text not null,
  value bigint not null,
  primary key (tier, bucket, figure)
);
