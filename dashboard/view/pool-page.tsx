/** The first page: how to begin, what the pool does now, its chart, its newest blocks, and the network. */

import { useState } from 'preact/hooks';
import type { PoolDocument } from '../../pool/api/documents.ts';
import { useDocument, useLive, useNow } from '../data/hooks.ts';
import { isPaused } from '../data/pause.ts';
import { lazyPage } from '../lazy-page.tsx';
import { word } from '../words/language.ts';
import { Placeholder } from './parts.tsx';
import { PoolFigures } from './pool-figures.tsx';
import { StartSteps } from './start-mining.tsx';

const LazyDetails = lazyPage<{ pool: PoolDocument; now: number }>(
  'lazy.rest',
  async () => (await import('./pool-details.tsx')).PoolDetails,
);

export function PoolPage() {
  const first = useDocument<PoolDocument>('pool');
  const [live, setLive] = useState<PoolDocument>();
  useLive((frame) => {
    if (frame.type === 'pool' && !isPaused()) setLive(frame.data);
  });
  const pool = live ?? first.data;
  const now = useNow();
  if (pool === undefined)
    return (
      <>
        <h1 class="hidden-text">{word('nav.pool')}</h1>
        <StartSteps />
        <Placeholder error={first.error} loading empty="" />
      </>
    );
  return (
    <>
      <h1 class="hidden-text">{pool.name}</h1>
      <StartSteps />
      <PoolFigures pool={pool} now={now} />
      <LazyDetails pool={pool} now={now} />
    </>
  );
}
