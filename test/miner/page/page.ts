/** The page of page-miner.slow.test.ts: hands the miner to the test, and shows its figures. */
import { PageMiner, type PageMinerStats } from '../../../miner/browser/page-miner.ts';

declare global {
  interface Window {
    miner: PageMiner;
    last: PageMinerStats | undefined;
  }
}

window.miner = new PageMiner();
window.miner.onStats = (stats) => {
  window.last = stats;
  const text = JSON.stringify(stats, (_key, value) => (typeof value === 'bigint' ? value.toString() : value), 2);
  (document.getElementById('stats') as HTMLElement).textContent = text;
};
