import { afterEach, expect, test } from 'vitest';
import { developmentKey } from '../../node/development.ts';
import { payment } from '../node/bed.ts';
import { lineOf, strangersIn } from './line.ts';
import { headOf, NetBed, type NetNode, treasuryOutput, until } from './peers.ts';

const BOB = developmentKey('bob').address;

let bed: NetBed | undefined;
afterEach(() => bed?.close());

test('along a line of seven nodes a transaction and a block go from one end to the other, and the cut comes back', async () => {
  bed = new NetBed();
  const nodes = await lineOf(bed, 7);
  const [first, last] = [nodes[0] as NetNode, nodes[6] as NetNode];
  const wire = payment(last.node.chain, [treasuryOutput(last.node.chain, 0)], [{ address: BOB, amount: 5n }]);
  await last.node.submitTransaction(wire);
  await until(() => first.node.mempool.count === 1);
  const id = await bed.mine(last.node);
  await until(() => first.node.chain.block(id) !== undefined);
  await bed.seal(first, 1);
  await until(() => nodes.every((node) => headOf(node) === headOf(first)));
  expect(last.node.chain.block(id)?.registeredHeight).toBe(first.node.chain.head().height);
  await until(() => nodes.every(({ node }) => node.mempool.count === 0));
  expect(strangersIn(nodes)).toEqual([]);
});
