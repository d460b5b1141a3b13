/** A new node takes a long chain with payments from a peer while that chain goes on, is killed twice on the way, and has the same state in the end; a pruned one begins with a snapshot of that peer, and is killed too. */
import { join } from 'node:path';
import { LedgerStore } from '../../../node/store/ledger-store.ts';
import { PRUNED_KEEPS } from '../../../node/store/storage-mode.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { NodeProcess } from '../../network/child-node.ts';
import { PayingChain } from '../../network/paying-chain.ts';
import { type NetNode, until } from '../../network/peers.ts';
import { PrunedJoiner } from '../../network/pruned-joiner.ts';
import type { Bench } from '../harness.ts';

/** Cuts go on at ten times the network's pace. */
const CUT_MILLIS = 250;
const KILLED_AT = [0.3, 0.6];

const seconds = (since: number): number => (performance.now() - since) / 1_000;
const heightOf = ({ node }: NetNode): number => node.chain.head().height;

export async function measureLateJoiner(b: Bench, cuts: number): Promise<void> {
  const paying = new PayingChain();
  const { bed } = paying;
  const pruned = new PrunedJoiner(paying);
  let late: NodeProcess | undefined;
  const source = await pruned.start();
  try {
    const began = performance.now();
    while (heightOf(source) < cuts) await paying.seal(source);
    b.note(`${cuts} cuts with a block and a payment each, made in ${seconds(began).toFixed(0)} s; 2 validators`);
    const directory = join(bed.directory, 'late');
    late = new NodeProcess([directory, source.view.addresses[0] as string, String(bed.now)]);
    await measureKilled(b, paying, source, late, cuts);
    await late.kill();
    b.note(`the same state root after cut ${await sameState(join(directory, 'node', 'store'), source)}`);
    await measurePruned(b, paying, pruned);
  } finally {
    await late?.kill();
    await pruned.close();
  }
}

/** Height and state root of an ended node; the peer must have the same. */
async function sameState(storeDirectory: string, source: NetNode): Promise<string> {
  const store = await LedgerStore.open(storeDirectory);
  const { height } = store.state();
  const [cut, own] = [store.cut(height), source.node.chain.cut(height)];
  await store.close();
  if (cut === undefined || own === undefined || toHex(cut.cutId) !== toHex(own.cutId))
    throw new Error(`the node has another cut ${height}`);
  return `${height}: ${toHex(cut.header.stateRoot).slice(0, 16)}`;
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

/** It follows for longer than it keeps cuts, so that it deletes some, and is killed on the way. */
async function measurePruned(b: Bench, paying: PayingChain, pruned: PrunedJoiner): Promise<void> {
  const { source } = pruned;
  await pruned.offer();
  const directory = join(paying.bed.directory, 'pruned');
  const began = performance.now();
  const { joiner, began: first } = await pruned.join(directory, PRUNED_KEEPS);
  b.figure('snapshot-joined', seconds(began), 's');
  const follow = async (cuts: number) => {
    for (let i = 0; i < cuts; i++) await paying.seal(source);
    const last = heightOf(source);
    await until(() => joiner.latest?.height === last);
  };
  try {
    joiner.start();
    await follow(PRUNED_KEEPS / 2);
    await joiner.kill();
    joiner.start();
    await follow(PRUNED_KEEPS / 2 + 2 * 96);
    await until(() => (joiner.latest?.bodiesFrom ?? 0) > first + 1);
    const { bodiesFrom } = joiner.latest ?? {};
    await joiner.kill();
    const same = await sameState(join(directory, 'node', 'store'), source);
    b.note(
      `the pruned node began with cut ${first}, was killed, has bodies from ${bodiesFrom} on, and the same state root after cut ${same}`,
    );
  } finally {
    await joiner.kill();
  }
}
