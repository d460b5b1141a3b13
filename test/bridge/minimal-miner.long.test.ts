/** The minimal miner of docs/protocol/stratum.md, unchanged, mines on the real server. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { parseAddress } from '../../protocol/address.ts';
import { powHash } from '../pow-hash.ts';
import { startBed } from './bed.ts';
import { addressOf } from './stratum-client.ts';

type Mine = (options: Record<string, unknown>) => Promise<bigint[]>;

async function minimalMiner(): Promise<Mine> {
  const text = readFileSync(join(import.meta.dirname, '../../docs/protocol/stratum.md'), 'utf8');
  const code = /```js\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
  const folder = mkdtempSync(join(tmpdir(), 'svc-minimal-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'miner.mjs');
  writeFileSync(file, code);
  return ((await import(/* @vite-ignore */ pathToFileURL(file).href)) as { mine: Mine }).mine;
}

test('the minimal miner of the documentation mines on the server', async () => {
  const { port, sink } = await startBed({ threads: 1 });
  const mine = await minimalMiner();
  const work = await mine({
    host: '127.0.0.1',
    port,
    address: addressOf(1),
    worker: 'doc',
    wanted: 3,
    pow: (_network: number, epoch: number, header: Uint8Array) => powHash(epoch, header),
    payloadOf: (address: string) => parseAddress(address, 'development').payload,
  });
  expect(work.length).toBe(3);
  expect(sink.accepted.slice(0, 3).map((share) => share.work)).toEqual(work);
});
