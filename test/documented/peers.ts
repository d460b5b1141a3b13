/** docs/network.md: two nodes on one machine, snapshots, a node that begins with one, a checkpoint. The first node is the network of all readers. */
import { copyFileSync } from 'node:fs';
import { expect } from 'vitest';
import { until } from '../until.ts';
import { headOf, json, serves } from './asking.ts';
import type { Names, Reader, Readers, Running } from './reader.ts';

type Sync = { readonly synced: boolean; readonly peers: number; readonly finalized_height: number };

async function follows(readers: Readers, node: Running, port: number): Promise<void> {
  await serves(readers, node, port);
  await until(async () => (await json<Sync>(`${readers.url(port)}/v1/node/sync`))?.synced, { why: () => node.shown });
}

/** Two nodes on one machine; then the first one alone, which writes snapshots from then on. */
export async function twoNodes(readers: Readers, anna: Reader, address: string): Promise<Running> {
  await anna.runs('svcd genesis --development-validators 4 --fund ADDRESS=16000000 --out genesis.json', {
    names: { ADDRESS: address },
  });
  const alone = anna.starts('svcd run --genesis genesis.json --data-dir .data/first --p2p-listen 127.0.0.1:28705');
  await serves(readers, alone);
  const second = anna.starts(
    'svcd run --genesis genesis.json --data-dir .data/second --bootstrap /ip4/127.0.0.1/tcp/28705 --api-bind 127.0.0.1:28801 --mining-bind 127.0.0.1:28802',
  );
  await follows(readers, second, 28_801);
  await second.stop();
  await alone.stop();
  const first = anna.starts(
    'svcd run --data-dir .data/first --p2p-listen 127.0.0.1:28705 --write-snapshots .data/snapshots --snapshot-cuts 192',
  );
  await serves(readers, first);
  return first;
}

/** The newest snapshot, taken along before the node deletes it: it keeps two. */
async function takeSnapshot(anna: Reader, first: Running): Promise<Names> {
  return until(
    () => {
      const written = [...first.said.matchAll(/snapshot written.* height=(\d+) cut=([0-9a-f]{96})/g)].at(-1);
      if (written === undefined) return undefined;
      const [, height = '', cut = ''] = written;
      try {
        copyFileSync(anna.path(`.data/snapshots/snapshot-${height}`), anna.path(`snapshot-${height}`));
      } catch {
        return undefined;
      }
      return { '.data/snapshots/snapshot-191': `snapshot-${height}`, CUT_ID: cut };
    },
    { why: () => first.shown },
  );
}

export async function snapshots(readers: Readers, anna: Reader, first: Running): Promise<void> {
  const names = await takeSnapshot(anna, first);
  expect(await anna.runs('svcd snapshot verify .data/snapshots/snapshot-191', { names })).toContain(names.CUT_ID);
  const third = anna.starts(
    'svcd run --data-dir .data/third --storage pruned --bootstrap /ip4/127.0.0.1/tcp/28705 --snapshot .data/snapshots/snapshot-191 --trust CUT_ID --api-bind 127.0.0.1:28801 --mining-bind 127.0.0.1:28802',
    { names },
  );
  await third.until(/this node began with a snapshot/);
  await follows(readers, third, 28_801);
  await third.stop();
}

/** A node that asks its peers for a snapshot, and one that must meet a checkpoint, which goes on running. */
export async function laterNodes(readers: Readers, anna: Reader): Promise<Running> {
  const head = await until(() => headOf(readers));
  const trusted = { 'HEIGHT:CUT_ID': `${head.height}:${head.cut_id}` };
  const fourth = anna.starts(
    'svcd run --data-dir .data/fourth --storage pruned --genesis genesis.json --bootstrap /ip4/127.0.0.1/tcp/28705 --trust HEIGHT:CUT_ID --api-bind 127.0.0.1:28901 --mining-bind 127.0.0.1:28902',
    { names: trusted },
  );
  await fourth.until(/this node began with a snapshot/);
  await fourth.stop();
  const second = anna.starts(
    'svcd run --data-dir .data/second --genesis genesis.json --bootstrap /ip4/127.0.0.1/tcp/28705 --checkpoint HEIGHT:CUT_ID --api-bind 127.0.0.1:28801 --mining-bind 127.0.0.1:28802',
    { names: trusted },
  );
  await follows(readers, second, 28_801);
  return second;
}
