/** docs/wallet.md, on the chain with coins of docs/node.md: a wallet with its daemon, an address of three people, chats. Anna has coins and a daemon; Bert and Cleo have commands alone. */
import { copyFileSync, existsSync, writeFileSync } from 'node:fs';
import { expect } from 'vitest';
import { until } from '../until.ts';
import { addressIn, json, serves } from './asking.ts';
import type { Reader, Readers, Running } from './reader.ts';

export async function chainWithCoins(readers: Readers, anna: Reader, address: string): Promise<Running> {
  const node = anna.starts(
    'svcd run --data-dir .data/funded --cut-millis 500 --fund dsvc1...=1000 --metrics-bind 127.0.0.1',
    { names: { 'dsvc1...': address } },
  );
  await serves(readers, node);
  expect(await json(`${readers.url(28_701)}/v1/address/${address}/balance`)).toMatchObject({ balance: '100000000000' });
  expect(await (await fetch(`${readers.url(28_790)}/metrics`)).text()).toContain('svc_node_finalized_height');
  return node;
}

/** By the identifier that the command showed. */
async function isFinal(readers: Readers, said: string): Promise<void> {
  const id = /transaction +([0-9a-f]{96})/.exec(said)?.[1] ?? '';
  expect(id, said).not.toBe('');
  await until(async () => {
    const status = await json<{ lifecycle: string }>(`${readers.url(28_701)}/v1/transactions/${id}/status`);
    return status?.lifecycle === 'finalized';
  });
}

export async function firstSteps(readers: Readers, anna: Reader, bertsAddress: string): Promise<Running> {
  const daemon = anna.starts('bin/svc-wallet daemon --confirmations 6');
  await daemon.until(/wallet daemon ready/);
  expect(addressIn(await anna.runs('bin/svc-wallet new-address --label "customer 17"'))).not.toBe('');
  expect(await anna.runs('bin/svc-wallet balance')).toMatch(/balance +1000\./);
  const sent = await anna.runs('bin/svc-wallet send dsvc1... 1.25', {
    names: { 'dsvc1...': bertsAddress },
    answer: 'y',
  });
  await isFinal(readers, sent);
  return daemon;
}

/** From the words alone, on another machine: the same addresses. */
export async function restores(tom: Reader, words: string, address: string): Promise<void> {
  writeFileSync(tom.path('words'), words);
  await tom.runs('svc-wallet restore', { more: '--generate-password < words' });
  expect(addressIn(await tom.runs('svc-wallet new-address'))).toBe(address);
}

/** What a wallet asks its daemon. */
export async function asksDaemon(anna: Reader): Promise<void> {
  expect(JSON.parse(await anna.runs('svc-wallet validators --json'))).toMatchObject({ validators: expect.any(Array) });
  await anna.runs('svc-wallet call rescan');
}

const gives = (from: Reader, file: string, ...to: Reader[]): void => {
  for (const person of to) copyFileSync(from.path(file), person.path(file));
};

export async function multisig(readers: Readers, [anna, bert, cleo]: [Reader, Reader, Reader]): Promise<void> {
  for (const [person, name] of [
    [anna, 'anna'],
    [bert, 'bert'],
    [cleo, 'cleo'],
  ] as const) {
    await person.runs('svc-wallet multisig key --out anna.key', { names: { 'anna.key': `${name}.key` } });
    if (person !== anna) gives(person, `${name}.key`, anna);
  }
  const made = addressIn(await anna.runs('svc-wallet multisig create --out savings.json anna.key bert.key cleo.key'));
  gives(anna, 'savings.json', bert, cleo);
  for (const person of [bert, cleo])
    expect(addressIn(await person.runs('svc-wallet multisig address savings.json'))).toBe(made);

  const deposit = { 'dsvc1...': made, '1.25': '50' };
  await isFinal(readers, await anna.runs('bin/svc-wallet send dsvc1... 1.25', { names: deposit, answer: 'y' }));
  const balance = await anna.runs('svc-wallet call balance \'{"address":"FROM"}\'', { names: { FROM: made } });
  expect(balance).toContain('50.00000000');
  const landlord = addressIn(await cleo.runs('svc-wallet new-address'));
  const names = { FROM: made, ADDRESS: landlord };
  expect(await anna.runs('svc-wallet multisig propose FROM ADDRESS 12.5 --out rent.msig', { names })).toContain('12.5');
  const replaced = await anna.runs(
    'svc-wallet multisig propose FROM ADDRESS 13 --replaces rent.msig --out rent2.msig',
    { names },
  );
  expect(replaced).toContain('at most this or the new one can be paid');
  gives(anna, 'rent.msig', bert, cleo);
  await bert.runs('svc-wallet multisig sign rent.msig --out rent-bert.msig', { answer: 'y' });
  await cleo.runs('svc-wallet multisig sign rent.msig --out rent-bert.msig', {
    names: { bert: 'cleo' },
    answer: 'y',
  });
  gives(bert, 'rent-bert.msig', anna);
  gives(cleo, 'rent-cleo.msig', anna);
  await anna.runs('svc-wallet multisig combine rent-bert.msig rent-cleo.msig --out rent-all.msig');
  await isFinal(readers, await anna.runs('svc-wallet multisig send rent-all.msig', { answer: 'y' }));
  expect(existsSync(anna.path('rent-all.msig'))).toBe(true);
}

export async function chat(readers: Readers, anna: Reader, bert: Reader, bertsAddress: string): Promise<void> {
  const asked = await anna.runs('svc-wallet chat request ADDRESS', { names: { ADDRESS: bertsAddress }, answer: 'y' });
  await isFinal(readers, asked);
  const names = { CHAT: /^([0-9a-f]{32}) /m.exec(await bert.runs('svc-wallet chat list'))?.[1] ?? '' };
  await isFinal(readers, await bert.runs('svc-wallet chat accept CHAT', { names, answer: 'y' }));
  await isFinal(readers, await anna.runs('svc-wallet chat send CHAT "hello"', { names, answer: 'y' }));
  expect(await bert.runs('svc-wallet chat read CHAT', { names })).toMatch(/them \| hello/);
}
