/** A new node takes a long chain with payments from a peer while that chain goes on, is killed twice on the way, and has the same state in the end; another one begins with a snapshot of that peer. */
import { join } from 'node:path';
import { fetchSnapshot } from '../../../node/network/fetch-snapshot.ts';
import { installSnapshot } from '../../../node/snapshot/install-snapshot.ts';
import { SnapshotShelf } from '../../../node/snapshot/snapshot-shelf.ts';
import { SnapshotWriter } from '../../../node/snapshot/snapshot-writer.ts';
import { LedgerStore } from '../../../node/store/ledger-store.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { steadyMillis } from '../../../runtime/clock.ts';
import { NodeProcess } from '../../network/child-node.ts';
import { PayingChain } from '../../network/paying-chain.ts';
import { headOf, type NetNode, until } from '../../network/peers.ts';
import { quietLog } from '../../quiet-log.ts';
import type { Bench } from '../harness.ts';

/** Cuts go on at ten times the network's pace. */
const CUT_MILLIS = 250;
const KILLED_AT = [0.3, 0.6];

const seconds = (since: number): number => (performance.now() - since) / 1_000;
const heightOf = ({ node }: NetNode): number => node.chain.head().height;

export async function measureLateJoiner(b: Bench, cuts: number): Promise<void> {
  const paying = new PayingChain();
  const { bed } = paying;
  const folder = join(bed.directory, 'snapshots');
  let shelf!: SnapshotShelf;
  let late: NodeProcess | undefined;
  try {
    const source = await paying.start((node) => {
      const cutIdOf = (height: number) => node.chain.cut(height)?.cutId;
      shelf = new SnapshotShelf({ directory: folder, cutIdOf, steady: steadyMillis, log: quietLog });
      return { snapshots: shelf };
    });
    const began = performance.now();
    while (heightOf(source) < cuts) await paying.seal(source);
    b.note(`${cuts} cuts with a block and a payment each, made in ${seconds(began).toFixed(0)} s; 2 validators`);
    const directory = join(bed.directory, 'late');
    late = new NodeProcess([directory, source.view.addresses[0] as string, String(bed.now)]);
    await measureKilled(b, paying, source, late, cuts);
    await late.kill();
    const store = await LedgerStore.open(join(directory, 'node', 'store'));
    const { height } = store.state();
    const [cut, own] = [store.cut(height), source.node.chain.cut(height)];
    await store.close();
    if (cut === undefined || own === undefined || toHex(cut.cutId) !== toHex(own.cutId))
      throw new Error(`the late node has another cut ${height}`);
    b.note(`the same state root after cut ${height}: ${toHex(cut.header.stateRoot).slice(0, 16)}`);
    await measureFromSnapshot(b, paying, source, shelf, folder);
  } finally {
    await late?.kill();
    await shelf?.close();
    await bed.close();
  }
}

async function measureKilled(b: Bench, paying: PayingChain, source: NetNode, late: NodeProcess, cuts: number) {
  const height = () => late.latest?.height ?? 0;
  let running = 0;
  for (const part of [...KILLED_AT, 1]) {
    const started = performance.now();
    late.start();
    while (height() < (part < 1 ? cuts * part : heightOf(source))) {
      await paying.seal(source);
      await new Promise((resolve) => setTimeout(resolve, CUT_MILLIS));
    }
    running += seconds(started);
    if (part < 1) await late.kill();
  }
  const { height: last } = source.node.chain.head();
  await until(() => height() >= last);
  b.figure('late-joined', running, 's');
  b.figure('late-joined-rate', last / running, 'cuts/s');
  b.figure('late-made-meanwhile', last - cuts, 'cuts');
}

async function measureFromSnapshot(
  b: Bench,
  paying: PayingChain,
  source: NetNode,
  shelf: SnapshotShelf,
  folder: string,
): Promise<void> {
  const { bed } = paying;
  const { node } = source;
  const writer = new SnapshotWriter({ directory: folder, everyCuts: 96, node, log: quietLog });
  do await paying.seal(source);
  while ((heightOf(source) + 1) % 96 !== 0);
  await writer.idle();
  await writer.stop();
  await shelf.look();
  // The trusted cut is a later one.
  for (let i = 0; i < 20; i++) await paying.seal(source);
  const { height, cutId } = node.chain.head();
  const dataDir = join(bed.directory, 'pruned');
  const bootstrap = [source.view.addresses[0] as string];
  const { genesis } = node.chain;
  const began = performance.now();
  const found = await fetchSnapshot(
    {
      dataDir,
      peers: { listen: [], announce: [], bootstrap, maxPeers: 8 },
      trust: { height, cutId },
      genesis,
      release: '0.1.0',
    },
    { log: quietLog, now: () => bed.now, steady: steadyMillis, signal: new AbortController().signal },
  );
  await installSnapshot({
    file: found.file,
    trust: found.cutId,
    storeDirectory: join(dataDir, 'store'),
    network: 'development',
    genesis,
    nowMillis: bed.now,
  });
  b.figure('snapshot-joined', seconds(began), 's');
  const joined = await bed.start('pruned', { bootstrap, follows: true });
  const first = heightOf(joined);
  for (let i = 0; i < 100; i++) await paying.seal(source);
  await until(() => heightOf(joined) === heightOf(source));
  if (headOf(joined) !== headOf(source)) throw new Error('the node from the snapshot has another state');
  b.note(`the node from the snapshot of cut ${first} has the same state root after cut ${heightOf(joined)}`);
}
