/** The wallet file, its password and the program's commands around them. */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lockDirectory } from '../../../runtime/files/directory-lock.ts';
import { changePassword, unlock } from '../../../wallet/keys/password.ts';
import { openWalletFile, readWalletFile, sealWalletFile, writeWalletFile } from '../../../wallet/keys/wallet-file.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { restoreFile, runCommand, runJson } from '../commands.ts';
import { secretsOf } from '../open-wallet.ts';

const FAST = 10;
const secrets = { ...secretsOf('file'), passphrase: 'extra' };
test('sealed and opened again; any change and any other password is refused', async () => {
  const text = await sealWalletFile(secrets, 'development', 'password', FAST);
  expect(await openWalletFile(text, 'password')).toEqual({ secrets, network: 'development' });
  expect(text).not.toContain('extra');
  await expect(openWalletFile(text, 'Password')).rejects.toMatchObject({ code: 'file_password' });
  const changes: [string, string][] = [
    ['"development"', '"mainnet"'],
    ['"log2_n": 10', '"log2_n": 11'],
    ['"version": 1', '"version": 2'],
    ['"scrypt"', '"other"'],
    ['"log2_n": 10', '"log2_n": 30'],
    ['"development"', '"nowhere"'],
    ['svc-wallet', 'other'],
  ];
  for (const [from, to] of changes)
    await expect(openWalletFile(text.replace(from, to), 'password')).rejects.toMatchObject({
      code: expect.stringMatching(/^file_(password|damaged)$/),
    });
  const box = /"box": "(..)/.exec(text)?.[1] as string;
  const flipped = text.replace(`"box": "${box}`, `"box": "${box === '00' ? '01' : '00'}`);
  await expect(openWalletFile(flipped, 'password')).rejects.toMatchObject({ code: 'file_password' });
  for (const broken of ['', '{', 'null', '[]', '{}', text.slice(0, -20)])
    await expect(openWalletFile(broken, 'password')).rejects.toMatchObject({ code: 'file_damaged' });
});

test('a file that others can read is refused, and so is its password file', async () => {
  const file = join(temporaryDirectory(), 'w.json');
  await writeWalletFile(file, await sealWalletFile(secrets, 'development', 'p', FAST));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  writeFileSync(`${file}.password`, 'p\n', { mode: 0o644 });
  await expect(unlock(file, undefined, undefined)).rejects.toMatchObject({ code: 'file_readable_by_others' });
  chmodSync(`${file}.password`, 0o600);
  expect((await unlock(file, undefined, undefined)).network).toBe('development');
  for (const mode of [0o640, 0o604, 0o610]) {
    chmodSync(file, mode);
    expect(() => readWalletFile(file)).toThrow(expect.objectContaining({ code: 'file_readable_by_others' }));
  }
});

test('a change of the password that is cut short anywhere still opens', async () => {
  const file = join(temporaryDirectory(), 'w.json');
  const stored = `${file}.password`;
  await writeWalletFile(file, await sealWalletFile(secrets, 'development', 'old', FAST));
  writeFileSync(stored, 'old\n', { mode: 0o600 });
  // After the new password was written, before the wallet.
  writeFileSync(`${stored}.new`, 'new\n', { mode: 0o600 });
  expect((await unlock(file, undefined, undefined)).secrets).toEqual(secrets);
  // After the wallet, before the password file was renamed.
  await writeWalletFile(file, await sealWalletFile(secrets, 'development', 'new', FAST));
  expect((await unlock(file, undefined, undefined)).secrets).toEqual(secrets);
  expect(readFileSync(stored, 'utf8')).toBe('new\n');
  await changePassword(file, { secrets, network: 'development' }, 'third', stored, FAST);
  expect(readFileSync(stored, 'utf8')).toBe('third\n');
  expect((await unlock(file, undefined, undefined)).secrets).toEqual(secrets);
  expect(existsSync(`${stored}.new`)).toBe(false);
});

test('init, restore, change-password and the lock, by the commands', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'a.json');
  const made = await runCommand(['init', '--file', file, '--generate-password', '--json']);
  expect(made).toMatchObject({ status: 0, stderr: '' });
  const { words } = JSON.parse(made.stdout) as { words: string[] };
  expect(words).toHaveLength(24);
  expect(await runCommand(['init', '--file', file, '--generate-password'])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('[file_exists]'),
  });
  const again = join(directory, 'b.json');
  expect(await restoreFile(again, words.join('\n'))).toMatchObject({ status: 0 });
  const service = ['--service', 'http://127.0.0.1:9'];
  const first = async (path: string) => (await runJson(['new-address', '--file', path, ...service])).address;
  expect(await first(again)).toBe(await first(file));
  const lock = lockDirectory(`${file}.state`);
  expect(await runCommand(['balance', '--file', file, ...service])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('[wallet_locked]'),
  });
  lock.release();
  expect(await runCommand(['balance', '--file', file, ...service])).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(/^warning: .*\[node_unreachable\].* at cut 0;/),
  });
  const before = readFileSync(`${file}.password`, 'utf8');
  expect(await runCommand(['change-password', '--file', file, '--generate-password'])).toMatchObject({ status: 0 });
  expect(readFileSync(`${file}.password`, 'utf8')).not.toBe(before);
  const status = await runCommand(['status', '--file', file, '--json', ...service]);
  expect(JSON.parse(status.stdout)).toMatchObject({ node_reachable: false, addresses: 1 });
  expect(
    await runCommand([
      'send',
      (JSON.parse(status.stdout) as { x?: string }).x ?? 'nonsense',
      '1',
      '--file',
      file,
      ...service,
      '--yes',
    ]),
  ).toMatchObject({ status: 1, stderr: expect.stringContaining('[address_invalid]') });
});
