/** One wallet file under several names: all of them lead to one state and one lock, or are refused. Two states would each pay a request once. */
import { existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import { runChangePassword, runInit } from '../../wallet/command/creation.ts';
import { openSession } from '../../wallet/command/session.ts';
import { openWallet } from '../../wallet/open.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';

const NOBODY = 'http://127.0.0.1:9';
const prompt = {
  interactive: false,
  ask: async () => '',
  askHidden: async () => '',
  readAll: async () => '',
};
const terminal = { out: () => undefined, err: () => undefined, readText: () => '', env: {} };

const open = (file: string) =>
  openWallet(
    { file, passwordFile: undefined, service: NOBODY },
    { log: quietLog, ask: undefined, fault: () => undefined },
  );

async function files() {
  const directory = temporaryDirectory();
  const made = new WalletFiles(directory);
  await made.write();
  return { directory, file: made.file, link: join(directory, 'link.json') };
}

test('a symbolic link is the wallet that it names: one lock, one state, one token', async () => {
  const { directory, file, link } = await files();
  symlinkSync(file, link);
  symlinkSync(directory, join(directory, 'also'));
  const names = [link, join(directory, 'also', 'wallet.json'), join(directory, 'also', 'link.json')];
  const wallet = await open(file);
  for (const name of names) await expect(open(name), name).rejects.toMatchObject({ code: 'directory_locked' });
  await wallet.close();
  const linked = await open(link);
  await expect(open(file)).rejects.toMatchObject({ code: 'directory_locked' });
  // A command by the link asks the daemon of the wallet, and by its token.
  const values = { file: link, rpc: { host: '127.0.0.1', port: 9 }, service: NOBODY, json: false };
  await expect(openSession(values as never, prompt)).rejects.toMatchObject({ code: 'wallet_locked' });
  await linked.close();
  expect(readdirSync(directory).sort()).toEqual([
    'also',
    'link.json',
    'wallet.json',
    'wallet.json.password',
    'wallet.json.state',
  ]);
});

test('a file with a second name by a hard link is refused before anything is made for it', async () => {
  const { directory, file, link } = await files();
  linkSync(file, link);
  for (const name of [file, link]) await expect(open(name), name).rejects.toMatchObject({ code: 'file_linked' });
  expect(readdirSync(directory).sort()).toEqual(['link.json', 'wallet.json', 'wallet.json.password']);
  rmSync(link);
  await (await open(file)).close();
});

test('a password is changed behind the link, which stays one, and not while the wallet is in use', async () => {
  const { file, link } = await files();
  symlinkSync(file, link);
  const before = readFileSync(file, 'utf8');
  const values = { file: link, passwordFile: undefined, generatePassword: true, json: false };
  const lock = lockDirectory(`${file}.state`);
  await expect(runChangePassword(values, terminal, prompt)).rejects.toMatchObject({ code: 'directory_locked' });
  lock.release();
  expect(await runChangePassword(values, terminal, prompt)).toBe(0);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(readFileSync(file, 'utf8')).not.toBe(before);
  await (await open(file)).close();
});

test('a new wallet does not replace a link to a file that is away', async () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'keys'));
  const link = join(directory, 'keys', 'wallet.json');
  symlinkSync(join(directory, 'stick', 'wallet.json'), link);
  const values = { file: link, passwordFile: undefined, passphraseFile: undefined, network: 'development' } as const;
  await expect(runInit({ ...values, generatePassword: true, json: false }, terminal, prompt)).rejects.toMatchObject({
    code: 'file_exists',
  });
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(existsSync(`${link}.password`)).toBe(false);
});
