/** The frame of the page: navigation, the line that says when the pool is away, and the page that was asked for. */

import { useEffect } from 'preact/hooks';
import type { PoolDocument } from '../pool/api/documents.ts';
import { useDocument, useLiveState } from './data/hooks.ts';
import { usePlace } from './data/place.ts';
import type { ExplorerPlace } from './explorer/explorer-page.tsx';
import { lazyPage } from './lazy-page.tsx';
import { MiniBar } from './mine/mini-bar.tsx';
import { Celebration } from './notify/celebration.tsx';
import { useNotifications } from './notify/notifications.tsx';
import { linkTo, type MinerTab, PAGES, type Place, titleOf } from './router.ts';
import { LanguageChoice, PauseButton, ThemeChoice } from './view/page-foot.tsx';
import { PoolPage } from './view/pool-page.tsx';
import { shownLanguage, word } from './words/language.ts';

// What is below the first page is loaded when it is opened: the miner is the heaviest part of all.
const LazyMinePage = lazyPage('lazy.miner', async () => (await import('./mine/mine-page.tsx')).MinePage);
const LazyStakingPage = lazyPage<{ address: string | undefined }>(
  'lazy.page',
  async () => (await import('./view/staking-page.tsx')).StakingPage,
);
const LazyMailPage = lazyPage<{ act: 'confirm' | 'stop'; code: string }>(
  'lazy.page',
  async () => (await import('./view/mail-page.tsx')).MailPage,
);
const LazyExplorerPage = lazyPage<ExplorerPlace>(
  'lazy.explorer',
  async () => (await import('./explorer/explorer-page.tsx')).ExplorerPage,
);
const LazyMinerPage = lazyPage<{ address: string | undefined; tab: MinerTab | undefined }>(
  'lazy.page',
  async () => (await import('./view/miner-page.tsx')).MinerPage,
);
const LazyBlocksPage = lazyPage<{ block: string | undefined }>(
  'lazy.page',
  async () => (await import('./view/blocks-page.tsx')).BlocksPage,
);
const LazyPaymentsPage = lazyPage('lazy.page', async () => (await import('./view/payments-page.tsx')).PaymentsPage);
const LazyConnectPage = lazyPage('lazy.page', async () => (await import('./view/connect-page.tsx')).ConnectPage);
const LazyOperatorPage = lazyPage('lazy.page', async () => (await import('./operator/operator-page.tsx')).OperatorPage);

/** Pages of the menu that are small: loaded in advance, so that they open at once, and also after the pool was updated. */
const SOON = [LazyMinerPage, LazyBlocksPage, LazyPaymentsPage, LazyConnectPage];
const SOON_MILLIS = 2_000;

function loadSoon(): () => void {
  // What cannot be loaded now is tried again when it is opened.
  const timer = setTimeout(() => SOON.forEach((page) => void page.ahead().catch(() => undefined)), SOON_MILLIS);
  return () => clearTimeout(timer);
}

function Page({ place }: { place: Place }) {
  switch (place.page) {
    case 'pool':
      return <PoolPage />;
    case 'miner':
      return <LazyMinerPage address={place.address} tab={place.tab} />;
    case 'staking':
      return <LazyStakingPage address={place.address} />;
    case 'explorer':
      return <LazyExplorerPage kind={place.kind} id={place.id} />;
    case 'blocks':
      return <LazyBlocksPage block={place.block} />;
    case 'payments':
      return <LazyPaymentsPage />;
    case 'connect':
      return <LazyConnectPage />;
    case 'operator':
      return <LazyOperatorPage />;
    case 'mail':
      return <LazyMailPage key={place.act} act={place.act} code={place.code} />;
    case 'mine':
      return <LazyMinePage />;
  }
}

export function App() {
  const place = usePlace();
  const live = useLiveState();
  const pool = useDocument<PoolDocument>('pool', 60_000);
  const title = titleOf(place);
  useEffect(() => {
    document.title = `${title} – ${pool.data?.name ?? word('frame.pool')}`;
  }, [pool.data, title]);
  useEffect(loadSoon, []);
  useNotifications();
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        {word('frame.skip')}
      </button>
      <header class="top">
        <div class="bar">
          <span class="name">
            <img src="icon.svg" alt="" width="24" height="24" />
            <span class="words-of-name">{pool.data?.name ?? word('frame.pool')}</span>
            <Celebration />
          </span>
          <nav aria-label={word('frame.pages')}>
            <ul>
              {PAGES.map(({ page, title }) => (
                <li key={page}>
                  <a href={linkTo(page)} aria-current={place.page === page ? 'page' : undefined}>
                    {word(title)}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        </div>
      </header>
      <main id="main" tabIndex={-1} aria-label={title}>
        {/* Always there: a live region that comes together with its text is often not read. */}
        <div role="status">
          {live === 'away' ? <p class="banner">{word('frame.away')}</p> : null}
          {pool.data === undefined || pool.data.notice === null ? null : <p class="card">{pool.data.notice}</p>}
          {pool.data?.payouts.paused === true ? (
            <p class="card warn">
              {word('frame.paused')}
              {pool.data.payouts.pause_note == null
                ? ''
                : ` ${word('frame.operator_says', { note: pool.data.payouts.pause_note })}`}
            </p>
          ) : null}
        </div>
        <Page key={place.page} place={place} />
      </main>
      {place.page === 'mine' ? null : <MiniBar />}
      <footer>
        <p>
          {word('frame.amounts')} {pool.data === undefined ? '' : word('frame.network', { network: pool.data.network })}
        </p>
        <a href={`status?language=${shownLanguage()}`}>{word('frame.status')}</a> <PauseButton /> <ThemeChoice />{' '}
        <LanguageChoice />
      </footer>
    </>
  );
}
