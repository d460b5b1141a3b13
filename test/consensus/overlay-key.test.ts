/** `svcd validator-endpoint`: the overlay key is made once and kept, and the endpoint is what a registration carries. */
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readRoute } from '../../node/validator/overlay-key.ts';
import { validatorCommands } from '../../node/validator/validator-commands.ts';
import { fromHex, fromUtf8 } from '../../protocol/bytes.ts';
import { decodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { temporaryDirectory } from '../temporary.ts';

async function run(dataDir: string, ...words: string[]) {
  const found = validatorCommands.find(({ spec }) => spec.name === 'svcd validator-endpoint');
  let [stdout, stderr] = ['', ''];
  const terminal = {
    out: (text: string) => {
      stdout += text;
    },
    err: (text: string) => {
      stderr += text;
    },
    readText: () => '',
    env: {},
  };
  const status = await found?.start(['--data-dir', dataDir, ...words], terminal);
  return { status, stdout, stderr };
}

test('Operator commands: `svcd validator-endpoint`', async () => {
  const dataDir = join(temporaryDirectory(), 'node');
  const first = await run(dataDir);
  expect(first).toMatchObject({ status: 0, stderr: '', stdout: expect.stringMatching(/^[0-9a-f]+\n$/) });
  const plain = decodeEndpoint(fromHex(first.stdout.trim()));
  expect(plain.routes).toEqual([]);
  const file = join(dataDir, 'network', 'validator-overlay', 'overlay-key.pem');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const key = readFileSync(file, 'utf8');

  // The same key with other routes; a name is in lower case, and the port is the network's.
  const words = [
    '--route',
    'Val.Example.org',
    '--route',
    '10.0.0.1:4000',
    '--route',
    '2001:db8::1',
    '--route',
    '[::1]:7',
  ];
  const routed = decodeEndpoint(fromHex((await run(dataDir, ...words)).stdout.trim()));
  expect(readFileSync(file, 'utf8')).toBe(key);
  expect(routed.overlayKey).toEqual(plain.overlayKey);
  expect(routed.routes.map(({ kind, port }) => [kind, port])).toEqual([
    ['name', 28_704],
    ['ipv4', 4_000],
    ['ipv6', 28_704],
    ['ipv6', 7],
  ]);
  expect(fromUtf8(routed.routes[0]?.host ?? new Uint8Array(0))).toBe('val.example.org');
  expect([...(routed.routes[2]?.host ?? [])]).toEqual([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
  const testnet = await run(dataDir, '--network', 'testnet', '--route', '10.0.0.1');
  expect(decodeEndpoint(fromHex(testnet.stdout.trim())).routes[0]?.port).toBe(28_709);
  expect(decodeEndpoint(fromHex((await run(join(dataDir, 'other'))).stdout.trim())).overlayKey).not.toEqual(
    plain.overlayKey,
  );

  // Refusals.
  expect(await run(dataDir, ...words, '--route', '10.0.0.2')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringContaining('at most 4 routes'),
  });
  expect((await run(dataDir, '--route', 'a.b', '--route', 'A.B')).stderr).toContain('twice');
  expect((await run(dataDir, '--route', 'under_score.org')).status).toBe(1);
  for (const wrong of ['', ':1', 'a:0', 'a:65536', '[1.2.3.4]:5', '::1:x', 'a:b:c'])
    expect(() => readRoute(wrong), wrong).toThrow();
  chmodSync(file, 0o644);
  expect((await run(dataDir)).stderr).toContain('[secret_file_exposed]');
  writeFileSync(file, 'junk');
  chmodSync(file, 0o600);
  expect((await run(dataDir)).stderr).toContain('[validator_key_damaged]');
});
