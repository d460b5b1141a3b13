/** `init`, `restore` and `change-password`: the commands that write the wallet file. */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ValuesOf } from '../../runtime/command-line/command-line.ts';
import { lockDirectory } from '../../runtime/files/directory-lock.ts';
import { writeDurably } from '../../runtime/files/durable-file.ts';
import { makeDirectory } from '../../runtime/files/make-directory.ts';
import type { Terminal } from '../../runtime/program.ts';
import { isThere } from '../keys/new-file.ts';
import { changePassword, passwordPath, randomPassword, readPassword, unlock } from '../keys/password.ts';
import { ENTROPY_BYTES, entropyOfPhrase, phraseOfEntropy } from '../keys/phrase.ts';
import { PRIVATE_MODE, readPrivateFile } from '../keys/private-file.ts';
import { sealWalletFile, writeWalletFile } from '../keys/wallet-file.ts';
import { stateDirectory } from '../open.ts';
import { WalletError } from '../wallet-error.ts';
import { type creationOptions, type fileOptions, newFile, walletFile } from './options.ts';
import type { Prompt } from './prompt.ts';

type CreationValues = ValuesOf<typeof creationOptions>;

async function newPassword(prompt: Prompt): Promise<string> {
  if (!prompt.interactive)
    throw new WalletError(
      'password_missing',
      'nobody to ask for a password: use --generate-password or --password-file',
    );
  const password = await prompt.askHidden('New password: ');
  if (password === '') throw new WalletError('password_missing', 'the password is empty');
  if ((await prompt.askHidden('Once more: ')) !== password)
    throw new WalletError('password_missing', 'the two passwords differ');
  return password;
}

async function create(values: CreationValues, prompt: Prompt, entropy: Uint8Array): Promise<string> {
  const file = newFile(values);
  const stored = passwordPath(file, values.passwordFile);
  if (isThere(file))
    throw new WalletError('file_exists', `${file} exists: nothing is overwritten; name another with --file`, {
      path: file,
    });
  if (existsSync(stateDirectory(file)))
    throw new WalletError(
      'file_exists',
      `${stateDirectory(file)} is the state of an earlier wallet: move it away first`,
    );
  makeDirectory(dirname(file), 0o700);
  let passphrase = '';
  if (values.passphraseFile !== undefined) {
    const text = readPrivateFile(values.passphraseFile, 'file_readable_by_others');
    if (text === undefined) throw new WalletError('password_missing', `there is no file ${values.passphraseFile}`);
    passphrase = text.replace(/\r?\n$/, '');
  }
  let password = readPassword(stored);
  if (values.generatePassword) {
    if (password !== undefined)
      throw new WalletError('file_exists', `${stored} exists: nothing is overwritten`, { path: stored });
    password = randomPassword();
    // Before the wallet: without its password a wallet can be restored only from its words.
    await writeDurably(stored, `${password}\n`, PRIVATE_MODE);
  }
  password ??= await newPassword(prompt);
  await writeWalletFile(file, await sealWalletFile({ entropy, passphrase }, values.network, password));
  return file;
}

export async function runInit(values: CreationValues, terminal: Terminal, prompt: Prompt): Promise<number> {
  const entropy = new Uint8Array(randomBytes(ENTROPY_BYTES));
  const phrase = phraseOfEntropy(entropy);
  const file = await create(values, prompt, entropy);
  if (values.json) {
    terminal.out(`${JSON.stringify({ file, network: values.network, words: phrase.split(' ') })}\n`);
    return 0;
  }
  const words = phrase.split(' ').map((word, i) => `${String(i + 1).padStart(2)}. ${word.padEnd(10)}`);
  const rows = Array.from({ length: 6 }, (_, row) =>
    words
      .slice(4 * row, 4 * row + 4)
      .join(' ')
      .trimEnd(),
  );
  terminal.out(`Wallet ${file} on ${values.network}.\n\n${rows.join('\n')}\n\n`);
  terminal.err(
    'These 24 words are shown once. Write them down: anyone who has them can spend the money, and without them a lost wallet file cannot be restored.\n',
  );
  return 0;
}

export async function runRestore(
  values: CreationValues & { readonly wordsFile: string | undefined },
  terminal: Terminal,
  prompt: Prompt,
): Promise<number> {
  let text: string;
  if (values.wordsFile !== undefined) {
    const words = readPrivateFile(values.wordsFile, 'file_readable_by_others');
    if (words === undefined)
      throw new WalletError('file_missing', `there is no file ${values.wordsFile}`, { path: values.wordsFile });
    text = words;
  } else text = prompt.interactive ? await prompt.askHidden('The 24 words: ') : await prompt.readAll();
  const file = await create(values, prompt, entropyOfPhrase(text));
  if (values.json) terminal.out(`${JSON.stringify({ file, network: values.network })}\n`);
  else terminal.out(`Wallet ${file} on ${values.network}. Its history is read when it first meets its node.\n`);
  return 0;
}

type PasswordValues = ValuesOf<typeof fileOptions> & { readonly generatePassword: boolean; readonly json: boolean };

export async function runChangePassword(values: PasswordValues, terminal: Terminal, prompt: Prompt): Promise<number> {
  const file = walletFile(values);
  // A running daemon is not disturbed, but two changes at once would be.
  const lock = existsSync(file) ? lockDirectory(stateDirectory(file)) : undefined;
  try {
    const ask = prompt.interactive ? () => prompt.askHidden('Password: ') : undefined;
    const unlocked = await unlock(file, values.passwordFile, ask);
    const path = passwordPath(file, values.passwordFile);
    const stored = values.generatePassword || existsSync(path) ? path : undefined;
    const password = values.generatePassword ? randomPassword() : await newPassword(prompt);
    await changePassword(file, unlocked, password, stored);
  } finally {
    lock?.release();
  }
  terminal.out(values.json ? `${JSON.stringify({ file, changed: true })}\n` : `The password of ${file} is changed.\n`);
  return 0;
}
