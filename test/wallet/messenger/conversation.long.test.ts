/** A conversation between two wallets over a real chain, by commands beside their daemons, found again from the 24 words alone on a third machine; with a stranger's junk in between. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { restoreFile, runCommand } from '../commands.ts';
import { ChainBed, COIN, DaemonHere } from '../wallet-bed.ts';
import { walletEvents } from '../wallet-events.ts';
import { WalletFiles } from '../wallet-files.ts';

type Machine = { readonly files: WalletFiles; readonly daemon: DaemonHere; readonly words: readonly string[] };

test('asked, accepted, written, and read on a third machine', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-chat-'));
  const names = ['alice', 'bob', 'stranger'] as const;
  const files = names.map((name) => new WalletFiles(directory, name)) as [WalletFiles, WalletFiles, WalletFiles];
  for (const one of files) await one.write();
  const chain = await ChainBed.open(files[0].firstAddress, { outputs: 6, each: 100n * COIN });
  const daemons: DaemonHere[] = [];
  onTestFinished(async () => {
    for (const daemon of daemons) await daemon.stop();
    await chain.close();
    rmSync(directory, { recursive: true, force: true });
  });
  await chain.beat();
  const machines: Machine[] = [];
  for (const one of files) {
    const daemon = new DaemonHere(one.file, chain.base);
    daemons.push(daemon);
    await daemon.start();
    machines.push({ files: one, daemon, words: ['--file', one.file, '--rpc', daemon.rpc] });
  }
  const [alice, bob, mallory] = machines as [Machine, Machine, Machine];
  const caughtUp = async (): Promise<void> => {
    const height = chain.api.bed.node.chain.head().height;
    for (const { daemon } of machines)
      await expect
        .poll(() => daemon.result('status'))
        .toMatchObject({
          indexed_height: height,
          caught_up: true,
        });
  };
  const beat = async (): Promise<void> => {
    await chain.beat();
    await caughtUp();
  };
  const run = async ({ words }: Machine, command: string[]): Promise<string> => {
    const { status, stdout, stderr } = await runCommand(['chat', ...command, ...words]);
    expect(status, stderr).toBe(0);
    return stdout;
  };
  await caughtUp();
  await alice.daemon.result('send_many', {
    recipients: [bob, mallory].map(({ files: { firstAddress: to } }) => ({ to, amount: '50' })),
    request_id: 'money',
  });
  await beat();

  const events = await walletEvents(bob.daemon.rpc, bob.files.file, ['finalized']);

  const to = bob.files.firstAddress;
  expect(await runCommand(['chat', 'request', to, ...alice.words])).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('[confirmation_missing]'),
  });
  await run(alice, ['request', to, '--yes']);
  // A stranger asks too, and puts junk beside: nobody has to accept.
  await run(mallory, ['request', to, '--yes']);
  await beat();
  const { chats } = JSON.parse(await run(bob, ['list', '--json'])) as { chats: Record<string, string>[] };
  expect(chats.map(({ state }) => state)).toEqual(['incoming', 'incoming']);
  const chat = chats.find(({ peer_address }) => peer_address !== mallory.files.firstAddress)?.chat as string;
  await run(bob, ['accept', chat, '--yes']);
  await beat();
  await mallory.daemon.result('send', { to, amount: '0.00000001', payload_text: 'hello', request_id: 'text' });
  await run(alice, ['send', chat, 'where do we meet?', '--yes']);
  await beat();
  await run(bob, ['send', chat, 'at the bridge,\nat noon', '--yes']);
  await run(mallory, ['request', alice.files.firstAddress, '--yes']);
  await beat();
  await bob.daemon.stop();
  await bob.daemon.start();
  const bobsWords = ['--file', bob.files.file, '--rpc', bob.daemon.rpc];
  const last = { ...bob, words: bobsWords };
  await caughtUp();
  await run(last, ['send', chat, `☂ ${randomBytes(8).toString('hex').replace(/./g, 'u')}`, '--yes']);
  await beat();
  const told = (await run(alice, ['read', chat])).split('\n').map((line) => line.slice(26));
  expect(told).toEqual(['me   | where do we meet?', 'them | at the bridge,?at noon', `them | ☂ ${'u'.repeat(16)}`, '']);

  const chatEvents = () =>
    events
      .flatMap(({ params }) => (params?.payments ?? []) as Record<string, unknown>[])
      .filter(({ messenger }) => messenger === true);
  await expect.poll(() => chatEvents().length).toBeGreaterThanOrEqual(3);
  for (const payment of chatEvents()) expect('payload_text' in payment).toBe(false);

  // The words alone, on a third machine, for both sides.
  for (const [machine, name] of [
    [alice, 'third'],
    [last, 'fourth'],
  ] as const) {
    const restored = join(directory, name, 'wallet.json');
    expect(await restoreFile(restored, machine.files.phrase)).toMatchObject({ status: 0 });
    const elsewhere = { ...machine, words: ['--file', restored, '--service', chain.base] };
    expect(await run(elsewhere, ['read', chat])).toBe(await run(machine, ['read', chat]));
    expect(await run(elsewhere, ['list'])).toBe(await run(machine, ['list']));
  }
});
