/** The frame of the page: navigation, the line that says when the pool is away, and the page that was asked for. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { PoolDocument } from '../pool/api/documents.ts';
import { useDocument, useLiveState } from './data/hooks.ts';
import { usePlace } from './data/place.ts';
import type { ExplorerPlace } from './explorer/explorer-page.tsx';
import { MiniBar } from './mine/mini-bar.tsx';
import { Celebration } from './notify/celebration.tsx';
import { useNotifications } from './notify/notifications.tsx';
import { linkTo, PAGES, type Place } from './router.ts';
import { BlocksPage } from './view/blocks-page.tsx';
import { ConnectPage } from './view/connect-page.tsx';
import { MinerPage } from './view/miner-page.tsx';
import { OperatorPage } from './view/operator-page.tsx';
import { PaymentsPage } from './view/payments-page.tsx';
import { PoolPage } from './view/pool-page.tsx';
import { ThemeChoice } from './view/theme-choice.tsx';

/** Pages that most visitors never open are loaded on demand: the miner is the heaviest part of all. */
function lazyPage<P extends object>(what: string, load: () => Promise<ComponentType<P>>): ComponentType<P> {
  return function LazyPage(given: P) {
    const [Page, setPage] = useState<ComponentType<P>>();
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      load().then(
        (loaded) => setPage(() => loaded),
        () => setFailed(true),
      );
    }, []);
    if (failed) return <p role="alert">{what} could not be loaded. Reload the page to try again.</p>;
    return Page === undefined ? <p class="note">Loading…</p> : <Page {...given} />;
  };
}

const LazyMinePage = lazyPage('The miner', async () => (await import('./mine/mine-page.tsx')).MinePage);
const LazyStakingPage = lazyPage<{ address: string | undefined }>(
  'This page',
  async () => (await import('./view/staking-page.tsx')).StakingPage,
);
const LazyMailPage = lazyPage<{ act: 'confirm' | 'stop'; code: string }>(
  'This page',
  async () => (await import('./view/mail-page.tsx')).MailPage,
);
const LazyExplorerPage = lazyPage<ExplorerPlace>(
  'The explorer',
  async () => (await import('./explorer/explorer-page.tsx')).ExplorerPage,
);

function Page({ place }: { place: Place }) {
  switch (place.page) {
    case 'pool':
      return <PoolPage />;
    case 'miner':
      return <MinerPage address={place.address} />;
    case 'staking':
      return <LazyStakingPage address={place.address} />;
    case 'explorer':
      return <LazyExplorerPage kind={place.kind} id={place.id} />;
    case 'blocks':
      return <BlocksPage block={place.block} />;
    case 'payments':
      return <PaymentsPage />;
    case 'connect':
      return <ConnectPage />;
    case 'operator':
      return <OperatorPage />;
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
  const title = PAGES.find(({ page }) => page === place.page)?.title ?? 'E-mail';
  useEffect(() => {
    document.title = `${title} – ${pool.data?.name ?? 'Mining pool'}`;
  }, [pool.data, title]);
  useNotifications();
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <header class="top">
        <div class="bar">
          <span class="name">
            <img src="icon.svg" alt="" width="24" height="24" />
            {pool.data?.name ?? 'Mining pool'}
          </span>
          <nav aria-label="Pages">
            <ul>
              {PAGES.map(({ page, title }) => (
                <li key={page}>
                  <a href={linkTo(page)} aria-current={place.page === page ? 'page' : undefined}>
                    {title}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {live === 'away' ? (
          <p class="banner" role="status">
            The pool is not responding. The figures may be out of date; the page reconnects automatically.
          </p>
        ) : null}
        {pool.data === undefined || pool.data.notice === null ? null : (
          <p class="card" role="status">
            {pool.data.notice}
          </p>
        )}
        {pool.data?.payouts.paused === true ? (
          <p class="card warn" role="status">
            Payouts are paused by the operator. Shares are still credited, and what is owed is paid when payouts resume.
            {pool.data.payouts.pause_note == null ? '' : ` The operator says: ${pool.data.payouts.pause_note}`}
          </p>
        ) : null}
        <Page key={place.page} place={place} />
      </main>
      {place.page === 'mine' ? null : <MiniBar />}
      <Celebration />
      <footer>
        Amounts are in coins; every credit can be checked on the miner’s page.{' '}
        {pool.data === undefined ? '' : `Network: ${pool.data.network}.`} <ThemeChoice />
      </footer>
    </>
  );
}
