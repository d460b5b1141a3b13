/** The faucet: one payment a day to an address, few to a network, a bound for all, over restarts too; its page and API. */
import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { burnAddressPayload, formatAddress } from '../../protocol/address.ts';
import { clientNetwork } from '../../runtime/clients/client-address.ts';
import { CallError, type Fields } from '../../wallet/command/session.ts';
import { Faucet } from '../../wallet/faucet/faucet.ts';
import { listenForFaucet } from '../../wallet/faucet/faucet-listener.ts';
import { dayOf, requestOf } from '../../wallet/faucet/giving.ts';
import { WalletError } from '../../wallet/wallet-error.ts';
import { quietLog } from '../quiet-log.ts';
import { FakeNode } from './fake-node.ts';
import { fundedWallet } from './open-wallet.ts';

const COIN = 100_000_000n;
const NOON = Date.UTC(2026, 10, 18, 12);
const HOUR = 3_600_000;
const someone = (i: number): string => formatAddress(developmentKey(`someone ${i}`).address, 'development');

/** A wallet with its table of requests, which pays unless it is told to refuse. */
class FakeWallet {
  readonly paid = new Map<string, Fields>();
  refuse: Error | undefined;
  /** It pays, and then gives no answer. */
  isSilent = false;
  calls = 0;

  readonly call = async (method: string, params: unknown): Promise<Fields> => {
    this.calls++;
    const { prefix, cursor = '', limit = 0, request_id: id = '', to, amount } = params as Record<string, string>;
    if (method === 'requests') {
      const found = [...this.paid.keys()].filter((each) => each.startsWith(String(prefix)) && each > cursor).sort();
      const page = found.slice(0, Number(limit));
      const rest = found.length > page.length ? { next_cursor: page.at(-1) } : {};
      return { requests: page.map((each) => ({ request_id: each })), ...rest };
    }
    if (this.refuse !== undefined) throw this.refuse;
    const known = this.paid.get(id) ?? { to, amount, transaction: `t${this.paid.size}` };
    this.paid.set(id, known);
    if (this.isSilent) throw new WalletError('outcome_unknown', 'no answer');
    return known;
  };
}

function bed({ perNetwork = 2, perDay = 100 } = {}) {
  const wallet = new FakeWallet();
  const time = { now: NOON };
  const open = () =>
    new Faucet(
      { network: 'development', amount: 10n * COIN, perNetwork, perDay },
      { call: wallet.call, now: () => time.now, log: quietLog },
    );
  return { wallet, time, open, faucet: open() };
}

const codeOf = (answer: object): unknown => ('code' in answer ? answer.code : 'paid');

test('an address is paid once a day, however it is written and whoever asks', async () => {
  const { wallet, time, faucet } = bed();
  expect(await faucet.give(someone(1), '203.0.113.1')).toEqual({
    address: someone(1),
    amount: '10.00000000',
    transaction: 't0',
  });
  for (const client of ['203.0.113.1', '198.51.100.7', '2001:db8::1'])
    for (const word of [someone(1), someone(1).toUpperCase()])
      expect(await faucet.give(word, client)).toMatchObject({
        code: expect.stringMatching(/^address_(paid|invalid)$/),
      });
  expect(await faucet.give(someone(1), '203.0.113.1')).toMatchObject({ retryMillis: 12 * HOUR });
  time.now += 12 * HOUR;
  expect(codeOf(await faucet.give(someone(1), '203.0.113.1'))).toBe('paid');
  expect(wallet.paid.size).toBe(2);
});

test('two who ask at once for one address are paid once', async () => {
  const { wallet, faucet } = bed();
  const answers = await Promise.all([1, 2, 3].map((i) => faucet.give(someone(1), `203.0.113.${i}`)));
  expect(answers.map(codeOf).sort()).toEqual(['address_paid', 'address_paid', 'paid']);
  expect(wallet.paid.size).toBe(1);
});

