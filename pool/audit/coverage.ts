/** Every table of the books, and what the audit makes of it. A test holds this against the schema. */
export const COVERAGE: Readonly<Record<string, string>> = {
  accounts: 'address against payload; balance, in flight and paid against credits and payouts',
  slices: 'numbers, heights, leaves, roots, totals, W, terms and chain; targets against the ledger',
  open_work: 'against the raw shares of the open slice',
  later_work: 'against the raw shares of slices still to be opened',
  shares: 'summed up against slices and open work, and no header and nonce twice, as far as they are kept',
  blocks:
    'rewards, outputs, heights, anchors and fates against the ledger; finders of solo blocks against their extranonce',
  ownerships: 'only where they name the finder of a solo block',
  credit_lists: 'made again from slices and blocks, to the atom',
  payouts:
    'numbers without a gap; the head of the books against the slices; transaction, height, fee and payload against the ledger; payments that the books lack',
  payout_items: 'recipients and amounts against the outputs on the ledger',
  settings: 'not covered: the pool’s own marks; the height it has read is used as it stands',
  term: 'not covered: holds no money',
  workers: 'not covered: names and figures for display',
  journal_positions: 'not covered: how far each journal was taken in',
  effort: 'not covered: a figure for display',
  compoundings: 'not covered: fees of merging the wallet’s outputs, as the wallet named them',
  slice_ends: 'not covered: how far each journal was when slices closed',
  later_starts: 'not covered: which entries of a journal belong to slices still to be opened',
  journal_holes: 'not covered: entries that no journal holds any more',
  receipt_sheets: 'not covered: what front ends signed; each miner compares its own with the slices',
  operator_log: 'not covered: a record for people',
};
