/** Two halves of a network that part and find each other again: both have the same chain afterwards, and what was submitted in either reaches the other. */
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/development.ts';
import { transactionIdOfWire } from '../../protocol/transaction.ts';
import { level } from '../level.ts';
import { payment } from '../node/bed.ts';
import { Cable, startApart } from './cable.ts';
import { headOf, NetBed, type NetNode, treasuryOutput, until } from './peers.ts';

const SPLIT_SECONDS = level === 'deep' ? 300 : 0;
const BOB = developmentKey('bob').address;
const height = ({ node }: NetNode): number => node.chain.head().height;

test('two halves that were parted have the same chain and the same waiting transactions afterwards', async () => {
  const bed = new NetBed();
  const source = await startApart(bed, 'source', []);
  await bed.seal(source, 3, 1);
  const cable = await Cable.open(source.port);
  onTestFinished(async () => {
    await bed.close();
    await cable.close();
  });
  const near = await startApart(bed, 'near', [source.port]);
  const gate = await startApart(bed, 'gate', [cable.port]);
  const far = await startApart(bed, 'far', [gate.port]);
  const all = [source, near, gate, far];
  await until(() => all.every((node) => node.node.chain.sync().synced && height(node) === 3));
  cable.part();
  await until(() => gate.view.figures().peers.length === 1);
  const pay = async ({ node }: NetNode, index: number): Promise<Uint8Array> => {
    const wire = payment(node.chain, [treasuryOutput(node.chain, index)], [{ address: BOB, amount: 5n }]);
    expect(await node.submitTransaction(wire)).toMatchObject({ status: 'accepted' });
    return transactionIdOfWire(wire);
  };
  // Nothing that is mined takes them, so that they wait.
  const sent = [await pay(near, 0), await pay(far, 1)];
  for (let second = 0; second < SPLIT_SECONDS; second++) {
    if (second % 3 === 0) await bed.seal(source, 1);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  await bed.seal(source, 20);
  await until(() => height(near) === height(source));
  expect([height(gate), height(far)]).toEqual([3, 3]);
  expect(source.node.mempool.get(sent[1] as Uint8Array)).toBeUndefined();
  cable.heal();
  await until(() => all.every((node) => height(node) === height(source)));
  // What went astray is asked for after a cut.
  const isEverywhere = () => all.every(({ node }) => sent.every((id) => node.mempool.get(id) !== undefined));
  for (let looks = 0; !isEverywhere(); looks++) {
    if (looks % 50 === 49) await bed.seal(source, 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await until(() => all.every((node) => headOf(node) === headOf(source)));
  expect(all.map(({ node }) => node.chain.sync().synced)).toEqual([true, true, true, true]);
});
