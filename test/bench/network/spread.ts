/** Transactions, blocks and cuts over nodes of one process: how long each takes to every node, and how often its bytes come. */
import { developmentKey } from '../../../node/genesis/development.ts';
import { NetBed, type NetNode, treasuryOutput } from '../../network/peers.ts';
import { payment } from '../../node/bed.ts';
import { type Bench, percentile } from '../harness.ts';
import { arrivals, meshOf } from './hostile-mesh.ts';
import { lineOf, strangersIn } from './line.ts';

const ROUNDS = 20;
const SETTLE_MILLIS = 5_000;
const BOB = developmentKey('bob').address;

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));
const height = ({ node }: NetNode): number => node.chain.head().height;
const bytesOf = (nodes: readonly NetNode[]) => () =>
  nodes.reduce((sum, { view }) => sum + view.figures().receivedBytes, 0);

async function pay({ node }: NetNode, index: number): Promise<Uint8Array> {
  const wire = payment(node.chain, [treasuryOutput(node.chain, index)], [{ address: BOB, amount: 5n }]);
  await node.submitTransaction(wire);
  return wire;
}

/** The first node makes the cuts; transactions and blocks begin at different ones. */
async function measureArrivals(b: Bench, bed: NetBed, nodes: readonly NetNode[]): Promise<void> {
  const [source] = nodes as [NetNode];
  const [transactions, blocks, cuts]: [number[], number[], number[]] = [[], [], []];
  const slowest: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    await pay(nodes[(i * 7) % nodes.length] as NetNode, i);
    const took = await arrivals(nodes, ({ node }) => node.mempool.count === i + 1);
    transactions.push(...took);
    slowest.push(Math.round(Math.max(...took)));
  }
  for (let i = 0; i < ROUNDS; i++) {
    const id = await bed.mine((nodes[(i * 7) % nodes.length] as NetNode).node);
    blocks.push(...(await arrivals(nodes, ({ node }) => node.chain.block(id) !== undefined)));
    await bed.seal(source, 1);
    const wanted = height(source);
    cuts.push(...(await arrivals(nodes, (node) => height(node) >= wanted)));
  }
  b.note(`${nodes.length} nodes in one process; every transaction, block and cut is waited for at every node`);
  b.note(`the last node of each transaction after ${slowest.join(', ')} ms`);
  for (const [what, values] of Object.entries({ transaction: transactions, block: blocks, cut: cuts })) {
    b.figure(`${what}-p50`, percentile(values, 0.5), 'ms');
    b.figure(`${what}-p99`, percentile(values, 0.99), 'ms');
  }
}

async function meshFrom(bed: NetBed, count: number): Promise<NetNode[]> {
  const source = await bed.start('source', {});
  await bed.seal(source, 2, 1);
  return await meshOf(bed, source, count);
}

export async function measureSpread(b: Bench, count: number, shape: 'mesh' | 'line' = 'mesh'): Promise<void> {
  const bed = new NetBed();
  try {
    const nodes = await (shape === 'mesh' ? meshFrom : lineOf)(bed, count);
    await pause(SETTLE_MILLIS);
    const bytes = bytesOf(nodes);
    const before = bytes();
    await measureArrivals(b, bed, nodes);
    await pause(1_500);
    b.figure('received-per-node', (bytes() - before) / count / 1024, 'KiB');
    await measureDuplicates(b, nodes, bytes);
    if (shape === 'line' && strangersIn(nodes).length > 0)
      throw new Error('nodes of the line found others than their neighbours');
  } finally {
    await bed.close();
  }
}

/**
 * Bytes that a node receives for a transaction, over the transaction's own: of bodies, which come as answers, and of all, with what is announced. What comes without any transaction is measured before for as long and taken off.
 */
async function measureDuplicates(b: Bench, nodes: readonly NetNode[], bytes: () => number): Promise<void> {
  const rest = () => pause(SETTLE_MILLIS);
  const first = bytes();
  await rest();
  const idle = bytes() - first;
  const start = bytes();
  const answered = () => nodes.reduce((sum, { view }) => sum + view.answeredBytes('relay'), 0);
  const answeredBefore = answered();
  const [from] = nodes as [NetNode];
  const had = from.node.mempool.count;
  let sent = 0;
  for (let i = ROUNDS; i < ROUNDS + 40; i++) sent += (await pay(from, i)).length;
  await arrivals(nodes, ({ node }) => node.mempool.count === had + 40);
  await rest();
  const received = (bytes() - start - idle) / (nodes.length - 1);
  b.figure('bodies-over-sent', (answered() - answeredBefore) / (nodes.length - 1) / sent, 'times');
  b.figure('received-over-sent', received / sent, 'times');
}
