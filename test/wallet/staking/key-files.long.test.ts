/** The specification's commands that write keys of a validator, and a validator that comes back from 24 words: read by the node, and by `svcd` as a process. */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { developmentGenesis } from '../../../node/genesis/development.ts';
import { writeGenesis } from '../../../node/genesis/make-genesis.ts';
import { loadValidatorKey } from '../../../node/validator/validator-key.ts';
import { formatAddress, keyAddressPayload } from '../../../protocol/address.ts';
import { type Bytes, toHex } from '../../../protocol/bytes.ts';
import { validatorId } from '../../../protocol/staking/names.ts';
import { steadyMillis } from '../../../runtime/clock/clock.ts';
import { runRestore } from '../../../wallet/command/creation.ts';
import { terminalPrompt } from '../../../wallet/command/prompt.ts';
import { WalletRoot } from '../../../wallet/keys/derivation.ts';
import { Keyring } from '../../../wallet/keys/keyring.ts';
import { level } from '../../level.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { runCommand, runJson } from '../commands.ts';
import { WalletFiles } from '../wallet-files.ts';

const MAIN = fileURLToPath(new URL('../../../node/main.ts', import.meta.url));
const LAST_INDEX = 2_147_483_647;

async function setUp() {
  const directory = temporaryDirectory();
  const files = new WalletFiles(directory);
  await files.write();
  const at = (name: string) => join(directory, name);
  const consensus = (file: string, ...more: string[]) => [
    'validator-key-export',
    '--file',
    files.file,
    '--validator-key-file',
    at(`${file}.json`),
    '--validator-key-password-file',
    at(`${file}.password`),
    ...more,
  ];
  const fee = (file: string, ...more: string[]) => [
    'validator-heartbeat-fee-key-export',
    '--file',
    files.file,
    '--heartbeat-fee-key-file',
    at(`${file}.json`),
    '--heartbeat-fee-key-password-file',
    at(`${file}.password`),
    ...more,
  ];
  const load = (file: string, purpose: 'consensus' | 'heartbeat-fee') =>
    loadValidatorKey({ keyFile: at(`${file}.json`), passwordFile: at(`${file}.password`) }, purpose, 'development');
  const keyring = new Keyring(new WalletRoot(files.phrase, '', 'development'));
  return { at, files, consensus, fee, load, keyring };
}

test('Operator commands: `validator-key-export`', async () => {
  const { at, consensus, load, keyring } = await setUp();
  // A tail of options that fits the other commands fits this one; nobody is asked there.
  const shown = await runCommand(consensus('keys/first', '--service', 'http://127.0.0.1:1'));
  expect(shown).toMatchObject({ status: 0, stderr: expect.stringContaining('One machine signs with it') });
  // What is written, and where.
  expect(shown.stdout).toContain(`consensus key   ${LAST_INDEX} on development\n`);
  expect(shown.stdout).toContain(`key file        ${at('keys/first.json')} (written, mode 600)\n`);
  expect(shown.stdout).toContain(`${at('keys/first.password')} (written: a random password, mode 600)\n`);
  for (const file of ['keys/first.json', 'keys/first.password']) expect(statSync(at(file)).mode & 0o777).toBe(0o600);
  expect(statSync(at('keys')).mode & 0o777).toBe(0o700);
  const { publicKey } = await load('keys/first', 'consensus');
  const expected = keyring.key({ branch: 'receive', index: LAST_INDEX });
  expect(publicKey).toEqual(expected.publicKey);
  await expect(load('keys/first', 'heartbeat-fee')).rejects.toMatchObject({ code: 'validator_key_foreign' });
  const sealed = readFileSync(at('keys/first.json'), 'utf8');
  expect(sealed).not.toContain(readFileSync(at('keys/first.password'), 'utf8').trim());

  // Nothing is overwritten; a password file that is there is used and stays.
  expect((await runJson(consensus('keys/first'))).error?.code).toBe('file_exists');
  expect(readFileSync(at('keys/first.json'), 'utf8')).toBe(sealed);
  writeFileSync(at('second.password'), 'of my own\nand a note\n', { mode: 0o600 });
  const second = await runJson(consensus('second', '--consensus-key-index', '2147418112'));
  expect(second).toMatchObject({ password_written: false, consensus_key_index: 2_147_418_112, network: 'development' });
  const { address } = await load('second', 'consensus');
  expect(formatAddress(address, 'development')).toBe(second.consensus_key_address);
  expect(address).not.toEqual((await load('keys/first', 'consensus')).address);

  // Refusals, with nothing written.
  for (const index of ['2147418111', '2147483648', '0', 'x'])
    expect((await runCommand(consensus('third', '--consensus-key-index', index))).status).toBe(2);
  writeFileSync(at('third.password'), '\n', { mode: 0o600 });
  expect((await runJson(consensus('third'))).error?.code).toBe('password_missing');
  writeFileSync(at('third.password'), 'seen by all\n');
  chmodSync(at('third.password'), 0o644);
  expect((await runJson(consensus('third'))).error?.code).toBe('file_readable_by_others');
  const same = ['--validator-key-file', at('same'), '--validator-key-password-file', at('same')];
  expect((await runJson([...consensus('third').slice(0, 3), ...same])).error?.code).toBe('params_invalid');
  const under = ['--validator-key-file', at('second.json/x'), '--validator-key-password-file', at('second.password')];
  expect((await runJson([...consensus('third').slice(0, 3), ...under])).error?.code).toBe('file_unwritable');
  expect(existsSync(at('third.json')) || existsSync(at('same'))).toBe(false);
});

