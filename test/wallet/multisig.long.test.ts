/**
 * A 2-of-3 address of three people with a wallet each, against a real node: what goes between them are files alone. One of them has a daemon, which watches the address; the others
 * use commands.
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runCommand } from './commands.ts';
import { ChainBed, COIN, DaemonHere } from './wallet-bed.ts';
import { walletEvents } from './wallet-events.ts';
import { WalletFiles } from './wallet-files.ts';

type Shown = Record<string, unknown> & { error?: { code: string; message: string } };

/** A machine of its own: a directory with a wallet and the files that the others sent. */
class Person {
  readonly directory: string;
  readonly files: WalletFiles;
  readonly service: () => string[];

  constructor(root: string, name: string, service: () => string[]) {
    this.directory = join(root, name);
    mkdirSync(this.directory);
    this.files = new WalletFiles(this.directory);
    this.service = service;
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  async run(...words: string[]): Promise<Shown> {
    const session = words[0] === 'combine' ? [] : ['--file', this.files.file, ...this.service()];
    const { stdout, stderr } = await runCommand(['multisig', ...words, ...session, '--json']);
    if (stdout === '') throw new Error(stderr);
    return JSON.parse(stdout) as Shown;
  }

  /** By mail, say. */
  gives(name: string, to: Person): void {
    copyFileSync(this.path(name), to.path(name));
  }
}

async function setUp() {
  const root = mkdtempSync(join(tmpdir(), 'svc-multisig-'));
  let base = '';
  let rpc = '';
  const direct = () => ['--service', base];
  const anna = new Person(root, 'anna', () => ['--rpc', rpc]);
  const [bert, cleo] = ['bert', 'cleo'].map((name) => new Person(root, name, direct)) as [Person, Person];
  for (const { files } of [anna, bert, cleo]) await files.write();
  const chain = await ChainBed.open(anna.files.firstAddress, { outputs: 8, each: 100n * COIN });
  base = chain.base;
  const daemon = new DaemonHere(anna.files.file, base);
  onTestFinished(async () => {
    await daemon.stop();
    await chain.close();
    rmSync(root, { recursive: true, force: true });
  });
  await chain.beat();
  await daemon.start();
  rpc = daemon.rpc;
  const caughtUp = () =>
    expect
      .poll(() => daemon.result('status'))
      .toMatchObject({ indexed_height: chain.api.bed.node.chain.head().height, caught_up: true });
  await caughtUp();
  return { anna, bert, cleo, chain, daemon, caughtUp, root };
}

test('three people, three wallets, files: an address, a payment that two sign, and a second one by reference', async () => {
  const { anna, bert, cleo, chain, daemon, caughtUp, root } = await setUp();
  await Promise.all(
    [anna, bert, cleo].map(async (person, i) => {
      const name = `${['anna', 'bert', 'cleo'][i]}.key`;
      expect(await person.run('key', '--out', person.path(name))).toMatchObject({ file: person.path(name) });
      if (person !== anna) person.gives(name, anna);
    }),
  );
  const keys = ['cleo.key', 'anna.key', 'bert.key'].map((name) => anna.path(name));
  const group = await anna.run('create', ...keys, '--out', anna.path('savings.json'), '--label', 'savings');
  const address = group.address as string;
  expect(group).toMatchObject({ threshold: 2, members: 3, label: 'savings' });
  expect(group.own_members).toHaveLength(1);
  await Promise.all(
    [bert, cleo].map(async (person) => {
      anna.gives('savings.json', person);
      const same = await person.run('address', person.path('savings.json'));
      expect(same.address).toBe(address);
      expect(same).not.toHaveProperty('verification_words');
      expect(same.own_members).not.toEqual(group.own_members);
    }),
  );

  const events = await walletEvents(daemon.rpc, anna.files.file, ['multisig']);
  await daemon.result('send', { to: address, amount: '50', request_id: 'deposit' });
  await chain.beat();
  await caughtUp();
  expect(await daemon.result('balance', { address })).toMatchObject({ balance: '50.00000000', outputs: 1 });
  // The address is watched; what it holds is not this wallet's.
  const own = await daemon.result('balance');
  expect(Number(own.balance)).toBeLessThan(751);
  expect(await daemon.result('receive', { address })).toMatchObject({ address, label: 'savings' });
  await expect.poll(() => events.length).toBeGreaterThan(0);
  expect(events[0]?.params).toMatchObject({ address, kind: 'received', amount: '50.00000000', label: 'savings' });

  const to = new WalletFiles(root, 'shop').firstAddress;
  const proposed = await bert.run('propose', address, to, '12.5', '--payload', 'rent', '--out', bert.path('rent.msig'));
  const [review] = proposed.packages as [Shown];
  expect(review).toMatchObject({
    witness_profile: 'multisig_inline',
    signed_by: [],
    missing_signatures: 2,
    payload_text: 'rent',
    recipients: [
      { to, amount: '12.50000000', change: false },
      { to: address, change: true },
    ],
  });
  const digest = review.template_digest as string;
  // Another amount in its place: one of both at most. A file that is one of several parts is refused.
  const instead = (out: string) =>
    bert.run('propose', address, to, '13', '--replaces', bert.path('rent.msig'), '--out', bert.path(out));
  const { packages, replaces } = await instead('rent2.msig');
  expect(replaces).toMatchObject({ template_digest: digest });
  expect((packages as [Shown])[0].inputs).toEqual(review.inputs);
  writeFileSync(bert.path('rent.msig.2'), '');
  expect((await instead('rent3.msig')).error).toMatchObject({ code: 'multisig_not_replaceable' });
  bert.gives('rent.msig', cleo);
  bert.gives('rent.msig', anna);
  expect(await cleo.run('review', cleo.path('rent.msig'))).toMatchObject({ template_digest: digest, fee: review.fee });
  // Nobody signs unseen: without a terminal the digest must be named, and it must be this one.
  const sign = (person: Person, words: string[]) =>
    person.run('sign', person.path('rent.msig'), '--out', person.path('signed.msig'), ...words);
  expect((await sign(cleo, [])).error?.code).toBe('confirmation_missing');
  expect((await sign(cleo, ['--digest', 'ab'.repeat(48)])).error?.code).toBe('multisig_package_invalid');
  expect(await sign(cleo, ['--digest', digest])).toMatchObject({ missing_signatures: 1 });
  expect((await sign(cleo, ['--digest', digest])).error?.code).toBe('file_exists');
  expect(await sign(anna, ['--digest', digest])).toMatchObject({ missing_signatures: 1 });
  expect((await anna.run('send', anna.path('signed.msig'), '--yes')).error?.code).toBe('multisig_package_invalid');

  copyFileSync(cleo.path('signed.msig'), anna.path('cleo.msig'));
  const both = await anna.run(
    'combine',
    anna.path('cleo.msig'),
    anna.path('signed.msig'),
    '--out',
    anna.path('all.msig'),
  );
  expect(both).toMatchObject({ template_digest: digest, missing_signatures: 0 });
  // By the method neither: it moves money like the others.
  const params = JSON.stringify({ package: readFileSync(anna.path('all.msig'), 'utf8').trim() });
  const service = ['--file', anna.files.file, ...anna.service()];
  const unsure = await runCommand(['call', 'multisig_send', params, ...service, '--json']);
  expect((JSON.parse(unsure.stdout) as Shown).error?.code).toBe('confirmation_missing');
  const sent = await anna.run('send', anna.path('all.msig'), '--yes');
  expect(sent).toMatchObject({ submitted: true, duplicate: false, transaction: review.transaction });
  // Again, by anybody who has the file: the same transaction.
  copyFileSync(anna.path('all.msig'), bert.path('all.msig'));
  expect(await bert.run('send', bert.path('all.msig'), '--yes')).toMatchObject({
    duplicate: true,
    transaction: sent.transaction,
  });
  await chain.beat();
  await caughtUp();
  expect((await chain.api.client.addressBalance({ address: to })).balance).toBe('1250000000');
  const { entries } = (await daemon.result('history', { address })) as { entries: Shown[] };
  expect(entries.map(({ kind, transaction }) => [kind, transaction])).toEqual(
    expect.arrayContaining([
      ['spent', sent.transaction],
      ['received', sent.transaction],
    ]),
  );
  await expect.poll(() => events.filter(({ params }) => params?.kind === 'spent')).toHaveLength(1);

  // The keys are in the registry now: the next package is about half as long.
  const next = await cleo.run('propose', address, to, '1', '--out', cleo.path('next.msig'));
  const [short] = next.packages as [Shown];
  expect(short.witness_profile).toBe('multisig_referenced');
  expect(short.mass as number).toBeLessThan((review.mass as number) * 0.65);
  cleo.gives('next.msig', bert);
  const ok = (person: Person) => ['sign', person.path('next.msig'), '--out', person.path('ok.msig'), '--digest'];
  await Promise.all([cleo, bert].map((person) => person.run(...ok(person), short.template_digest as string)));
  copyFileSync(bert.path('ok.msig'), cleo.path('bert.msig'));
  await cleo.run('combine', cleo.path('ok.msig'), cleo.path('bert.msig'), '--out', cleo.path('go.msig'));
  // Packages of two payments are not put together, and damaged ones are reported.
  const mixed = await cleo.run(
    'combine',
    cleo.path('go.msig'),
    cleo.path('signed.msig'),
    '--out',
    cleo.path('no.msig'),
  );
  expect(mixed.error).toMatchObject({ code: 'multisig_package_invalid' });
  const word = readFileSync(cleo.path('go.msig'), 'utf8');
  writeFileSync(cleo.path('bad.msig'), `${word.slice(0, 400)}${word[400] === '0' ? '1' : '0'}${word.slice(401)}`);
  expect((await cleo.run('review', cleo.path('bad.msig'))).error?.code).toBe('multisig_package_invalid');
  expect(await cleo.run('send', cleo.path('go.msig'), '--yes')).toMatchObject({ submitted: true });
  await chain.beat();
  expect((await chain.api.client.addressBalance({ address: to })).balance).toBe('1350000000');
});
