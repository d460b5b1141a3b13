/**
 * kill -9 at random moments and a disk that is full: each restart goes on from a finalized cut with the value equation intact, and nothing
 * that was final before is missing.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { certifyWith } from '../../node/chain/certificate.ts';
import type { FullNode } from '../../node/full-node.ts';
import { developmentGenesis } from '../../node/genesis/development.ts';
import { rebuildIndex } from '../../node/index/rebuild.ts';
import { createNode, type NodeDependencies } from '../../node/node.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { count, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { temporaryDirectory } from '../temporary.ts';
import { developmentKeys, KNOWN_SEED, quickHash, silentLog } from './bed.ts';

const CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url));

type Seen = {
  readonly cuts: Map<number, { id: string; blocks: string[] }>;
  readonly accepted: Set<string>;
  fault?: string;
};

/**
 * When a child dies: so many milliseconds after it was started, or after it told of so many cuts, which does not depend on how busy the machine is, or
 * when its files have become too large.
 */
type Death =
  | { readonly startedMillis: number }
  | { readonly cuts: number; readonly millis: number }
  | { readonly fileKilobytes: number };

/** Runs the child until it dies; what it said is what it had promised. */
function runChild(
  store: string,
  childSeed: number,
  seen: Seen,
  dies: Death,
  more: readonly string[] = [],
): Promise<number | null> {
  const node = [process.execPath, CHILD, store, String(childSeed), ...more];
  const limited = 'fileKilobytes' in dies;
  const child = limited
    ? spawn('bash', ['-c', `trap '' XFSZ; ulimit -f ${dies.fileKilobytes}; exec "$@"`, 'bash', ...node])
    : spawn(node[0] as string, node.slice(1));
  let rest = '';
  let cuts = 0;
  child.stdout.on('data', (part: Buffer) => {
    const lines = (rest + part).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const [what, first = '', id = '', blocks = ''] = line.split(' ');
      if (what === 'cut') seen.cuts.set(Number(first), { id, blocks: blocks === '' ? [] : blocks.split(',') });
      if (what === 'block') seen.accepted.add(first);
      if (what === 'fault') seen.fault = line;
      if ('cuts' in dies && (what === 'open' || what === 'cut') && cuts++ === dies.cuts)
        setTimeout(() => child.kill('SIGKILL'), dies.millis);
    }
  });
  if ('startedMillis' in dies) setTimeout(() => child.kill('SIGKILL'), dies.startedMillis);
  let errors = '';
  child.stderr.on('data', (part) => {
    errors += part;
  });
  return new Promise((resolve, reject) => {
    // Not 'exit': then the last lines may still be on their way.
    child.on('close', (code, signal) => {
      if (signal !== 'SIGKILL' && code !== 7) reject(new Error(`the child ended with ${code ?? signal}: ${errors}`));
      else resolve(code);
    });
  });
}

const dependencies: NodeDependencies = {
  verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
  certify: certifyWith(developmentKeys(1)),
  now: Date.now,
  random: randomOf(1),
  log: silentLog,
};

const reopen = (store: string): Promise<FullNode> => createNode({ storeDirectory: store, cutMillis: 0 }, dependencies);

/** Everything that was final is there, every cut hangs on the one before, the equation holds; returns the height. */
async function check(store: string, seen: Seen, from: number): Promise<number> {
  const node = await reopen(store);
  try {
    const { height } = node.chain.head();
    expect(height).toBeGreaterThanOrEqual(Math.max(0, ...seen.cuts.keys()));
    for (let at = Math.max(1, from); at <= height; at++) {
      const cut = node.chain.cut(at);
      expect(cut && toHex(cut.header.previousId)).toBe(toHex(node.chain.cut(at - 1)?.cutId ?? new Uint8Array()));
      const told = seen.cuts.get(at);
      if (told !== undefined)
        expect([toHex(cut?.cutId ?? new Uint8Array()), cut?.blockIds.map(toHex)]).toEqual([told.id, told.blocks]);
      for (const id of cut?.blockIds ?? []) {
        const record = node.chain.block(id);
        expect(record?.registeredHeight).toBe(at);
        expect(node.chain.blockBody(id)).toBeDefined();
        if (record !== undefined && record.dueHeight <= height) expect(record.reward.state).toBe('paid');
      }
    }
    // A block that was answered `accepted` waits, was registered, or its window has closed: it is never unknown.
    for (const id of seen.accepted) expect(node.chain.block(fromHex(id))).toBeDefined();
    seen.accepted.clear();
    const supply = node.chain.supply();
    expect(
      supply.outputs + supply.bonded + supply.unbonding + supply.workReserve + supply.stakeReserve + supply.burned,
    ).toBe(supply.minted);
    return height;
  } finally {
    await node.close();
  }
}

