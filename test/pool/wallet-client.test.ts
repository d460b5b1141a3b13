/** What the pool asks its wallet daemon, and what it takes from the answers: a payout is paid or not by these words. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createWalletClient } from '../../pool/payout/wallet-client.ts';
import { temporaryDirectory } from '../temporary.ts';

type Params = Readonly<Record<string, unknown>>;
type Answer = { readonly result: unknown } | { readonly error: unknown };

/** A daemon that answers by the method, and remembers what it was asked. */
async function daemon(answer: (method: string, params: Params) => Answer) {
  const asked: { method: string; params: Params }[] = [];
  const server = createServer(async (request, response) => {
    const { method, params } = JSON.parse((await request.toArray()).join(''));
    asked.push({ method, params });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, ...answer(method, params) }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const tokenFile = join(temporaryDirectory(), 'token');
  writeFileSync(tokenFile, 'token', { mode: 0o600 });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, of: (address?: string) => createWalletClient({ url, tokenFile, ...(address && { address }) }) };
}

test('a payout, a merge and the balance are of the pool’s address alone, where one is named', async () => {
  const { asked, of } = await daemon((method) => ({
    result: {
      status: {
        request_table: 't',
        indexed_height: 7,
        caught_up: true,
        node_synced: true,
        validity_cuts: 9,
        payments_stopped_message: null,
      },
      balance: { spendable: '5', outputs: 3 },
      send_many: { transaction: 'ab', fee: '0.1', recipients: [{ to: 'miner', amount: '2' }] },
      compound: { state: 'pending', fee: '0.2' },
    }[method],
  }));
  const recipients = [{ address: 'miner', amount: 200_000_000n }];
  for (const address of ['pool', undefined]) {
    const client = of(address);
    asked.length = 0;
    expect(await client.status()).toMatchObject({ value: { outputs: 3, spendable: 500_000_000n, isCaughtUp: true } });
    expect(await client.sendMany('p-1', recipients, 'head')).toEqual({
      kind: 'ok',
      value: { transactionId: 'ab', fee: 10_000_000n, recipients },
    });
    expect(await client.compound('m-1')).toEqual({ kind: 'ok', value: { state: 'open', fee: 20_000_000n } });
    const [own, from] = address === undefined ? [{}, {}] : [{ address }, { from_address: address }];
    const sent = {
      request_id: 'p-1',
      recipients: [{ to: 'miner', amount: '2.00000000' }],
      payload_text: 'head',
      ...from,
    };
    expect(asked).toEqual([
      { method: 'status', params: {} },
      { method: 'balance', params: own },
      { method: 'send_many', params: sent },
      { method: 'compound', params: { request_id: 'm-1', ...own } },
    ]);
  }
});

test('a wallet has read the whole chain when it and its node have', async () => {
  for (const [caught_up, node_synced] of [
    [true, false],
    [false, true],
    [true, true],
  ]) {
    const { of } = await daemon((method) => ({
      result: method === 'status' ? { caught_up, node_synced } : { spendable: '0', outputs: 0 },
    }));
    expect(await of().status()).toMatchObject({ kind: 'ok', value: { isCaughtUp: caught_up && node_synced } });
  }
});

test('a refusal frees the request or not, and says whether merging helps', async () => {
  for (const [code, data, expected] of [
    [-32000, { code: 'too_many_outputs' }, { kind: 'refused', tooManyOutputs: true }],
    [-32000, { code: 'insufficient_funds' }, { kind: 'refused', tooManyOutputs: false }],
    [-32000, { code: 'payments_stopped' }, { kind: 'later', isUnused: true }],
    [-32001, undefined, { kind: 'later', isUnused: true }],
    [-32003, { code: 'wallet_locked' }, { kind: 'later', isUnused: true }],
    [-32003, { code: 'state_unwritable' }, { kind: 'later', isUnused: false }],
    [-32002, { transaction: 'ab' }, { kind: 'unknown', transactionId: 'ab' }],
    [-32004, { transaction: null }, { kind: 'unknown', transactionId: null }],
    [-32602, { field: 'recipients[3].to' }, { kind: 'wrong', recipient: 3 }],
    [-32602, { field: 'from_address' }, { kind: 'later', isUnused: true }],
    [-32603, undefined, { kind: 'wrong', recipient: null }],
  ] as const) {
    const { of } = await daemon(() => ({ error: { code, message: 'no', data } }));
    expect([code, data, await of().sendMany('p-1', [])]).toMatchObject([code, data, expected]);
  }
});

test('all requests of a listing are read, and no page more than is asked for', async () => {
  const of = (id: number) => `p-${id}`;
  const { asked, of: client } = await daemon((_, { cursor = of(0) }) => {
    const first = Number(String(cursor).slice(2)) + 1;
    const request = (id: number) => ({
      request_id: of(id),
      created_millis: 1,
      recipients: [],
      fee: '0',
      transaction: null,
      state: 'pending',
      reason: null,
      final_height: null,
    });
    const requests = [first, first + 1].filter((id) => id <= 6).map(request);
    return { result: { requests, ...(first < 5 ? { next_cursor: of(first + 1) } : {}) } };
  });
  const read = async (after?: string, through?: string) => {
    asked.length = 0;
    const answer = await client().payments('p-', after, through);
    const ids = answer.kind === 'ok' ? answer.value.map(({ requestId }) => Number(requestId.slice(2))) : [];
    return { ids, pages: asked.length };
  };
  expect(await read()).toEqual({ ids: [1, 2, 3, 4, 5, 6], pages: 3 });
  expect(await read(of(2))).toEqual({ ids: [3, 4, 5, 6], pages: 2 });
  expect(await read(undefined, of(1))).toEqual({ ids: [1, 2], pages: 1 });
  expect(await read(undefined, of(3))).toEqual({ ids: [1, 2, 3, 4], pages: 2 });
  expect(await read(of(2), of(4))).toEqual({ ids: [3, 4], pages: 1 });
});

test('the fee of a payment is that of the request, else that of the chain, and may be unknown', async () => {
  const recipients = [{ to: 'miner', amount: '2' }];
  const paid = [{ address: 'miner', amount: 200_000_000n }];
  for (const [outgoing, history, fee] of [
    [{ fee: '0.1', recipients }, null, 10_000_000n],
    [null, { fee: '0.3', recipients }, 30_000_000n],
    [null, { fee: null, recipients }, null],
  ] as const) {
    const { of } = await daemon(() => ({ result: { outgoing, finalized_height: 5, history } }));
    expect(await of().payment('ab')).toEqual({ kind: 'ok', value: { recipients: paid, fee } });
    if (outgoing === null)
      expect(await of().fate('ab')).toEqual({ kind: 'ok', value: { state: 'finalized', height: 5, fee } });
  }
});
