/**
 * Another user of the machine (docs/security.md): every file with a secret that he could read or write is refused, with the
 * remedy in the message, by whichever program it is for.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readCertificate } from '../../bridge/connection/certificate.ts';
import { loadIdentity } from '../../node/api/identity.ts';
import { OperatorToken } from '../../pool/api/operator/operator-token.ts';
import { createWalletClient } from '../../pool/payout/wallet-client.ts';
import { privateText, readConfigText, readPrivateFile } from '../../runtime/files/private-file.ts';
import { readPassword } from '../../wallet/keys/password.ts';
import { readToken } from '../../wallet/rpc/token.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

const WIDE = [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666];
const REMEDY = /run chmod 600 \//;
const TOKEN = 'a-token-of-more-than-thirty-two-characters';

function secretFile(name: string, text: string): string {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

/** How each program reads its secret. Returns once it was read. */
const readers: Record<string, { text: string; read: (path: string) => unknown }> = {
  'operator token of the pool': {
    text: TOKEN,
    read: (path) => new OperatorToken(path, { log: quietLog }).ensure(),
  },
  "wallet's token, in the wallet": { text: TOKEN, read: readToken },
  "wallet's token, in the pool": {
    text: TOKEN,
    async read(path) {
      // Nobody listens there: a token that is used leads to another answer.
      const answer = await createWalletClient({ url: 'http://127.0.0.1:1', tokenFile: path }).status();
      if (answer.kind === 'later' && REMEDY.test(answer.reason)) throw new Error(answer.reason);
    },
  },
  "wallet's password": { text: 'password', read: readPassword },
  'private key of a certificate': {
    text: TEST_CERTIFICATE.key,
    read(path) {
      const cert = `${path}.cert`;
      writeFileSync(cert, TEST_CERTIFICATE.cert);
      readCertificate({ cert, key: path });
    },
  },
  'secret of webhooks': { text: TOKEN, read: (path) => privateText(path, '--webhook-secret-file') },
};

test.each(Object.entries(readers))(
  '%s: refused as soon as others can read or write it',
  async (_name, { text, read }) => {
    const path = secretFile('secret', text);
    await read(path);
    for (const mode of WIDE) {
      chmodSync(path, mode);
      await expect((async () => read(path))(), mode.toString(8)).rejects.toThrow(REMEDY);
    }
    chmodSync(path, 0o400);
    await read(path);
  },
);

test("the node's identity is refused when others can read it", async () => {
  const directory = temporaryDirectory();
  await loadIdentity(directory);
  chmodSync(join(directory, 'api-identity.pem'), 0o644);
  await expect(loadIdentity(directory)).rejects.toThrow(/chmod 600/);
});

test('a token that becomes readable while the pool runs admits nobody, until it is put right', async () => {
  const path = secretFile('token', TOKEN);
  const token = new OperatorToken(path, { log: quietLog });
  const header = `Bearer ${TOKEN}`;
  expect(await token.admits(header)).toBe(true);
  chmodSync(path, 0o644);
  expect(await token.admits(header)).toBe(false);
  chmodSync(path, 0o600);
  expect(await token.admits(header)).toBe(true);
});

test('what is no plain file is not waited for, and a link is judged by what it leads to', () => {
  const directory = temporaryDirectory();
  execFileSync('mkfifo', ['-m', '600', join(directory, 'pipe')]);
  expect(readPrivateFile(join(directory, 'pipe')).kind).toBe('unreadable');
  expect(readPrivateFile(directory).kind).toBe('unreadable');
  expect(readPrivateFile('/dev/zero').kind).toBe('unreadable');
  expect(readPrivateFile(join(directory, 'nothing')).kind).toBe('missing');
  writeFileSync(join(directory, 'archive'), 'key', { mode: 0o600 });
  symlinkSync('archive', join(directory, 'live'));
  expect(readPrivateFile(join(directory, 'live'))).toEqual({ kind: 'text', text: 'key' });
  chmodSync(join(directory, 'archive'), 0o644);
  expect(readPrivateFile(join(directory, 'live')).kind).toBe('exposed');
});

test('a credential of systemd may look wider than it is, and only there', () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'wallet-token');
  writeFileSync(path, TOKEN, { mode: 0o440 });
  chmodSync(path, 0o440);
  expect(readPrivateFile(path).kind).toBe('exposed');
  const before = process.env.CREDENTIALS_DIRECTORY;
  onTestFinished(() => {
    if (before === undefined) delete process.env.CREDENTIALS_DIRECTORY;
    else process.env.CREDENTIALS_DIRECTORY = before;
  });
  process.env.CREDENTIALS_DIRECTORY = directory;
  expect(readPrivateFile(path).kind).toBe('text');
  expect(readPrivateFile(secretFile('other', TOKEN)).kind).toBe('text');
  const elsewhere = secretFile('elsewhere', TOKEN);
  chmodSync(elsewhere, 0o440);
  expect(readPrivateFile(elsewhere).kind).toBe('exposed');
  symlinkSync(elsewhere, join(directory, 'link'));
  expect(readPrivateFile(join(directory, 'link')).kind).toBe('exposed');
});

test('a config file with the password of a database is refused when every user can read it', () => {
  const path = secretFile('pool.json', '{"database": "postgres://svc_pool:secret@127.0.0.1/svc_pool"}');
  chmodSync(path, 0o640);
  expect(readConfigText(path)).toContain('secret');
  chmodSync(path, 0o644);
  expect(() => readConfigText(path)).toThrow(/chmod 640/);
  writeFileSync(path, '{"redis": "redis://127.0.0.1?db=1&password=secret"}');
  expect(() => readConfigText(path)).toThrow(/chmod 640/);
  writeFileSync(path, '{"database": "postgres://svc_pool@127.0.0.1/svc_pool", "node": ["http://127.0.0.1:28702"]}');
  expect(readConfigText(path)).toContain('svc_pool');
});
