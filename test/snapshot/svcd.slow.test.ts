/** Processes: a node writes snapshots while it runs, one is verified, and a second node begins with it, is killed, and has the same states as the first. */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { isSnapshotHeight } from '../../node/snapshot/snapshot-head.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { toHex } from '../../protocol/bytes.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { until } from '../network/peers.ts';
import { Svcd } from '../network/svcd.ts';
import { temporaryDirectory } from '../temporary.ts';

const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));

test('svcd run --write-snapshots, svcd snapshot verify, svcd run --snapshot', async () => {
  const directory = temporaryDirectory();
  const snapshots = join(directory, 'snapshots');
  const ports = await freePorts(5);
  const port = (i: number) => ports[i] as number;
  const common = (name: string) => ['--data-dir', join(directory, name), '--cut-millis', '20', '--pow-mode', 'light'];
  const first = new Svcd({ api: port(0), mining: port(1) }, [
    ...common('first'),
    ...['--p2p-listen', `127.0.0.1:${port(4)}`, '--write-snapshots', snapshots, '--snapshot-cuts', '192'],
  ]);
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
  const second = new Svcd({ api: port(2), mining: port(3) }, [
    ...common('second'),
    ...['--snapshot', file, '--trust', cutId, '--storage', 'pruned', '--bootstrap', `/ip4/127.0.0.1/tcp/${port(4)}`],
  ]);
  second.start();
  onTestFinished(() => second.end('SIGKILL'));
  await until(async () => (await second.height()) > height + 20);
  await second.end('SIGKILL');
  // With the same words: the store is there, so the file is not read again.
  second.start();
  await until(async () => (await second.height()) > height + 100);
  for (const svcd of [second, first]) await svcd.end('SIGTERM');
  const stores = await Promise.all(['first', 'second'].map((name) => LedgerStore.open(join(directory, name, 'store'))));
  const [whole, begun] = stores as [LedgerStore, LedgerStore];
  expect([whole.beganAt(), begun.beganAt()]).toEqual([-1, height]);
  const last = begun.state().height;
  expect(last).toBeGreaterThan(height + 100);
  const roots = (store: LedgerStore) =>
    Array.from({ length: last - height }, (_, i) => {
      const cut = store.cut(height + 1 + i);
      return cut && `${toHex(cut.cutId)} ${toHex(cut.header.stateRoot)}`;
    });
  expect(roots(begun)).toEqual(roots(whole));
  // Of a stopped node a snapshot can be made only where its newest cut ends a step.
  const isPossible = isSnapshotHeight(whole.state().height);
  for (const store of stores) await store.close();
  const out = join(directory, 'made');
  const words = [MAIN, 'snapshot', 'create', '--data-dir', join(directory, 'first'), '--out', out];
  const created = spawnSync(process.execPath, words, { encoding: 'utf8' });
  expect([created.status, existsSync(out)]).toEqual(isPossible ? [0, true] : [1, false]);
  if (!isPossible) expect(created.stderr).toMatch(/snapshot_not_here/);
});
