/** Groups of news that a miner can choose, for its webhook and its e-mail. */

export const NEWS_GROUPS = ['blocks', 'payments', 'workers'] as const;
export type NewsGroup = (typeof NEWS_GROUPS)[number];

const GROUPS: Readonly<Record<string, NewsGroup>> = {
  block_found: 'blocks',
  payout_sent: 'payments',
  payout_final: 'payments',
  worker_silent: 'workers',
  worker_back: 'workers',
};

/** Undefined for news that every receiver gets. */
export const newsGroup = (kind: string): NewsGroup | undefined => GROUPS[kind];

/** In canonical order and without duplicates, as stored and signed. */
export const orderedGroups = (chosen: readonly NewsGroup[] = NEWS_GROUPS): NewsGroup[] =>
  NEWS_GROUPS.filter((group) => chosen.includes(group));
