/** Every table of the database, and how the audit checks it. A test compares this list with the schema. */
export const COVERAGE: Readonly<Record<string, string>> = {
  accounts: 'address against payload; balance, in flight and paid against credits and payouts',
  account_names: 'against the accounts',
  slices: 'numbers, heights, leaves, roots, totals, W, terms and chain; targets against the ledger',
  open_work: 'against the raw shares of the open slice',
  later_work: 'against the raw shares of slices still to be opened',
  shares: 'summed up against slices and open work, and no header and nonce twice, as far as they are kept',
  blocks:
    'rewards, outputs, heights, anchors and fates against the ledger; finders against their workers and their extranonces',
  ownerships: 'against what was noted when each came on record; where they name the finder of a block, against it',
  ownership_notes: 'against the ownerships; the newest list of each never falls, and was made',
  credit_lists:
    'made again from slices and blocks, to the atom; the cut at which each was made against slices and height',
  credit_totals: 'against the credit lists',
  payouts:
    'numbers without a gap; the head of the books against the slices; transaction, height, fee and payload against the ledger; payments that the books lack; requests, transactions and fates against the wallet',
  payout_items: 'recipients and amounts against the outputs on the ledger',
  settings:
    'the height it has read against the newest slice, the lists, the payouts and the node; its address against the rewards of the ledger. What it notes beside these, each start of the pool compares with the node',
  term: 'not covered: holds no money',
  payout_minimums: 'not covered: thresholds that held before; they move no money',
  workers: 'not covered: names and figures for display',
  named_workers: 'not covered: names that miners call their own',
  journal_positions: 'not covered: how far each journal was taken in',
  doubled_shares: 'not covered: shares that counted before, which no receipts are signed of',
  effort: 'not covered: a figure for display',
  compoundings: 'fees and fates of merging the wallet’s outputs against the wallet’s record',
  slice_ends: 'not covered: how far each journal was when slices closed',
  later_starts: 'not covered: which entries of a journal belong to slices still to be opened',
  noted_terms:
    'not covered: terms of slices still to be opened, in books that fell back or are behind the chain; the slices are checked',
  journal_holes: 'not covered: entries that no journal holds any more',
  unread_records: 'not covered: records of journals that could not be read, and count nothing',
  receipt_sheets: 'not covered: what front ends signed; each miner compares its own with the slices',
  receipt_pages: 'not covered: the receipts under those signatures',
  signed_slices: 'not covered: which record of a slice front ends signed; each remembers its own on its disk',
  signed_sheets: 'not covered: which entries the sheets counted; remembered as signed_slices are',
  operator_log: 'not covered: a record for people',
  events: 'not covered: news for pages and webhooks',
  webhooks: 'not covered: how far each receiver has been notified',
  miner_webhooks: 'not covered: where miners want their news',
  miner_mails: 'not covered: where miners want their mails',
  mail_confirmations: 'not covered: how many confirmations were mailed',
  mail_refusals: 'not covered: mailboxes that want no confirmations',
  miner_news: 'not covered: news for miners that wait to be sent',
  stats_pending: 'not covered: figures for display',
  stats_recent: 'not covered: figures for display',
  stats_state: 'not covered: figures for display',
  worker_days: 'not covered: figures for display',
  account_days: 'not covered: figures for display',
  pool_history: 'not covered: figures for display',
  figure_history: 'not covered: figures for display',
  silent_workers: 'not covered: figures for display',
  best_shares: 'not covered: figures for display',
  luck: 'not covered: figures for display',
  luck_slices: 'not covered: how far those figures are counted',
  refused_shares: 'not covered: figures for display',
  block_totals: 'not covered: figures for display',
  schema_version: 'not covered: which migrations were run',
};

/** Columns of covered tables that nothing else on record says, and why that moves no money. */
export const UNCOVERED_COLUMNS: Readonly<Record<string, string>> = {
  'accounts.payout_min':
    'the account’s own wish, which only says when it is paid; a signed request of the miner changes it again',
  'accounts.created_at': 'for display',
  'blocks.worker_id': 'which of the finder’s own workers it was: for display',
  'blocks.found_at': 'for display, as target_work and effort_work are',
  'credit_lists.made_at': 'for display; the cut at which it was made is compared',
  'payouts.created_at': 'when it was reserved, for display; the same of updated_at and reason',
  'payouts.needs_person':
    'what the operator is to look at: it delays a payout, which metrics and page show, and never makes one',
};
