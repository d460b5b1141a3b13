/** A pruned node as a process begins with a snapshot of a peer, follows, deletes what is old, is killed twice, and has the same cuts and states as its peer. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { toHex } from '../../protocol/bytes.ts';
import { temporaryDirectory } from '../temporary.ts';
import { PayingChain } from './paying-chain.ts';
import { until } from './peers.ts';
import { PrunedJoiner } from './pruned-joiner.ts';

/** The fewest that a node can keep. */
const KEEPS = 96;

test('a pruned node from a snapshot of a peer follows, prunes, is killed, and has the same states', async () => {
  const paying = new PayingChain();
  const pruned = new PrunedJoiner(paying);
  const source = await pruned.start();
  onTestFinished(() => pruned.close());
  await pruned.offer();
  const directory = temporaryDirectory();
  const { joiner, began } = await pruned.join(directory, KEEPS);
  expect(began).toBe(191);
  onTestFinished(() => joiner.kill());
  const follow = async (cuts: number) => {
    for (let i = 0; i < cuts; i++) await paying.seal(source);
    const { height } = source.node.chain.head();
    await until(() => joiner.latest?.height === height);
  };
  joiner.start();
  // Nothing of its own is older than what it keeps yet; then the first that it took is.
  await follow(70);
  expect(joiner.latest?.bodiesFrom).toBe(began + 1);
  await follow(110);
  await until(() => (joiner.latest?.bodiesFrom ?? 0) > began + 1);
  // In the middle of what follows.
  for (let i = 0; i < 40; i++) await paying.seal(source);
  await joiner.kill();
  joiner.start();
  await follow(100);
  await until(() => joiner.latest?.bodiesFrom === 480 - KEEPS);
  await joiner.kill();
  const store = await LedgerStore.open(join(directory, 'node', 'store'), { mode: 'pruned' });
  onTestFinished(() => store.close());
  const { height } = store.state();
  const { chain } = source.node;
  expect(height).toBeGreaterThan(began + 300);
  const cutsOf = (cut: (at: number) => ReturnType<LedgerStore['cut']>) =>
    Array.from({ length: height - began }, (_, i) => {
      const found = cut(began + 1 + i);
      return found && `${toHex(found.cutId)} ${toHex(found.header.stateRoot)}`;
    });
  expect(cutsOf((at) => store.cut(at))).toEqual(cutsOf((at) => chain.cut(at)));
  // What is old is gone, what is not is there.
  const bodies = (at: number) => (store.cut(at)?.blockIds ?? []).map((id) => store.body(id) !== undefined);
  expect(bodies(480 - KEEPS - 1)).toEqual([false]);
  expect(bodies(480 - KEEPS)).toEqual([true]);
});
