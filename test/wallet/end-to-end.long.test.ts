/** The wallet against a real node over HTTP: payments, commands, restoring from the words, a node that goes away. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Branch, WalletRoot } from '../../wallet/keys/derivation.ts';
import { Keyring } from '../../wallet/keys/keyring.ts';
import { restoreFile, runCommand } from './commands.ts';
import { ChainBed, COIN, DaemonHere, type Funds } from './wallet-bed.ts';
import { walletEvents } from './wallet-events.ts';
import { WalletFiles } from './wallet-files.ts';

async function setUp(funds: Funds) {
  const directory = mkdtempSync(join(tmpdir(), 'svc-wallet-'));
  const files = new WalletFiles(directory);
  await files.write();
  const chain = await ChainBed.open(files.firstAddress, funds);
  const daemon = new DaemonHere(files.file, chain.base);
  onTestFinished(async () => {
    await daemon.stop();
    await chain.close();
    rmSync(directory, { recursive: true, force: true });
  });
  await chain.beat();
  await daemon.start();
  const balanceAt = async (address: string) => BigInt((await chain.api.client.addressBalance({ address })).balance);
  const caughtUp = () =>
    expect
      .poll(() => daemon.result('status'))
      .toMatchObject({ indexed_height: chain.api.bed.node.chain.head().height, caught_up: true });
  return { directory, files, chain, daemon, balanceAt, caughtUp };
}

const addressAt = (phrase: string, branch: Branch, index: number): string =>
  new Keyring(new WalletRoot(phrase, '', 'development')).addressRecord(branch, index, 0).address;

const stranger = (directory: string, name: string) => new WalletFiles(directory, name).firstAddress;

test('pay, see it finalized, and find everything again from the words alone', async () => {
  const { directory, files, chain, daemon, balanceAt, caughtUp } = await setUp({ outputs: 3, each: 100n * COIN });
  await caughtUp();
  expect(await daemon.result('balance')).toMatchObject({
    balance: '300.00000000',
    spendable: '300.00000000',
    outputs: 3,
  });
  const events = await walletEvents(daemon.rpc, files.file, ['finalized', 'settled', 'unconfirmed']);
  const to = stranger(directory, 'stranger');
  const own = (await daemon.result('new_address', { label: 'mine' })).address as string;
  const sent = await daemon.result('send_many', {
    recipients: [
      { to, amount: '12.5' },
      { to: own, amount: '1.00000001' },
    ],
    request_id: 'first',
    payload_text: 'thanks',
  });
  await expect.poll(() => events.some(({ method }) => method === 'unconfirmed')).toBe(true);
  await chain.beat();
  await caughtUp();
  expect(await balanceAt(to)).toBe(1_250_000_000n);
  await expect
    .poll(() => events.find(({ method }) => method === 'settled')?.params)
    .toMatchObject({ request_id: 'first', state: 'finalized' });
  await expect
    .poll(() => events.find(({ method }) => method === 'finalized')?.params)
    .toMatchObject({
      payments: [
        {
          transaction: sent.transaction,
          address: own,
          amount: '1.00000001',
          payload_text: 'thanks',
          senders: [files.firstAddress],
        },
      ],
    });
  // The key of the first address is registered now: the next payment refers to it.
  const second = await daemon.result('send', { to, amount: '150', request_id: 'second' });
  await chain.beat();
  await caughtUp();
  expect(await daemon.result('send', { to, amount: '150', request_id: 'second' })).toMatchObject({
    duplicate: true,
    state: 'finalized',
    transaction: second.transaction,
  });
  expect(await balanceAt(to)).toBe(16_250_000_000n);

  const restored = join(directory, 'elsewhere', 'wallet.json');
  expect(await restoreFile(restored, files.phrase)).toMatchObject({ status: 0 });
  const session = ['--file', restored, '--service', chain.base, '--json'];
  const balance = await runCommand(['balance', ...session]);
  const before = await daemon.result('balance');
  expect(JSON.parse(balance.stdout)).toEqual(before);
  const history = async (words: string[]) => {
    const { entries } = JSON.parse((await runCommand(['history', ...words])).stdout) as {
      entries: Record<string, unknown>[];
    };
    return entries.map(({ request_id: _, ...entry }) => entry);
  };
  expect(await history(session)).toEqual(await history(['--file', files.file, '--rpc', daemon.rpc, '--json']));
  const addresses = JSON.parse((await runCommand(['addresses', ...session])).stdout) as {
    addresses: { address: string }[];
  };
  expect(addresses.addresses.map(({ address }) => address)).toEqual([files.firstAddress, own]);
  const status = JSON.parse((await runCommand(['status', ...session])).stdout) as Record<string, unknown>;
  expect(status.request_table).not.toBe((await daemon.result('status')).request_table);
  let total = 0n;
  for (const { branch, index } of [
    { branch: 'receive', index: 0 },
    { branch: 'receive', index: 1 },
    { branch: 'change', index: 0 },
  ] as const)
    total += await balanceAt(addressAt(files.phrase, branch, index));
  expect(`${total / COIN}.${(total % COIN).toString().padStart(8, '0')}`).toBe(before.balance);
});

test('commands for people, beside a daemon and without one', async () => {
  const { directory, files, chain, daemon, balanceAt, caughtUp } = await setUp({ outputs: 2, each: 10n * COIN });
  await caughtUp();
  const to = stranger(directory, 'friend');
  const beside = ['--file', files.file, '--rpc', daemon.rpc];
  expect(await runCommand(['send', to, '1.5', ...beside])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('[confirmation_missing]'),
  });
  const sent = await runCommand(['send', to, '1.5', '--yes', '--request-id', 'cli', ...beside]);
  expect(sent).toMatchObject({ status: 0, stdout: expect.stringContaining('sent 1.50000000') });
  const again = await runCommand(['send', to, '1.5', '--yes', '--request-id', 'cli', '--json', ...beside]);
  expect(JSON.parse(again.stdout)).toMatchObject({ duplicate: true });
  await chain.beat();
  await caughtUp();
  await daemon.stop();
  const alone = ['--file', files.file, '--service', chain.base];
  expect(await runCommand(['balance', ...alone])).toMatchObject({
    stdout: expect.stringMatching(/^balance +18\.49\d{6}\n/),
    stderr: '',
  });
  expect(await runCommand(['send', to, '2', '--yes', ...alone])).toMatchObject({ status: 0 });
  await chain.beat();
  expect(await balanceAt(to)).toBe(350_000_000n);
  expect((await runCommand(['history', ...alone])).stdout.match(/ sent /g)).toHaveLength(2);
  const request = await runCommand([
    'call',
    'proof_request',
    JSON.stringify({ address: files.firstAddress }),
    ...alone,
  ]);
  // Nothing is signed before the purpose was seen.
  const unasked = { status: 1, stdout: '', stderr: expect.stringContaining('[confirmation_missing]') };
  const asked = join(directory, 'request.json');
  writeFileSync(asked, request.stdout);
  expect(await runCommand(['prove-address', asked, ...alone])).toMatchObject(unasked);
  const called = JSON.stringify({ request: JSON.parse(request.stdout) });
  expect(await runCommand(['call', 'prove_address', called, ...alone])).toMatchObject(unasked);
  const proof = await runCommand(['prove-address', asked, '--yes', ...alone]);
  expect(proof.stderr).toMatch(/^address \| \S+[\s\S]*\npurpose \| \S/);
  const params = JSON.stringify({ request: JSON.parse(request.stdout), proof: JSON.parse(proof.stdout) });
  expect(JSON.parse((await runCommand(['call', 'verify_address_proof', params, ...alone])).stdout)).toEqual({
    valid: true,
    address: files.firstAddress,
  });
});

test('a node that goes away in the middle and comes back: everything asked for is paid once', async () => {
  const { directory, chain, daemon, balanceAt } = await setUp({ outputs: 30, each: 10n * COIN });
  chain.start(30);
  const to = stranger(directory, 'patient');
  const pay = async (i: number) => {
    const params = { to, amount: '1', request_id: `payment ${i}` };
    for (;;) {
      const answer = await daemon.call('send', params);
      if (!('error' in answer)) return;
      if (![-32001, -32002, -32003].includes(answer.error.code)) throw new Error(JSON.stringify(answer));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const all = Promise.all(
    Array.from({ length: 4 }, async (_, worker) => {
      for (let i = 0; i < 10; i++) await pay(10 * worker + i);
    }),
  );
  for (let i = 0; i < 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, 200));
    await chain.restart();
  }
  await all;
  await expect.poll(async () => ((await daemon.result('pending')).transactions as unknown[]).length).toBe(0);
  expect(await balanceAt(to)).toBe(40n * COIN);
});
