import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HEAD_BYTES, SUM_BYTES } from '../../kernels/dataset-file.ts';
import { createVerifier } from '../../kernels/verifier.ts';
import { toHex } from '../../protocol/bytes.ts';
import { level } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { noiseHeader, referenceHasher, TINY } from './tiny-network.ts';

const FILE = 'dataset-4-9-0.bin';

/** One start of a program: which stages it went through, what it logged, and a right hash at the end. */
async function start(dataDir: string, epoch = 0): Promise<{ stages: string[]; log: unknown[] }> {
  const stages = new Set<string>();
  const log: unknown[] = [];
  let written = false;
  const verifier = createVerifier(
    { network: TINY, mode: 'full', threads: 1, dataDir },
    {
      onProgress({ stage, done, total }) {
        stages.add(stage);
        if (stage === 'store') written = done === total;
      },
      log: (message, fields) => log.push(fields.reason ?? message),
    },
  );
  await verifier.prepare(epoch);
  expect(toHex(await verifier.hash(epoch, noiseHeader(1)))).toBe(toHex(referenceHasher(TINY, epoch)(noiseHeader(1))));
  const half = (): boolean => readdirSync(dataDir).some((name) => name.endsWith('.partial'));
  if (stages.has('dataset')) await expect.poll(() => written && !half()).toBe(true);
  await verifier.close();
  return { stages: [...stages].sort(), log };
}

const BUILT = ['cache', 'dataset', 'store'];
const LOADED = ['cache', 'load', 'verify'];

test('a dataset is built once and loaded afterwards', async () => {
  const directory = join(temporaryDirectory(), 'made', 'by', 'itself');
  expect(await start(directory)).toEqual({ stages: BUILT, log: [] });
  expect(await start(directory)).toEqual({ stages: LOADED, log: [] });
  expect(readFileSync(join(directory, FILE)).length).toBe(HEAD_BYTES + 512 * 128 + SUM_BYTES);
});

const damages: Record<string, { damage(path: string): void; reason: string; stages?: string[] }> = {
  'cut short': { damage: (path) => truncateSync(path, 40_000), reason: 'truncated', stages: BUILT },
  'without its checksum': {
    damage: (path) => truncateSync(path, HEAD_BYTES + 512 * 128 + 5),
    reason: 'truncated',
  },
  empty: { damage: (path) => truncateSync(path, 0), reason: 'truncated', stages: BUILT },
  'too long': {
    damage: (path) => writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from([0])])),
    reason: 'too long',
  },
  'with one bit flipped': { damage: (path) => flip(path, 30_000), reason: 'wrong checksum' },
  'with a wrong checksum': { damage: (path) => flip(path, HEAD_BYTES + 512 * 128 + 3), reason: 'wrong checksum' },
  'of another epoch': { damage: (path) => flip(path, 14), reason: 'another dataset', stages: BUILT },
  'right by its checksum and wrong by its content': {
    damage(path) {
      const bytes = readFileSync(path);
      bytes.fill(7, HEAD_BYTES, bytes.length - SUM_BYTES);
      createHash('sha256')
        .update(bytes.subarray(0, -SUM_BYTES))
        .digest()
        .copy(bytes, bytes.length - SUM_BYTES);
      writeFileSync(path, bytes);
    },
    reason: 'dataset file has wrong content, building it again',
    stages: ['cache', 'dataset', 'load', 'store', 'verify'],
  },
};

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(path, bytes);
}

/** One of each kind at the usual level: too short, wrong by its checksum, another one, wrong by its content. */
const USUAL = [
  'cut short',
  'with one bit flipped',
  'of another epoch',
  'right by its checksum and wrong by its content',
];
const isAsked = ([name]: readonly [string, unknown]): boolean => level === 'deep' || USUAL.includes(name);

test('a damaged file is named, built again and sound afterwards', async () => {
  const directory = temporaryDirectory();
  await start(directory);
  for (const [name, { damage, reason, stages }] of Object.entries(damages).filter(isAsked)) {
    damage(join(directory, FILE));
    const found = await start(directory);
    expect({ name, log: found.log }).toEqual({ name, log: [reason] });
    expect(found.stages).toEqual(stages ?? ['cache', 'dataset', 'load', 'store']);
  }
  expect(await start(directory)).toEqual({ stages: LOADED, log: [] });
});

test('a write that was interrupted leaves nothing that is ever read', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, `${FILE}.partial`), 'half a dataset');
  expect(await start(directory)).toEqual({ stages: BUILT, log: [] });
  expect(readdirSync(directory)).toEqual([FILE]);
});

test('files of epochs that are gone are removed', async () => {
  const directory = temporaryDirectory();
  for (const epoch of [0, 1, 2]) await start(directory, epoch);
  expect(readdirSync(directory)).toEqual(expect.arrayContaining(['dataset-4-9-1.bin', 'dataset-4-9-2.bin']));
  expect(readdirSync(directory)).not.toContain(FILE);
});

test('a directory that cannot be written to costs the file and nothing else', async () => {
  const directory = join(temporaryDirectory(), 'a file');
  writeFileSync(directory, '');
  const log: string[] = [];
  const options = { network: TINY, mode: 'full', threads: 1, dataDir: directory } as const;
  const verifier = createVerifier(options, { log: (message) => log.push(message) });
  await verifier.prepare(0);
  await expect.poll(() => log).toContain('dataset file cannot be written');
  await verifier.close();
});
