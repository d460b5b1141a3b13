/** README.md, docs/pool.md and docs/operations.md: a pool at a node, with and without a wallet daemon; audits, copies and a restore. */
import { copyFileSync, readdirSync } from 'node:fs';
import { expect } from 'vitest';
import { until } from '../until.ts';
import type { Reader, Readers, Running } from './reader.ts';

const READY = /ready healthy=true/;

/** The pool of the README, which the rigs of the others mine at. */
export async function startPool(paul: Reader): Promise<Running> {
  const pool = paul.starts(
    'bin/svc-pool run --node http://127.0.0.1:28702 --node-api http://127.0.0.1:28701 --pplns-listen 0.0.0.0:28720 --web-bind 0.0.0.0:28740 --public-url http://POOL-MACHINE:28740',
  );
  await pool.until(READY);
  return pool;
}

/** A rig at the pool of another machine. It goes on running. */
export async function rig(anna: Reader, address: string): Promise<Running> {
  expect(await anna.runs('svc-miner --list-devices')).toMatch(/^ *0 /m);
  const miner = anna.starts('bin/svc-miner -o stratum+tcp://POOL-MACHINE:28720 -u ADDRESS.rig1', {
    names: { ADDRESS: address },
  });
  await miner.until(/accepted/);
  return miner;
}

/** What the page of the pool says of a rig, what anybody can recompute, and a copy while it runs. */
export async function lookAtPool(readers: Readers, paul: Reader, miner: string): Promise<void> {
  const web = readers.url(28_740);
  expect(await (await fetch(`${web}/`)).text()).toContain('<html');
  await until(async () => (await (await fetch(`${web}/api/v1/miners/${miner}/workers`)).text()).includes('rig1'));
  // Everything holds, or the books of that moment are a few cuts behind the ledger, which the verdict says.
  const audit = paul.starts('bin/svc-pool audit --public http://POOL-MACHINE:28740/ --node-api http://YOUR-NODE:28701');
  expect([0, 3], audit.shown).toContain(await audit.ended);
  expect(audit.said).toMatch(/Verdict: (?:no difference was found|nothing was found to be wrong)/);
  await paul.runs('svc-pool backup --data-dir DIR --to DIR --keep 24', {
    names: { '--data-dir DIR': '--data-dir .data/pool', '--to DIR': '--to copies' },
  });
}

/** With the pool stopped. */
export async function restorePool(paul: Reader): Promise<void> {
  await paul.runs('svc-pool audit --data-dir .data/pool');
  const [copy = ''] = readdirSync(paul.path('copies'));
  expect(copy).toMatch(/^books-/);
  await paul.runs('svc-pool restore DIR/books-TIME --data-dir DIR', {
    names: { 'DIR/books-TIME': `copies/${copy}`, '--data-dir DIR': '--data-dir .data/pool' },
  });
}

/** What the wallet paid and what the books say: the node runs, the pool does not. */
export async function comparePayouts(paul: Reader): Promise<void> {
  await paul.runs('svc-pool repair-payouts');
  await paul.runs('svc-pool new-key');
}

/** At the wallet daemon that runs. */
export async function poolWithWallet(readers: Readers, anna: Reader): Promise<void> {
  copyFileSync(anna.path('.svc/wallet.json.token'), anna.path('wallet.token'));
  readers.give(anna.path('wallet.token'));
  const pool = anna.starts(
    'svc-pool run --node http://127.0.0.1:28702 --node-api http://127.0.0.1:28701 --wallet http://127.0.0.1:28703 --wallet-token-file wallet.token',
  );
  await pool.until(READY);
  await pool.stop();
}
