/** Storage modes (network rule 14): what goes and when, what stays for a peer that fetches it, and who may not do without. */
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AutoPruning, pruneThrough } from '../../node/chain/auto-pruning.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { developmentFiles, writeDevelopmentNetwork } from '../../node/genesis/development-network.ts';
import { openNode } from '../../node/open-node.ts';
import { certificatesToDrop } from '../../node/store/kept-certificates.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import type { StorageMode } from '../../node/store/storage-mode.ts';
import { temporaryDirectory } from '../temporary.ts';
import { Bed, quickHash, START_MILLIS, silentLog } from './bed.ts';

const alice = developmentKey('alice').address;
const KEEPS = 100;

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.open({ options: { storage: 'pruned' } });
});
afterEach(() => bed.close());

function keptAfter(cuts: number, interval: number, mode: StorageMode): number[] {
  const kept = new Set<number>();
  for (let head = 0; head < cuts; head++) {
    kept.add(head);
    for (const cut of certificatesToDrop(head, interval, mode)) kept.delete(cut);
  }
  return [...kept];
}

test('an archive keeps every certificate, a pruned node those of the last hour and each epoch’s last', () => {
  expect(keptAfter(3_000, 240, 'archive')).toHaveLength(3_000);
  const pruned = keptAfter(3_000, 240, 'pruned');
  expect(pruned.filter((height) => height < 3_000 - 1_440)).toEqual([239, 479, 719, 959, 1_199, 1_439]);
  expect(pruned.filter((height) => height >= 3_000 - 1_440)).toHaveLength(1_440);
  expect(keptAfter(3_000, 240, 'full')).toContain(1_535);
});

test('bodies go that are older than an hour; what is being fetched stays, but not for ever', () => {
  expect(pruneThrough(5_000, [], 0)).toBe(3_560);
  const hold = { from: 3_001, atMillis: 1_000 };
  expect(pruneThrough(5_000, [hold], 2_000)).toBe(3_000);
  expect(pruneThrough(5_000, [hold], 61_000)).toBe(3_560);
  // Asking for the same old cuts again and again gains another hour.
  expect(pruneThrough(9_000, [hold], 2_000)).toBe(6_120);
  expect(pruneThrough(5_000, [{ from: 4_900, atMillis: 1_000 }], 2_000)).toBe(3_560);
});

test('a pruned node deletes bodies as the chain goes on, and none that a peer began to fetch', async () => {
  let now = 0;
  const pruning = new AutoPruning({ node: bed.node, log: silentLog, steady: () => now, keeps: KEEPS });
  const ids: Uint8Array[] = [];
  for (let i = 0; i < 4; i++) {
    ids.push((await bed.mine(alice)) as Uint8Array);
    await bed.seal(1);
  }
  const kept = () => ids.map((id) => bed.node.chain.blockBody(id) !== undefined);
  await bed.seal(130);
  // The last 96th cut was 95, when nothing was old enough; the peer asks for the block of cut 3 on.
  expect(kept()).toEqual([true, true, true, true]);
  pruning.served('peer', 3);
  pruning.begin();
  await pruning.idle();
  expect(kept()).toEqual([false, false, true, true]);
  expect(bed.node.chain.bodiesFrom()).toBe(3);
  // A question about blocks of those cuts prolongs it; one of a peer that was given none does not count.
  now = 50_000;
  pruning.served('peer');
  pruning.served('other');
  now = 100_000;
  pruning.begin();
  await pruning.idle();
  expect(bed.node.chain.bodiesFrom()).toBe(3);
  now = 110_001;
  await bed.seal(191 - 134);
  await pruning.idle();
  expect(bed.node.chain.bodiesFrom()).toBe(191 - KEEPS + 1);
  expect(kept()).toEqual([false, false, false, false]);
  await pruning.stop();
  // How far it came is known after a restart; a full node says so too.
  await bed.node.close();
  const store = await LedgerStore.open(join(bed.directory, 'store'));
  expect([store.prunedThrough(), store.mode]).toEqual([191 - KEEPS, 'full']);
  await store.close();
  await bed.openNode();
  expect(bed.node.chain.bodiesFrom()).toBe(191 - KEEPS + 1);
});

test('a validator that prunes, or was pruned, does not start', async () => {
  const directory = temporaryDirectory();
  await writeDevelopmentNetwork(join(directory, 'network'), { timestampMillis: START_MILLIS, validators: 2 });
  const files = developmentFiles(join(directory, 'network'));
  const dataDir = join(directory, 'node');
  const start = async (storage: StorageMode) => {
    const stops: (() => Promise<void> | void)[] = [];
    const validators = {
      files: { keyFile: files.key(0), passwordFile: files.password },
      binds: [{ host: '127.0.0.1', port: 0 }],
      neighbours: [],
    };
    try {
      await openNode(
        { network: 'development', dataDir, genesis: files.genesis, storage, validators },
        {
          verifier: { prepare: async () => undefined, hash: async (_, header) => quickHash(header) },
          log: silentLog,
          now: () => START_MILLIS + 1_000,
          fault: () => undefined,
          started: (_, stop) => void stops.push(stop),
        },
      );
    } finally {
      for (const stop of stops.reverse()) await stop();
    }
  };
  await expect(start('pruned')).rejects.toMatchObject({ code: 'validator_pruned' });
  await start('full');
  const store = await LedgerStore.open(join(dataDir, 'store'));
  await store.pruneBodies(0);
  await store.close();
  await expect(start('full')).rejects.toMatchObject({ code: 'validator_pruned' });
});
