/** After a downgrade: what a newer release wrote is refused with the remedy, by the store and by the program (exit code 1), and nothing in it changes. */
import { execFile } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ClassicLevel } from 'classic-level';
import { expect, test } from 'vitest';
import { ConsensusLog } from '../../node/consensus/log/log-file.ts';
import { frameOf, readFrames } from '../../node/consensus/log/log-frames.ts';
import { readSnapshot } from '../../node/snapshot/read-snapshot.ts';
import { KEYS } from '../../node/store/keys.ts';
import { lockAfterBackup } from '../../pool/start/directory.ts';
import { claimFormat, DIRECTORY_FORMATS } from '../../runtime/files/directory-format.ts';
import { openValidatorSeed, sealValidatorKey } from '../../runtime/files/validator-key-file.ts';
import { openWalletFile, sealWalletFile } from '../../wallet/keys/wallet-file.ts';
import { WalletStore } from '../../wallet/state/store.ts';
import { LOG_OWNER, lockedMember } from '../consensus/locked-member.ts';
import { Bed } from '../node/bed.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { FakeNode } from '../wallet/fake-node.ts';
import { openTestWallet, secretsOf } from '../wallet/open-wallet.ts';

const ROOT = join(import.meta.dirname, '../..');
const run = promisify(execFile);

/** What a program says when it refuses: its exit code is 1. */
async function refusal(program: string, ...words: readonly string[]): Promise<string> {
  const ended = await run(process.execPath, [join(ROOT, 'bin', program), ...words]).then(
    () => expect.fail(`${program} started`),
    (error: { code: number; stderr: string }) => error,
  );
  expect(ended.code, ended.stderr).toBe(1);
  return ended.stderr;
}

const namesIn = (directory: string): string[] => readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();

test('a directory of a pool, a miner or a proxy: its programs refuse it, and leave it as it is', async () => {
  const [pool, miner] = [temporaryDirectory(), temporaryDirectory()];
  writeFileSync(join(pool, 'pool.format'), `${DIRECTORY_FORMATS.pool + 1}\n`);
  writeFileSync(join(miner, 'miner.format'), `${DIRECTORY_FORMATS.miner + 1}\n`);
  const before = namesIn(miner);
  const remedy = /written by a newer release \(.* says 2, this release knows 1\): run that release again, or restore/;
  const address =
    '--user=dsvc1qqqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqghswl7l.rig';
  const connect = ['-o', 'stratum+tcp://127.0.0.1:1', address, '--data-dir', miner];
  expect(await refusal('svc-pool', 'run', '--data-dir', pool, '--solo-listen', 'off')).toMatch(remedy);
  expect(await refusal('svc-miner', ...connect, '--network', 'development', '--no-gpu')).toMatch(remedy);
  expect(await refusal('svc-proxy', ...connect)).toMatch(remedy);
  expect(namesIn(miner)).toEqual(before);
  expect(namesIn(pool).filter((name) => !name.startsWith('lock'))).toEqual(['pool.format']);
  // It is not kept locked.
  writeFileSync(join(pool, 'pool.format'), `${DIRECTORY_FORMATS.pool}\n`);
  (await lockAfterBackup(pool, { log: quietLog, started: () => undefined })).release();
});

test('a directory without a number gets one; one that no release wrote is refused, and not called newer', async () => {
  const directory = temporaryDirectory();
  await claimFormat(directory, 'pool');
  expect(readFileSync(join(directory, 'pool.format'), 'utf8')).toBe('1\n');
  await claimFormat(directory, 'pool');
  for (const text of ['', 'x', '2.5'])
    await Promise.all([
      writeFileSync(join(directory, 'pool.format'), text),
      expect(claimFormat(directory, 'pool'), text).rejects.toMatchObject({ code: 'directory_unusable' }),
    ]);
});

test('a store of a node: svcd refuses it', async () => {
  const bed = await Bed.open();
  await bed.node.close();
  const directory = temporaryDirectory();
  const chain = join(directory, 'store');
  cpSync(join(bed.directory, 'store'), chain, { recursive: true });
  const db = new ClassicLevel<Uint8Array, Uint8Array>(chain, { keyEncoding: 'view', valueEncoding: 'view' });
  await db.put(KEYS.format, Buffer.from('99'));
  await db.close();
  expect(await refusal('svcd', 'run', '--data-dir', directory, '--network', 'development')).toMatch(
    /has the format 99, and this release reads \d+: use the release that wrote it, or a new data directory/,
  );
  await bed.openNode();
  await bed.close();
});

test('the state of a wallet: it is not opened', async () => {
  const node = new FakeNode();
  const { wallet, directory } = await openTestWallet(node);
  const { meta } = wallet.book;
  await wallet.close();
  const store = await WalletStore.open(join(directory, 'store'));
  await store.write([{ meta: { ...meta, version: 2 } }], true);
  await store.close();
  await expect(openTestWallet(node, { directory })).rejects.toMatchObject({
    code: 'state_newer',
    message: expect.stringMatching(/its version is 2, this release reads 1\): run that release again/),
  });
});

const raised = (text: string): string => JSON.stringify({ ...(JSON.parse(text) as object), version: 2 });

test('the files of a wallet and of a validator: both name the version and the remedy', async () => {
  const wallet = raised(await sealWalletFile(secretsOf('a'), 'development', 'password', 10));
  await expect(openWalletFile(wallet, 'password')).rejects.toMatchObject({
    code: 'file_damaged',
    message: expect.stringMatching(/version is 2, and this release reads 1: use a newer release/),
  });
  const key = raised(await sealValidatorKey(new Uint8Array(32), 'consensus', 'development', 'password', 10));
  expect(await openValidatorSeed(key, 'consensus', 'development', 'password')).toMatchObject({
    kind: 'damaged',
    reason: expect.stringMatching(/version 2, and this release reads 1: use a newer release/),
  });
});

test('the log of a validator: it signs nothing', async () => {
  const directory = temporaryDirectory();
  const { log } = await ConsensusLog.open(directory, LOG_OWNER);
  for (const record of lockedMember()) await log.append(record);
  await log.close();
  const file = join(directory, readdirSync(directory)[0] as string);
  const { payloads } = readFrames(readFileSync(file));
  (payloads[0] as Uint8Array)[0] = 2;
  writeFileSync(file, Buffer.concat(payloads.map((payload, i) => frameOf(i, payload))));
  await expect(ConsensusLog.open(directory, LOG_OWNER)).rejects.toMatchObject({
    code: 'log_foreign',
    message: expect.stringMatching(/has version 2, and this release reads 1: run the release that wrote it/),
  });
});

test('a snapshot: the form that this release reads is named', async () => {
  const path = join(temporaryDirectory(), 'snapshot');
  const sink = { head: () => undefined, work: () => undefined, piece: () => undefined };
  for (const [bytes, message] of [
    ['SVCSNAP2', /of the form 2, and this release reads form 1: take one that this release wrote/],
    ['SOMEFILE', /this is no snapshot/],
  ] as const) {
    writeFileSync(path, bytes);
    await expect(readSnapshot(path, undefined, sink)).rejects.toMatchObject({
      code: 'snapshot_unreadable',
      message: expect.stringMatching(message),
    });
  }
});
