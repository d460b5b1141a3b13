/** The node behind the books is replaced by one of the same chain that lacks what was final: the books wait, also where they were following it all the time. */
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { Accountant } from '../../pool/accountant/accountant.ts';
import { chainOfApi } from '../../pool/accountant/chain.ts';
import { createApiClient } from '../../protocol/api/client.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import { ApiBed } from '../api/api-bed.ts';
import { databaseServer } from '../pool/database-fixture.ts';
import { quietLog } from '../quiet-log.ts';
import { LyingNode } from './lying-node.ts';

const server = databaseServer();

test('books that follow a node do not go on from its older copy, and do when the right one is back', async () => {
  const [long, short] = [await ApiBed.forTest(), await ApiBed.forTest()];
  await long.bed.mine(developmentKey('alice').address);
  await long.bed.seal(30);
  await short.bed.seal(10);
  let node = await LyingNode.start(long.base);
  onTestFinished(() => node.close());
  const port = Number(new URL(node.url).port);
  const replaceBy = async (bed: ApiBed) => {
    await node.close();
    node = await LyingNode.start(bed.base, port);
  };
  const { sql } = await server.fresh();
  const [term] = await sql<{ number: bigint }[]>`select number from term`;
  const transport = { ...nodeTransport(), sleep: () => new Promise<void>((resolve) => setTimeout(resolve, 20)) };
  const accountant = new Accountant(
    {
      sliceCuts: 10,
      windowThousandths: 1000n,
      services: [0, 1],
      feePpm: new Map(),
      network: NETWORKS.development,
      poolAddress: developmentKey('pool').address,
      maxFeePerMass: 1_000n,
      term: (term as { number: bigint }).number,
    },
    {
      sql,
      log: quietLog,
      now: Date.now,
      chain: chainOfApi(createApiClient({ baseUrl: node.url, attempts: 1 }, transport), transport),
    },
  );
  await accountant.start();
  const over = new AbortController();
  const faults = new Set<string>();
  const following = (async () => {
    while (!over.signal.aborted)
      await accountant.follow(over.signal).catch(async (error: { code?: string }) => {
        faults.add(error.code ?? String(error));
        await new Promise((resolve) => setTimeout(resolve, 20));
      });
  })();
  onTestFinished(async () => {
    over.abort();
    await following;
  });
  const height = async () => {
    const [row] = await sql<{ value: string }[]>`select value from settings where name = 'chain_height'`;
    return Number(row?.value ?? 0);
  };
  const followed = async () => {
    // The stream begins with the next cut, whenever it is there.
    await long.bed.seal();
    return height();
  };
  await expect.poll(followed).toBeGreaterThan(30);
  await expect.poll(height).toBe(long.bed.node.chain.head().height);
  const stood = await height();

  await replaceBy(short);
  await expect.poll(() => faults.has('chain_changed')).toBe(true);
  // It grows past the height where the books stand, and is another chain all the same.
  for (let i = 0; i < 6; i++) await short.bed.seal(5);
  faults.clear();
  await expect.poll(() => faults.has('chain_changed')).toBe(true);
  expect(await height()).toBe(stood);

  await replaceBy(long);
  await long.bed.seal(3);
  await expect.poll(height).toBe(long.bed.node.chain.head().height);
});
