/** A new node as a process takes a long chain with payments in its blocks from a peer while that chain goes on, is killed twice on the way, and has the same cuts and states in the end. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { toHex } from '../../protocol/bytes.ts';
import { count } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { lasts } from '../watch/limits.ts';
import { NodeProcess } from './child-node.ts';
import { PayingChain } from './paying-chain.ts';
import { until } from './peers.ts';

const CUTS = count({ full: 120, deep: 10_000 });

/** Identifier and state root of every cut of an ended node. */
async function rootsOf(directory: string): Promise<string[]> {
  const store = await LedgerStore.open(join(directory, 'store'));
  const roots = Array.from({ length: store.state().height + 1 }, (_, at) => {
    const cut = store.cut(at);
    return `${at} ${toHex(cut?.cutId ?? new Uint8Array())} ${toHex(cut?.header.stateRoot ?? new Uint8Array())}`;
  });
  await store.close();
  return roots;
}

test(
  'a node that joins late and is killed twice has the same cuts and states as the one that it follows',
  lasts(600, 'it makes a long chain first'),
  async () => {
    const paying = new PayingChain();
    onTestFinished(() => paying.bed.close());
    const source = await paying.start();
    for (let i = 0; i < CUTS; i++) await paying.seal(source);
    expect(source.node.chain.supply().outputCount).toBeGreaterThan(CUTS);
    const directory = temporaryDirectory();
    const late = new NodeProcess([directory, source.view.addresses[0] as string, String(paying.bed.now)]);
    onTestFinished(() => late.kill());
    const heights: number[] = [];
    for (const part of [0.25, 0.6]) {
      late.start();
      // The chain goes on meanwhile.
      while ((late.latest?.height ?? 0) < CUTS * part) await paying.seal(source);
      await late.kill();
      heights.push((await rootsOf(join(directory, 'node'))).length - 1);
    }
    late.start();
    for (let i = 0; i < 20; i++) await paying.seal(source);
    const { height } = source.node.chain.head();
    await until(() => late.latest?.height === height);
    await late.kill();
    // It went on where it was.
    expect(heights[0]).toBeGreaterThanOrEqual(CUTS * 0.25);
    expect(heights[1]).toBeGreaterThanOrEqual(CUTS * 0.6);
    await source.close();
    expect(await rootsOf(join(directory, 'node'))).toEqual(await rootsOf(source.directory));
  },
);
