/** The current page, from the part of the URL after #, so that one file serves any path prefix. */

import { shortId } from './format.ts';
import { word } from './words/language.ts';

export type Place =
  | { readonly page: 'pool' | 'payments' | 'connect' | 'operator' | 'mine' }
  | { readonly page: 'blocks'; readonly block?: string }
  /** Opened by links in mails; not in the menu. */
  | { readonly page: 'mail'; readonly act: 'confirm' | 'stop'; readonly code: string }
  | { readonly page: 'explorer'; readonly kind?: ExplorerKind; readonly id?: string }
  | { readonly page: 'miner'; readonly address?: string; readonly tab?: MinerTab }
  | { readonly page: 'staking'; readonly address?: string };

/** Parts of a miner's page. The first has no name in its address. */
export const MINER_TABS = ['overview', 'workers', 'payments', 'credits', 'settings'] as const;
export type MinerTab = (typeof MINER_TABS)[number];

/** The kinds of pages of the explorer. `find` searches for anything with that identifier. */
export const EXPLORER_KINDS = ['cut', 'block', 'transaction', 'address', 'validator', 'supply', 'find'] as const;
export type ExplorerKind = (typeof EXPLORER_KINDS)[number];

export const PAGES = [
  { page: 'pool', title: 'nav.pool' },
  { page: 'miner', title: 'nav.miner' },
  { page: 'blocks', title: 'nav.blocks' },
  { page: 'payments', title: 'nav.payments' },
  { page: 'explorer', title: 'nav.explorer' },
  { page: 'staking', title: 'nav.staking' },
  { page: 'connect', title: 'nav.connect' },
  { page: 'mine', title: 'nav.mine' },
  { page: 'operator', title: 'nav.operator' },
] as const;
export type PageName = (typeof PAGES)[number]['page'];

/** Anything unknown is the pool's page: an address typed wrong must not end in nothing. */
export function placeOf(hash: string, path = '/'): Place {
  // `/explorer` without more is the explorer, for those who type it.
  const [name = path.endsWith('/explorer') ? 'explorer' : '', argument = '', id = ''] = hash
    .replace(/^#\/?/, '')
    .split('/')
    .map(decode)
    .filter((part, index) => index > 0 || part !== '');
  if (name === 'explorer') {
    const kind = EXPLORER_KINDS.find((one) => one === argument);
    return kind === undefined ? { page: 'explorer' } : { page: 'explorer', kind, ...(id === '' ? {} : { id }) };
  }
  if (name === 'miner') {
    const tab = MINER_TABS.find((one) => one === id);
    return argument === '' ? { page: name } : { page: name, address: argument, ...(tab === undefined ? {} : { tab }) };
  }
  if (name === 'staking') return argument === '' ? { page: name } : { page: name, address: argument };
  if (name === 'mail' && (argument === 'confirm' || argument === 'stop') && id !== '')
    return { page: 'mail', act: argument, code: id };
  if (name === 'blocks') return argument === '' ? { page: 'blocks' } : { page: 'blocks', block: argument };
  const found = PAGES.find((entry) => entry.page === name);
  return { page: (found?.page ?? 'pool') as 'pool' };
}

/** The title of a place, by which its tab is told from others. */
export function titleOf(place: Place): string {
  const found = PAGES.find(({ page }) => page === place.page);
  const title = found === undefined ? '' : word(found.title);
  switch (place.page) {
    case 'mail':
      return word(`place.${place.act}`);
    case 'blocks':
      return place.block === undefined ? title : word('place.pool_block', { id: shortId(place.block) });
    case 'explorer':
      return place.kind === undefined ? title : [word(`place.${place.kind}`), shortId(place.id ?? '')].join(' ').trim();
    case 'miner': {
      const part = place.tab === undefined || place.tab === 'overview' ? '' : `, ${word(`place.${place.tab}`)}`;
      return place.address === undefined ? title : `${title} ${shortId(place.address)}${part}`;
    }
    case 'staking':
      return place.address === undefined ? title : `${title} ${shortId(place.address)}`;
    default:
      return title;
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}

export const linkTo = (page: PageName, argument?: string): string =>
  `#/${page}${argument === undefined ? '' : `/${encodeURIComponent(argument)}`}`;

export const minerLink = (address: string, tab: MinerTab): string =>
  tab === 'overview' ? linkTo('miner', address) : `${linkTo('miner', address)}/${tab}`;

export const explorerLink = (kind: ExplorerKind, id?: string | number): string =>
  `${linkTo('explorer', kind)}${id === undefined ? '' : `/${encodeURIComponent(id)}`}`;
