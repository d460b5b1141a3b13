/** Processes: a node writes snapshots while it runs, one is verified, and a second node begins with it, is killed, and has the same states as the first; so does a third that takes it from both. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { developmentGenesis } from '../../node/genesis/development.ts';
import { writeGenesis } from '../../node/genesis/make-genesis.ts';
import { isSnapshotHeight } from '../../node/snapshot/snapshot-head.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { toHex } from '../../protocol/bytes.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { until } from '../network/peers.ts';
import { Svcd } from '../network/svcd.ts';
import { temporaryDirectory } from '../temporary.ts';

const CHILD = fileURLToPath(new URL('./fetch-child.ts', import.meta.url));
const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));

test('svcd run --write-snapshots, svcd snapshot verify, svcd run --snapshot, svcd run --trust', async () => {
  const directory = temporaryDirectory();
  const snapshots = join(directory, 'snapshots');
  const ports = await freePorts(8);
  const port = (i: number) => ports[i] as number;
  const genesis = join(directory, 'genesis.json');
  writeGenesis(genesis, developmentGenesis({ timestampMillis: Date.now(), validators: 1 }));
  const common = (name: string) => [
    '--data-dir',
    join(directory, name),
    '--genesis',
    genesis,
    '--cut-millis',
    '20',
    '--pow-mode',
    'light',
  ];
  const writing = (cuts: number) =>
    new Svcd({ api: port(0), mining: port(1) }, [
      ...common('first'),
      '--p2p-listen',
      `127.0.0.1:${port(4)}`,
      '--write-snapshots',
      snapshots,
      '--snapshot-cuts',
      String(cuts),
    ]);
  let first = writing(192);
  first.start();
  onTestFinished(() => first.end('SIGKILL'));
  // The node deletes a snapshot when there are two newer ones.
  const file = join(directory, 'snapshot');
  await until(async () => {
    await first.height();
    const newest = existsSync(snapshots)
      ? readdirSync(snapshots)
          .filter((name) => /-\d+$/.test(name))
          .at(-1)
      : undefined;
    if (newest === undefined) return false;
    copyFileSync(join(snapshots, newest), file);
    return true;
  });
  const said = execFileSync(process.execPath, [MAIN, 'snapshot', 'verify', file, '--json'], { encoding: 'utf8' });
  const { cut_id: cutId, height } = JSON.parse(said) as { cut_id: string; height: number };
  expect(isSnapshotHeight(height)).toBe(true);
  // From here on it keeps the snapshots that it has.
  await first.end('SIGTERM');
  first = writing(96_000);
  first.start();
  const others = join(directory, 'others');
  mkdirSync(others);
  copyFileSync(file, join(others, `snapshot-${height}`));
  const second = new Svcd({ api: port(2), mining: port(3) }, [
    ...common('second'),
    '--snapshot',
    file,
    '--trust',
    cutId,
    '--storage',
    'pruned',
    '--bootstrap',
    `/ip4/127.0.0.1/tcp/${port(4)}`,
    '--p2p-listen',
    `127.0.0.1:${port(5)}`,
    '--write-snapshots',
    others,
    '--snapshot-cuts',
    '96000',
  ]);
  second.start();
  onTestFinished(() => second.end('SIGKILL'));
  await until(async () => (await second.height()) > height + 20);
  await second.end('SIGKILL');
  // With the same words: the store is there, so the file is not read again.
  second.start();
  await until(async () => (await second.height()) > height + 100);
  // The third knows a later cut, and asks both; it is killed while it fetches.
  type Head = { readonly cut: { readonly height: number; readonly cut_id: string } };
  const found: Head[] = [];
  await until(async () => {
    const head = await second.get<Head>('/v1/chain/head');
    if (head !== undefined) found.push(head);
    return head !== undefined;
  });
  const { height: later, cut_id: trusted } = (found[0] as Head).cut;
  const peers = [port(4), port(5)].map((at) => `/ip4/127.0.0.1/tcp/${at}`);
  const data = join(directory, 'third');
  for (const parts of ['3', '7']) {
    const words = [CHILD, data, genesis, trusted, String(later), peers.join(), parts];
    const child = spawn(process.execPath, words, { stdio: 'inherit' });
    expect(await new Promise((resolve) => child.once('exit', (_, signal) => resolve(signal)))).toBe('SIGKILL');
    expect(existsSync(join(data, 'store'))).toBe(false);
  }
  const third = new Svcd({ api: port(6), mining: port(7) }, [
    ...common('third'),
    '--trust',
    `${later}:${trusted}`,
    '--storage',
    'pruned',
    ...peers.flatMap((peer) => ['--bootstrap', peer]),
  ]);
  third.start();
  onTestFinished(() => third.end('SIGKILL'));
  await until(async () => (await third.height()) > later);
  expect(existsSync(join(data, 'snapshot.fetch'))).toBe(false);
  for (const svcd of [third, second, first]) await svcd.end('SIGTERM');
  const names = ['first', 'second', 'third'];
  const stores = await Promise.all(names.map((name) => LedgerStore.open(join(directory, name, 'store'))));
  const [whole, begun, fetched] = stores as [LedgerStore, LedgerStore, LedgerStore];
  expect([whole.beganAt(), begun.beganAt()]).toEqual([-1, height]);
  const last = Math.min(begun.state().height, fetched.state().height);
  expect(last).toBeGreaterThan(later);
  const began = fetched.beganAt();
  expect(isSnapshotHeight(began)).toBe(true);
  const from = Math.max(height, began);
  const roots = (store: LedgerStore) =>
    Array.from({ length: last - from }, (_, i) => {
      const cut = store.cut(from + 1 + i);
      return cut && `${toHex(cut.cutId)} ${toHex(cut.header.stateRoot)}`;
    });
  expect(roots(begun)).toEqual(roots(whole));
  expect(roots(fetched)).toEqual(roots(whole));
  // Of a stopped node a snapshot can be made only where its newest cut ends a step.
  const isPossible = isSnapshotHeight(whole.state().height);
  for (const store of stores) await store.close();
  const out = join(directory, 'made');
  const words = [MAIN, 'snapshot', 'create', '--data-dir', join(directory, 'first'), '--out', out];
  const created = spawnSync(process.execPath, words, { encoding: 'utf8' });
  expect([created.status, existsSync(out)]).toEqual(isPossible ? [0, true] : [1, false]);
  if (!isPossible) expect(created.stderr).toMatch(/snapshot_not_here/);
});
