/** Configuration of a validator: sections of the config file, key files that only their owner may read, and what keeps a node from starting. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { developmentKey, developmentSeed, validatorName } from '../../node/genesis/development.ts';
import { runOptions } from '../../node/node-options.ts';
import { loadValidatorKey, openValidatorKey, sealValidatorKey } from '../../node/validator/validator-key.ts';
import { validatorPlan } from '../../node/validator/validator-options.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { readNetworkAddress } from '../../runtime/listen-address.ts';
import { temporaryDirectory } from '../temporary.ts';

const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));
const seed = developmentSeed(validatorName(0));
let sealed = '';
beforeAll(async () => {
  sealed = await sealValidatorKey(seed, 'consensus', 'development', 'secret', 10);
});

const read = (config: unknown, ...words: string[]) => {
  const parsed = parseCommandLine(
    { name: 'svcd run', summary: '', options: runOptions },
    ['--config', 'node.json', ...words],
    () => JSON.stringify(config),
  );
  if (parsed.kind !== 'run') throw parsed.kind === 'usage' ? parsed.error : new Error(parsed.kind);
  return parsed.values;
};

test('sections of node.json as the specification has them; the command line wins', () => {
  const config = {
    network: 'testnet',
    validator: { consensus_key_file: 'keys/a.json', password_file: 'keys/a.password' },
    validator_overlay: { listen_addrs: ['/ip4/10.0.0.1/tcp/4000', '10.0.0.2'], neighbours: ['example.net:28704'] },
  };
  expect(validatorPlan(read(config))).toEqual({
    files: { keyFile: 'keys/a.json', passwordFile: 'keys/a.password' },
    binds: [
      { host: '10.0.0.1', port: 4000, way: 'tcp' },
      { host: '10.0.0.2', port: 28709 },
    ],
    neighbours: [{ host: 'example.net', port: 28704 }],
  });
  const given = validatorPlan(read(config, '--overlay-listen', '10.0.0.3:5', '--consensus-key-file', 'other.json'));
  expect(given).toMatchObject({ files: { keyFile: 'other.json' }, binds: [{ host: '10.0.0.3', port: 5 }] });
  expect(validatorPlan(read({ validator: config.validator }))?.binds).toEqual([{ host: '::', port: 28704 }]);
  expect(validatorPlan(read({ validator_overlay: { neighbours: 'a.example:1' } }))).toEqual({
    files: undefined,
    binds: [],
    neighbours: [{ host: 'a.example', port: 1 }],
  });
  expect(validatorPlan(read({}))).toBeUndefined();
});

test('heartbeats: all of the section but the rate is needed, and the consensus key', () => {
  const heartbeat = {
    validator_id: '0a'.repeat(48),
    fee_key_file: 'fee.json',
    fee_key_password_file: 'fee.password',
    max_fee_atoms: 5_000,
  };
  const keys = { consensus_key_file: 'x', password_file: 'y' };
  expect(validatorPlan(read({ validator: { ...keys, heartbeat } }))?.heartbeat).toEqual({
    validatorId: new Uint8Array(48).fill(10),
    files: { keyFile: 'fee.json', passwordFile: 'fee.password' },
    maxFeeAtoms: 5_000n,
    feePerMass: undefined,
  });
  const rated = { ...heartbeat, fee_rate_per_mass: 7 };
  expect(validatorPlan(read({ validator: { ...keys, heartbeat: rated } }))?.heartbeat?.feePerMass).toBe(7n);
  expect(() => validatorPlan(read({ validator: { heartbeat } }))).toThrow('signed by the consensus key');
  for (const name of Object.keys(heartbeat))
    expect(() =>
      validatorPlan(read({ validator: { ...keys, heartbeat: { ...heartbeat, [name]: undefined } } })),
    ).toThrow('heartbeats need');
  for (const wrong of [{ validator_id: '0A'.repeat(48) }, { max_fee_atoms: 0 }, { fee_rate_per_mass: 1.5 }])
    expect(() => read({ validator: { ...keys, heartbeat: { ...heartbeat, ...wrong } } })).toThrow('must');
});

test('what does not fit together is refused', () => {
  expect(() => read({ validator: { key: 'x' } })).toThrow('unknown key "validator.key"');
  expect(() => read({ validator: 'x' })).toThrow('unknown key "validator"');
  expect(() => read({ validator_overlay: { listen_addrs: [{}] } })).toThrow('a list of texts');
  expect(() => validatorPlan(read({ validator: { consensus_key_file: 'x' } }))).toThrow('password file');
  expect(() => validatorPlan(read({ validator_overlay: { listen_addrs: new Array(9).fill('10.0.0.1') } }))).toThrow(
    'at most 8',
  );
  const validator = { consensus_key_file: 'x', password_file: 'y' };
  expect(() => validatorPlan(read({ validator }, '--pow-mode', 'light'))).toThrow('full dataset');
  for (const wrong of ['', 'x y', '/ip4/1.2.3.4/udp/1', '10.0.0.1:70000', ':1'])
    expect(() => readNetworkAddress(wrong)).toThrow();
  expect(readNetworkAddress('::1')).toEqual({ host: '::1', port: undefined });
  expect(readNetworkAddress('[::1]:7')).toEqual({ host: '::1', port: 7 });
});

test('a sealed key opens with its password, for its purpose and network alone', async () => {
  const { publicKey } = await openValidatorKey(sealed, 'consensus', 'development', 'secret');
  expect(publicKey).toEqual(developmentKey(validatorName(0)).publicKey);
  const code = (text: string, ...rest: [purpose?: 'heartbeat-fee', network?: 'testnet', password?: string]) =>
    openValidatorKey(text, rest[0] ?? 'consensus', rest[1] ?? 'development', rest[2] ?? 'secret').then(
      () => 'opened',
      (error: { code: string }) => error.code,
    );
  expect(await code(sealed, undefined, undefined, 'Secret')).toBe('validator_key_password');
  expect(await code(sealed, 'heartbeat-fee')).toBe('validator_key_foreign');
  expect(await code(sealed, undefined, 'testnet')).toBe('validator_key_foreign');
  // Names are sealed too: a file that says another purpose does not open.
  expect(await code(sealed.replace('"consensus"', '"heartbeat-fee"'), 'heartbeat-fee')).toBe('validator_key_password');
  for (const junk of [
    '',
    '[]',
    'null',
    '{}',
    sealed.replace('scrypt', 'none'),
    sealed.replace(/"box": "../, '"box": "zz'),
  ])
    expect(await code(junk)).toBe('validator_key_damaged');
});

test('files that others can read are refused, and svcd says so before it opens anything', async () => {
  const directory = temporaryDirectory();
  const files = { keyFile: join(directory, 'key.json'), passwordFile: join(directory, 'password') };
  writeFileSync(files.keyFile, sealed, { mode: 0o600 });
  writeFileSync(files.passwordFile, 'secret\n', { mode: 0o600 });
  await expect(loadValidatorKey(files, 'consensus', 'development')).resolves.toHaveProperty('publicKey');
  for (const file of [files.keyFile, files.passwordFile])
    for (const mode of [0o644, 0o640, 0o602]) {
      chmodSync(file, mode);
      await expect(loadValidatorKey(files, 'consensus', 'development')).rejects.toMatchObject({
        code: 'secret_file_exposed',
      });
      chmodSync(file, 0o600);
    }
  await expect(
    loadValidatorKey({ ...files, passwordFile: join(directory, 'none') }, 'consensus', 'development'),
  ).rejects.toMatchObject({ code: 'secret_file_unreadable' });
  chmodSync(files.keyFile, 0o644);
  // Relative paths count from the directory that the node was started in.
  mkdirSync(join(directory, 'start'));
  const words = [
    'run',
    '--data-dir',
    'data',
    '--api-bind',
    'off',
    '--mining-bind',
    'off',
    '--consensus-key-file',
    '../key.json',
  ];
  const started = promisify(execFile)(process.execPath, [MAIN, ...words, '--consensus-password-file', '../password'], {
    cwd: join(directory, 'start'),
  });
  await expect(started).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('[secret_file_exposed]') });
});
