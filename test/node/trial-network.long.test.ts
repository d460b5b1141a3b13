/** A network with the main network's proof of work whose validators' keys everybody knows: one node alone makes its cuts, also with peers. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { developmentGenesis } from '../../node/genesis/development.ts';
import { writeGenesis } from '../../node/genesis/make-genesis.ts';
import { openNode } from '../../node/open-node.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { quickHash } from './bed.ts';

const PEERS = { listen: ['/ip4/127.0.0.1/tcp/0'], announce: [], maxPeers: 8 };

async function open(bootstrap: readonly string[]) {
  const directory = temporaryDirectory();
  const genesis = join(directory, 'genesis.json');
  writeGenesis(genesis, { ...developmentGenesis({ timestampMillis: Date.now() }), network: 'testnet' });
  const stops: (() => Promise<void> | void)[] = [];
  const node = await openNode(
    { network: 'testnet', dataDir: directory, genesis, cutMillis: 20, peers: { ...PEERS, bootstrap } },
    {
      verifier: { prepare: async () => undefined, hash: async (_epoch, header) => quickHash(header) },
      log: quietLog,
      now: Date.now,
      started: (_name, stop) => void stops.push(stop),
      fault: (reason) => expect.fail(reason),
    },
  );
  const close = async () => {
    for (const stop of stops.reverse()) await stop();
  };
  return { node, close };
}

test('a node without a configured peer makes cuts with the public keys', async () => {
  const { node, close } = await open([]);
  expect(node.makesCuts).toBe(true);
  await expect.poll(() => node.chain.head().height).toBeGreaterThan(2);
  await close();
});

test('a node with a configured peer follows it and makes none', async () => {
  const { node, close } = await open(['/ip4/127.0.0.1/tcp/9']);
  expect(node.makesCuts).toBe(false);
  expect(node.chain.sync()).toMatchObject({ synced: false, height: 0 });
  await close();
});