test('a network has its payments a day, and all together have theirs', async () => {
  const { faucet } = bed({ perNetwork: 2, perDay: 4 });
  const ask = async (i: number, client: string) => codeOf(await faucet.give(someone(i), client));
  expect(await ask(1, '203.0.113.1')).toBe('paid');
  expect(await ask(2, '203.0.113.250')).toBe('paid');
  expect(await ask(3, '203.0.113.9')).toBe('network_limit');
  expect(await ask(3, '2001:db8:7:1::1')).toBe('paid');
  expect(await ask(4, '2001:db8:7:ffff::2')).toBe('paid');
  expect(await ask(5, '192.0.2.1')).toBe('day_limit');
  expect(await faucet.left()).toBe(0);
  expect(clientNetwork('::ffff:203.0.113.1')).toBe('203.0.113.0/24');
  expect(clientNetwork('2001:db8:7:1::1')).toBe('2001:db8:7::/48');
});

test('the limits of a day hold after a restart: the wallet has the record', async () => {
  const { wallet, open, faucet } = bed();
  await faucet.give(someone(1), '203.0.113.1');
  await faucet.give(someone(2), '203.0.113.2');
  const again = open();
  expect(await again.left()).toBe(98);
  expect(codeOf(await again.give(someone(1), '198.51.100.1'))).toBe('address_paid');
  expect(codeOf(await again.give(someone(3), '203.0.113.3'))).toBe('network_limit');
  for (const id of wallet.paid.keys()) expect(id.length).toBeLessThanOrEqual(128);
});

test('what was not paid may be asked again, and what may have been is never paid twice', async () => {
  const { wallet, faucet } = bed({ perNetwork: 1 });
  const refusal = (code: number, word: string, more: object = {}) =>
    new CallError({ code, message: word, data: { code: word, ...more } });
  const answers: unknown[] = [];
  for (const error of [
    refusal(-32003, 'funds_in_flight'),
    refusal(-32000, 'insufficient_funds'),
    new WalletError('outcome_unknown', 'no answer'),
  ]) {
    wallet.refuse = error;
    answers.push(codeOf(await faucet.give(someone(1), '203.0.113.1')));
  }
  expect(answers).toEqual(['faucet_busy', 'faucet_empty', 'faucet_unavailable']);
  wallet.refuse = refusal(-32002, 'outcome_unknown', { transaction: 'ab' });
  expect(await faucet.give(someone(1), '203.0.113.1')).toMatchObject({ transaction: 'ab' });
  wallet.refuse = undefined;
  expect(codeOf(await faucet.give(someone(1), '203.0.113.1'))).toBe('address_paid');
  const burn = formatAddress(burnAddressPayload(), 'development');
  const foreign = formatAddress(developmentKey('someone 1').address, 'testnet');
  for (const word of ['', 'nobody', burn, foreign])
    expect(codeOf(await faucet.give(word, '192.0.2.1'))).toBe('address_invalid');
});

test('an address whose payment got no answer is paid once, from whatever network it asks again', async () => {
  const { wallet, faucet } = bed({ perNetwork: 1 });
  wallet.isSilent = true;
  for (const client of ['203.0.113.1', '198.51.100.7', '2001:db8::1'])
    expect(codeOf(await faucet.give(someone(1), client))).toBe('faucet_unavailable');
  // The network has had its payment.
  expect(codeOf(await faucet.give(someone(2), '203.0.113.2'))).toBe('network_limit');
  wallet.isSilent = false;
  // That the daemon is down now says nothing of the time before.
  wallet.refuse = new WalletError('wallet_locked', 'no daemon answers');
  expect(codeOf(await faucet.give(someone(1), '192.0.2.9'))).toBe('faucet_unavailable');
  wallet.refuse = undefined;
  const again = () => faucet.give(someone(1), '192.0.2.1');
  expect((await Promise.all([again(), again()])).map(codeOf)).toEqual(['paid', 'address_paid']);
  expect([...wallet.paid.values()].map(({ to }) => to)).toEqual([someone(1)]);
});

test('a faucet that starts again while the wallet signs what the one before has asked for does not pay it from another network', async () => {
  const node = new FakeNode();
  const { call } = await fundedWallet(node, [50n * COIN, 50n * COIN]);
  const open = () =>
    new Faucet(
      { network: 'development', amount: 10n * COIN, perNetwork: 2, perDay: 9 },
      { call, now: () => NOON, log: quietLog },
    );
  await open().left();
  // Of the one before nothing is left but its request.
  const asked = { to: someone(1), amount: '10', request_id: requestOf(dayOf(NOON), someone(1), '203.0.113.0/24') };
  const [, again] = await Promise.all([call('send', asked), open().give(someone(1), '198.51.100.7')]);
  expect(codeOf(again)).toBe('address_paid');
  expect(node.mempool.size).toBe(1);
});