test('killed at random moments while mining and paying, the chain goes on where it was final', async () => {
  const store = join(temporaryDirectory(), 'store');
  const random = randomOf(seed);
  const seen: Seen = { cuts: new Map(), accepted: new Set() };
  let height = 0;
  let promised = 0;
  for (let kill = 0; kill < count({ full: 3, deep: 200 }); kill++) {
    // Every tenth dies while it opens the store.
    const cuts = random(20);
    const opening = kill % 10 === 9;
    await runChild(
      store,
      kill + 1,
      seen,
      opening ? { startedMillis: 200 + random(400) } : { cuts, millis: random(60) },
    );
    if (!opening) promised += cuts;
    height = await check(store, seen, height);
  }
  expect(height).toBeGreaterThanOrEqual(promised);
});

test('killed around changes of epochs, with delegations, it ends on the state that its blocks make', async () => {
  const directory = temporaryDirectory();
  const store = join(directory, 'store');
  const random = randomOf(seed + 1);
  const seen: Seen = { cuts: new Map(), accepted: new Set() };
  const interval = 24;
  let height = 0;
  // How many cuts a start makes before it dies depends on the machine; the way leads over an epoch's end in any case.
  for (let kill = 0; kill < count({ full: 3, deep: 100 }) || height <= interval; kill++) {
    // The last cut of the epoch, the first of the next, or one beside them, at any point of its making.
    const left = interval - 1 - (height % interval);
    const cuts = Math.max(0, left + random(4) - 2);
    await runChild(store, kill + 1, seen, { cuts, millis: random(60) }, [String(interval)]);
    height = await check(store, seen, height);
  }
  expect(height).toBeGreaterThan(interval);
  // All cuts a second time, from genesis: every state root must come out the same.
  const [kept, scratch] = [await LedgerStore.open(store), await LedgerStore.open(join(directory, 'scratch'))];
  try {
    expect(kept.state().positions.count).toBeGreaterThan(1);
    expect(await rebuildIndex(kept, scratch, () => undefined)).toBe(height);
    expect(toHex(scratch.cut(height)?.header.stateRoot ?? new Uint8Array())).toBe(
      toHex(kept.cut(height)?.header.stateRoot ?? new Uint8Array()),
    );
  } finally {
    await kept.close();
    await scratch.close();
  }
});

test('a disk that is full stops the node with its reason; with room again it goes on', async () => {
  const store = join(temporaryDirectory(), 'store');
  const seen: Seen = { cuts: new Map(), accepted: new Set() };
  expect(await runChild(store, 1, seen, { fileKilobytes: 1_024 })).toBe(7);
  expect(seen.fault).toMatch(/File too large|IO error/);
  const height = await check(store, seen, 0);
  await runChild(store, 2, seen, { cuts: 5, millis: 0 });
  expect(await check(store, seen, height)).toBeGreaterThan(height);
});

test('an empty store without a genesis, and a store of another chain, are refused', async () => {
  const directory = temporaryDirectory();
  await expect(reopen(join(directory, 'empty'))).rejects.toMatchObject({ code: 'store_genesis' });
  const store = join(directory, 'store');
  const open = (chain: number) =>
    createNode(
      {
        storeDirectory: store,
        genesis: developmentGenesis({ timestampMillis: 1, seed: KNOWN_SEED.with(0, chain), validators: 1 }),
        cutMillis: 0,
      },
      dependencies,
    );
  await (await open(1)).close();
  await expect(open(2)).rejects.toMatchObject({ code: 'store_genesis' });
  await expect(createNode({ storeDirectory: store, network: NETWORKS.testnet }, dependencies)).rejects.toMatchObject({
    code: 'store_genesis',
  });
  await (await open(1)).close();
});