test('Operator commands: `validator-heartbeat-fee-key-export`', async () => {
  const { at, fee, load, keyring } = await setUp();
  const made = await runJson(fee('fee'));
  const { address } = await load('fee', 'heartbeat-fee');
  expect(made).toMatchObject({
    heartbeat_fee_address: formatAddress(address, 'development'),
    heartbeat_fee_key_file: at('fee.json'),
    heartbeat_fee_key_password_file: at('fee.password'),
    password_written: true,
  });
  for (const file of ['fee.json', 'fee.password']) expect(statSync(at(file)).mode & 0o777).toBe(0o600);
  expect(made.heartbeat_fee_address).toBe(keyring.addressRecord('change', LAST_INDEX, 0).address);
  await expect(load('fee', 'consensus')).rejects.toMatchObject({ code: 'validator_key_foreign' });
  expect((await runJson(fee('fee'))).error?.code).toBe('file_exists');
  const other = await runCommand(fee('other', '--heartbeat-fee-key-index', '2147483646'));
  expect(other.stdout).toMatch(/heartbeat_fee_address dsvc1[0-9a-z]+\n/);
  expect(other.stdout).not.toContain(made.heartbeat_fee_address);
});

test('a validator is restored from the 24 words alone in another directory', async () => {
  const { files, keyring } = await setUp();
  const elsewhere = temporaryDirectory();
  const restored = join(elsewhere, 'wallet.json');
  const wordsFile = join(elsewhere, 'words');
  writeFileSync(wordsFile, `${files.phrase}\n`, { mode: 0o600 });
  const plain = { network: 'development', passwordFile: undefined, passphraseFile: undefined, json: true } as const;
  const terminal = { out: () => undefined, err: () => undefined, readText: () => '', env: {} };
  await runRestore({ ...plain, file: restored, wordsFile, generatePassword: true }, terminal, terminalPrompt);
  const [key, password, feeKey, feePassword] = ['key.json', 'key.password', 'fee.json', 'fee.password'].map((name) =>
    join(elsewhere, name),
  ) as [string, string, string, string];
  const again = await runJson([
    'validator-key-export',
    '--file',
    restored,
    '--validator-key-file',
    key,
    '--validator-key-password-file',
    password,
  ]);
  const againFee = await runJson([
    'validator-heartbeat-fee-key-export',
    '--file',
    restored,
    '--heartbeat-fee-key-file',
    feeKey,
    '--heartbeat-fee-key-password-file',
    feePassword,
  ]);
  const own = keyring.key({ branch: 'receive', index: LAST_INDEX }).publicKey;
  expect(again.consensus_key_address).toBe(formatAddress(keyAddressPayload(own), 'development'));
  expect(againFee.heartbeat_fee_address).toBe(keyring.addressRecord('change', LAST_INDEX, 0).address);
  const consensusKey = await loadValidatorKey({ keyFile: key, passwordFile: password }, 'consensus', 'development');
  expect(consensusKey.publicKey).toEqual(own);
  const feeFiles = { keyFile: feeKey, passwordFile: feePassword };
  const { address: payer } = await loadValidatorKey(feeFiles, 'heartbeat-fee', 'development');
  expect(formatAddress(payer, 'development')).toBe(againFee.heartbeat_fee_address);
  // The program itself starts from them.
  if (level === 'deep') await svcdStarts(elsewhere, { key, password, feeKey, feePassword }, consensusKey.publicKey);
});

type KeyFiles = Readonly<Record<'key' | 'password' | 'feeKey' | 'feePassword', string>>;

async function svcdStarts(
  elsewhere: string,
  { key, password, feeKey, feePassword }: KeyFiles,
  publicKey: Bytes,
): Promise<void> {
  const id = toHex(validatorId(publicKey));
  const heartbeat = { validator_id: id, fee_key_file: feeKey, fee_key_password_file: feePassword };
  const config = {
    validator: {
      consensus_key_file: key,
      password_file: password,
      heartbeat: { ...heartbeat, max_fee_atoms: 100_000 },
    },
    validator_overlay: { listen_addrs: '127.0.0.1:0' },
  };
  writeFileSync(join(elsewhere, 'node.json'), JSON.stringify(config));
  const genesis = join(elsewhere, 'genesis.json');
  writeGenesis(genesis, developmentGenesis({ timestampMillis: steadyMillis(), validators: 4 }));
  const dataDir = join(elsewhere, 'data');
  const words = ['--genesis', genesis, '--data-dir', dataDir, '--api-bind', 'off', '--mining-bind', 'off'];
  const child = spawn(process.execPath, [MAIN, 'run', ...words, '--config', join(elsewhere, 'node.json')]);
  const gone = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await gone;
  });
  let log = '';
  const started = new Promise<void>((resolve, reject) => {
    const note = (part: Buffer) => {
      log += part.toString();
      if (log.includes(`validator=${id}`)) resolve();
    };
    child.stdout.on('data', note);
    child.stderr.on('data', note);
    gone.then(() => reject(new Error(log)));
  });
  await started;
}