type Reply = { readonly status: number; readonly body: string };

/** As a client with any Origin and Host. */
const ask = (port: number, method: string, path: string, headers: Record<string, string> = {}, body = '') =>
  new Promise<Reply>((resolve, reject) => {
    const sent = request({ port, method, path, headers, host: '127.0.0.1' }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      answer.once('end', () => resolve({ status: answer.statusCode ?? 0, body: text }));
    });
    sent.once('error', reject);
    sent.end(body);
  });

test('page and API pay, name what they refuse, and take no words of another page or a proxy that hides its clients', async () => {
  const { wallet, faucet } = bed();
  const listen = { host: '127.0.0.1', port: 0 };
  const listener = await listenForFaucet({ listen, proxies: [], hosts: [] }, faucet, quietLog);
  onTestFinished(() => listener.close());
  const { port } = listener.address;
  expect(await ask(port, 'GET', '/health')).toEqual({ status: 200, body: 'ok\n' });
  expect((await ask(port, 'GET', '/')).body).toMatch(
    /<form method="post".*10\.00000000 coins|10\.00000000 coins.*<form/s,
  );
  const json = { 'content-type': 'application/json' };
  const body = (i: number) => JSON.stringify({ address: someone(i) });
  expect(JSON.parse((await ask(port, 'POST', '/v1/faucet', json, body(1))).body)).toMatchObject({ transaction: 't0' });
  expect(await ask(port, 'POST', '/v1/faucet', json, body(1))).toMatchObject({
    status: 429,
    body: expect.stringContaining('address_paid'),
  });
  const form = { 'content-type': 'application/x-www-form-urlencoded', origin: `http://127.0.0.1:${port}` };
  const page = await ask(port, 'POST', '/', form, `address=${someone(2)}`);
  expect(page).toMatchObject({ status: 200, body: expect.stringContaining(someone(2)) });
  const odd = await ask(port, 'POST', '/', form, `address=${encodeURIComponent('<script>')}`);
  expect(odd.status).toBe(400);
  expect(odd.body).not.toContain('<script>');
  expect(JSON.parse((await ask(port, 'GET', '/v1/faucet')).body)).toMatchObject({ left_today: 98, per_network: 2 });
  for (const [reply, status] of [
    [ask(port, 'POST', '/v1/faucet', { ...json, origin: 'https://elsewhere.example' }, body(3)), 403],
    [ask(port, 'POST', '/v1/faucet', { ...json, 'x-forwarded-for': '192.0.2.1' }, body(3)), 400],
    [ask(port, 'GET', '/', { host: 'faucet.example.org' }), 421],
    [ask(port, 'POST', '/v1/faucet', json, `${body(3)}${' '.repeat(2_000)}`), 413],
    [ask(port, 'POST', '/v1/faucet', json, '[]'), 400],
    [ask(port, 'DELETE', '/v1/faucet'), 405],
    [ask(port, 'GET', '/elsewhere'), 404],
  ] as const)
    expect((await reply).status).toBe(status);
  expect(wallet.paid.size).toBe(2);
});

test('behind a named proxy clients are told apart', async () => {
  const { wallet, faucet } = bed({ perNetwork: 1 });
  const listen = { host: '127.0.0.1', port: 0 };
  const options = { listen, proxies: ['127.0.0.1'], hosts: [] };
  const listener = await listenForFaucet(options, faucet, quietLog);
  onTestFinished(() => listener.close());
  const from = async (client: string, i: number) => {
    const headers = { 'content-type': 'application/json', 'x-forwarded-for': client };
    return (await ask(listener.address.port, 'POST', '/v1/faucet', headers, JSON.stringify({ address: someone(i) })))
      .status;
  };
  expect(await from('203.0.113.1', 1)).toBe(200);
  expect(await from('203.0.113.2', 2)).toBe(429);
  expect(await from('198.51.100.1', 2)).toBe(200);
  expect([...wallet.paid.keys()].at(-1)).toMatch(/ 198\.51\.100\.0\/24$/);
});
