/** The disk of a node gets full while it syncs: it ends, and with room again it goes on where it was, to the same cuts and states. */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { toHex } from '../../protocol/bytes.ts';
import { smallDisk } from '../pool/small-disk.ts';
import { temporaryDirectory } from '../temporary.ts';
import { FAULT, NodeProcess } from './child-node.ts';
import { PayingChain } from './paying-chain.ts';
import { until } from './peers.ts';

test('a sync that the disk has no room for ends the node, and goes on once there is room', async () => {
  const paying = new PayingChain();
  onTestFinished(() => paying.bed.close());
  const source = await paying.start();
  for (let i = 0; i < 60; i++) await paying.seal(source);
  const directory = join(temporaryDirectory(), 'disk');
  const disk = smallDisk(directory);
  const late = new NodeProcess([directory, source.view.addresses[0] as string, String(paying.bed.now)]);
  onTestFinished(() => late.kill());
  late.start();
  await until(() => (late.latest?.height ?? 0) > 10);
  disk.fill(late.pid);
  // There is always another cut to write.
  while (late.code === undefined) await paying.seal(source);
  expect(late.code).toBe(FAULT);
  const reached = late.latest?.height ?? 0;
  late.start();
  disk.free(late.pid);
  const { height } = source.node.chain.head();
  await until(() => (late.latest?.height ?? 0) >= reached);
  await until(() => late.latest?.height === height);
  await late.kill();
  const store = await LedgerStore.open(join(directory, 'node', 'store'));
  onTestFinished(() => store.close());
  const { chain } = source.node;
  const cutsOf = (cut: (at: number) => ReturnType<LedgerStore['cut']>) =>
    Array.from({ length: height + 1 }, (_, at) => {
      const found = cut(at);
      return found && `${toHex(found.cutId)} ${toHex(found.header.stateRoot)}`;
    });
  expect(cutsOf((at) => store.cut(at))).toEqual(cutsOf((at) => chain.cut(at)));
});
