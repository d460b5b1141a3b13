/** Calls of the wallet daemon, and a payment whose traces the node's documents must agree about. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type Answer, documentAt, post, until, wait } from './client.ts';
import { needs, type Target } from './fact.ts';

export type Fields = Record<string, unknown>;
type Said = { readonly result?: Fields; readonly error?: { readonly code: number } };

export const bearer = ({ token }: Target): Record<string, string> => ({
  authorization: `Bearer ${needs(token, '--token-file')}`,
});

/** 'Node down, busy or not synchronized: repeat later'; 'another operation holds the wallet: repeat in a moment'. */
const REPEATED = [-32001, -32003];

export const rpc = async (
  target: Target,
  method: string,
  params: unknown,
  id: unknown = 'own',
): Promise<Said & Fields> => {
  const url = `${needs(target.wallet, '--wallet')}/v1/rpc`;
  const call = async () => {
    const answer: Answer = await post(url, { jsonrpc: '2.0', id, method, params }, bearer(target));
    assert.equal(answer.status, 200, answer.text.slice(0, 200));
    assert.deepEqual([answer.json.jsonrpc, answer.json.id], ['2.0', id]);
    return answer.json as Said & Fields;
  };
  return await until(call, ({ error }) => !REPEATED.includes(error?.code ?? 0));
};

export const result = async (target: Target, method: string, params: unknown = {}): Promise<Fields> => {
  const { result: value, error } = await rpc(target, method, params);
  assert.ok(value !== undefined, `${method}: ${JSON.stringify(error)}`);
  return value;
};

export const codeOf = async (target: Target, method: string, params: unknown): Promise<number | undefined> =>
  (await rpc(target, method, params)).error?.code;

export const requestId = (): string => `conformance-${randomBytes(8).toString('hex')}`;

export const newAddress = async (target: Target): Promise<string> =>
  String((await result(target, 'new_address', { label: 'conformance' })).address);

/** The status document once the transaction is final. */
export const settled = ({ api }: Target, id: string): Promise<Fields> =>
  until(
    () => documentAt(`${api}/v1/transactions/${id}/status`),
    ({ lifecycle }) => lifecycle === 'finalized',
    4 * wait.seconds,
  );

export type Payment = {
  readonly address: string;
  readonly amount: string;
  readonly id: string;
  readonly status: Fields;
};
const payments = new WeakMap<Target, Promise<Payment>>();

/** One payment of a quarter of a coin to an address that nothing else ever pays; final, and read by the wallet. */
export function paidOnce(target: Target): Promise<Payment> {
  const made = payments.get(target) ?? payOnce(target);
  payments.set(target, made);
  made.catch(() => payments.delete(target));
  return made;
}

async function payOnce(target: Target): Promise<Payment> {
  const address = await newAddress(target);
  const sent = await result(target, 'send', { to: address, amount: '0.25', request_id: requestId() });
  const id = String(sent.transaction);
  const status = await settled(target, id);
  const { height } = status.finalized_cut as { height: number };
  await until(
    () => documentAt(`${target.api}/v1/address/${address}/balance`),
    ({ indexed_height }) => Number(indexed_height) >= height,
  );
  await until(
    () => result(target, 'received', { since_height: 0 }),
    ({ indexed_height }) => Number(indexed_height) >= height,
  );
  return { address, amount: '25000000', id, status };
}

/** What all payments of the suite need. */
const ENOUGH = 500_000_000n;

/** A wallet that a new chain pays has its first coins after 96 cuts. */
export const hasCoins = (target: Target): Promise<unknown> =>
  until(
    () => result(target, 'balance'),
    (balance) => Object.values(balance).some((coins) => /^\d+\.\d{8}$/.test(String(coins)) && atomsOf(coins) >= ENOUGH),
    6 * wait.seconds,
  );

export const atomsOf = (coins: unknown): bigint => BigInt(String(coins).replace('.', ''));
