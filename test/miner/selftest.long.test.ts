import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

const main = new URL('../../miner/main.ts', import.meta.url).pathname;
const vectors = new URL('../../vectors/pow.json', import.meta.url).pathname;

function selfTest(file: string) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [main, 'self-test', '--vectors', file, '--network', 'development'],
    { encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

type Entry = { network: string; hashes: { pow: string; mix: string; header: string }[]; items: { bytes: string }[] };

function changed(change: (entry: Entry) => void): string {
  const entries = JSON.parse(readFileSync(vectors, 'utf8')) as Entry[];
  change(entries.find((entry) => entry.network === 'development') as Entry);
  const file = join(temporaryDirectory(), 'pow.json');
  writeFileSync(file, JSON.stringify(entries));
  return file;
}

test('the first difference is named and the exit code is 1', () => {
  const file = changed((entry) => {
    entry.hashes[1]!.mix = `00${entry.hashes[1]!.mix.slice(2)}`;
    entry.hashes[1]!.pow = '0'.repeat(64);
  });
  const { status, stdout } = selfTest(file);
  expect(status).toBe(1);
  expect(stdout).toMatch(
    /^reference: DIFFERENT: development epoch 0 hash 1 mix is [0-9a-f]{64}, expected 00[0-9a-f]{62} /,
  );
});

test('a file of another shape is refused, with the place', () => {
  const file = changed((entry) => {
    entry.hashes[0]!.header = '00';
  });
  expect(selfTest(file)).toEqual({
    status: 1,
    stdout: '',
    stderr:
      'svc-miner self-test: file[2].hashes[0].header is not 312 bytes of hex text (expected 624 hex characters, got 2) [vectors_invalid]\n',
  });
  expect(selfTest(join(temporaryDirectory(), 'none.json')).stderr).toContain('[vectors_unreadable]');
});

test('without a file, and quickly, from any folder: the vectors come with the miner, and each step is announced', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, 'self-test', '--quick'], {
    encoding: 'utf8',
    cwd: temporaryDirectory(),
    timeout: 60_000,
  });
  expect(status, stderr).toBe(0);
  expect(stdout).toMatch(/^reference: \d+ values are the same\n/);
  expect(stderr).toMatch(/^reference: checking development epoch 0 \(1 of \d+\)\n/);
  expect(stderr).not.toContain('mainnet');
  expect(stderr.match(/webgpu .*: checking/g) ?? []).toHaveLength(1);
});
