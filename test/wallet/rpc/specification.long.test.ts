/**
 * The specification's tables of the wallet daemon, row by row: every method with its params, every event, every error
 * code. docs/wallet.md is held to the same rows and to the declarations in the code.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { formatAddress } from '../../../protocol/address.ts';
import type { JsonSchema } from '../../../protocol/api/schema.ts';
import { EVENT_NAMES } from '../../../wallet/event-hub.ts';
import { dispatch, METHODS } from '../../../wallet/rpc/dispatch.ts';
import { SOCKET_METHODS } from '../../../wallet/rpc/sockets.ts';
import { WALLET_ERRORS } from '../../../wallet/wallet-error.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, type TestWallet } from '../open-wallet.ts';

const page = readFileSync(new URL('../../../docs/wallet.md', import.meta.url), 'utf8');
const section = (heading: string): string => page.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';
const rows = (text: string): string[][] =>
  [...text.matchAll(/^\| (.*) \|$/gm)].map((match) => (match[1] as string).split(' | ').map((cell) => cell.trim()));

const COIN = 100_000_000n;
const stranger = formatAddress(new Uint8Array(49).fill(7, 1), 'development');

/** Specification: Wallet daemon. Each row is called; the fields are those the specification names. */
type Row = {
  group: string;
  method: string;
  params: (wallet: TestWallet) => Promise<unknown> | unknown;
  fields: string[];
};
const request = async ({ call }: TestWallet) =>
  await call('proof_request', await call('receive').then(({ address }) => ({ address })));
const METHOD_ROWS: Row[] = [
  {
    group: 'Wallet',
    method: 'status',
    params: () => ({}),
    fields: ['node_synced', 'node_behind_by', 'indexed_height', 'request_table'],
  },
  { group: 'Wallet', method: 'balance', params: () => ({}), fields: ['balance'] },
  {
    group: 'Outgoing',
    method: 'requests',
    params: () => ({ prefix: 's', limit: 10 }),
    fields: ['requests', 'request_table', 'indexed_height'],
  },
  { group: 'Wallet', method: 'pending', params: () => ({}), fields: ['transactions'] },
  { group: 'Addresses', method: 'new_address', params: () => ({ label: 'customer' }), fields: ['address', 'label'] },
  { group: 'Addresses', method: 'receive', params: () => ({}), fields: ['address'] },
  { group: 'Addresses', method: 'addresses', params: () => ({}), fields: ['addresses'] },
  {
    group: 'Addresses',
    method: 'set_label',
    params: async ({ call }) => ({ address: (await call('receive')).address, label: 'new name' }),
    fields: ['address', 'label'],
  },
  {
    group: 'Addresses',
    method: 'validate_address',
    params: () => ({ address: stranger }),
    fields: ['valid', 'verification_words'],
  },
  {
    group: 'Incoming',
    method: 'received',
    params: () => ({ since_height: 0 }),
    fields: ['payments', 'indexed_height'],
  },
  { group: 'Incoming', method: 'incoming', params: () => ({}), fields: ['payments'] },
  { group: 'Incoming', method: 'outputs', params: () => ({}), fields: ['outputs'] },
  { group: 'Incoming', method: 'history', params: () => ({}), fields: ['entries'] },
  {
    group: 'Incoming',
    method: 'transaction',
    params: async ({ call }) => ({
      transaction: ((await call('history')).entries as { transaction: string }[])[0]?.transaction,
    }),
    fields: ['transaction', 'confirmations'],
  },
  {
    group: 'Outgoing',
    method: 'send',
    params: () => ({ to: stranger, amount: '1.25', request_id: 'row send', compound_first: true, subtract_fee: true }),
    fields: ['kind', 'to', 'amount', 'fee', 'fee_per_mass', 'transaction', 'submitted', 'duplicate'],
  },
  {
    group: 'Outgoing',
    method: 'send_many',
    params: () => ({
      recipients: Array.from({ length: 7 }, () => ({ to: stranger, amount: '0.5' })),
      request_id: 'row send_many',
      subtract_fee: true,
    }),
    fields: ['kind', 'amount', 'fee', 'fee_per_mass', 'transaction', 'submitted', 'duplicate'],
  },
  {
    group: 'Outgoing',
    method: 'burn',
    params: () => ({ amount: '0.5', request_id: 'row burn' }),
    fields: ['transaction', 'duplicate'],
  },
  {
    group: 'Outgoing',
    method: 'compound',
    params: () => ({ request_id: 'row compound' }),
    fields: ['transaction', 'duplicate'],
  },
  {
    group: 'Outgoing',
    method: 'sweep',
    params: () => ({ to: stranger, request_id: 'row sweep' }),
    fields: ['transaction', 'duplicate'],
  },
  {
    group: 'Ownership',
    method: 'proof_request',
    params: () => ({ address: stranger }),
    fields: ['address', 'challenge'],
  },
  {
    group: 'Ownership',
    method: 'prove_address',
    params: async (wallet) => ({ request: await request(wallet) }),
    fields: ['signature'],
  },
  {
    group: 'Ownership',
    method: 'verify_address_proof',
    params: async (wallet) => {
      const asked = await request(wallet);
      return { request: asked, proof: await wallet.call('prove_address', { request: asked }) };
    },
    fields: ['valid'],
  },
  { group: 'Wallet', method: 'rescan', params: () => ({}), fields: ['rescanning'] },
];
/** Beyond the specification: what the command `chat` calls. See ../messenger/chats.long.test.ts. */
const CHATS = ['chats', 'chat_request', 'chat_accept', 'chat_send', 'chat_messages'];
const EVENT_METHODS = ['subscribe', 'unsubscribe'];
/** Called in ../staking/rows.long.test.ts, where there is a chain with validators. */
const STAKING = ['validators', 'positions', 'stake', 'unstake', 'withdraw'];
/** Beyond the specification: what its operator commands call. See ../staking/operator-rows.long.test.ts and operator-changes.long.test.ts. */
const OPERATOR = [
  'validator_register',
  'reward_address',
  'validator_heartbeat',
  'validator_rotate',
  'validator_endpoint',
  'validator_commission',
  'validator_exit',
];
/** Beyond the specification: what the command `multisig` calls. See ../multisig/methods.long.test.ts. */
const MULTISIG = [
  'multisig_key',
  'multisig_watch',
  'multisig_addresses',
  'multisig_propose',
  'multisig_review',
  'multisig_sign',
  'multisig_send',
];

test('every method of the specification, row by row', async () => {
  const node = new FakeNode();
  const wallet = await fundedWallet(
    node,
    Array.from({ length: 30 }, () => 5n * COIN),
  );
  for (const { group, method, params, fields } of METHOD_ROWS) {
    if (method === 'sweep') {
      node.seal();
      await wallet.turn();
    }
    const result = await wallet.call(method, await params(wallet));
    expect({ method, fields: fields.filter((field) => !(field in result)) }).toEqual({ method, fields: [] });
    expect(METHODS[method as keyof typeof METHODS].group).toBe(group);
    expect(await wallet.refusal(method, { ...((await params(wallet)) as object), surprise: 1 })).toMatchObject({
      code: -32602,
      data: { field: 'surprise' },
    });
    expect(await wallet.refusal(method, [])).toMatchObject({ code: -32602 });
    if (method === 'verify_address_proof') expect(result.valid).toBe(true);
  }
  await expect.poll(() => wallet.wallet.follower.rescanning).toBe(false);
  for (const method of [...EVENT_METHODS, 'nonsense', 'constructor'])
    expect(await wallet.refusal(method)).toMatchObject({ code: -32601 });
  expect((await wallet.refusal('nonsense')).message).toContain('docs/wallet.md');
  expect([...METHOD_ROWS.map(({ method }) => method), ...STAKING, ...OPERATOR, ...MULTISIG, ...CHATS].sort()).toEqual(
    Object.keys(METHODS).sort(),
  );
  const staking = readFileSync(new URL('../staking/rows.long.test.ts', import.meta.url), 'utf8');
  for (const method of STAKING) {
    expect(METHODS[method as keyof typeof METHODS].group).toBe('Staking');
    expect(staking).toContain(`test('Staking: \`${method}\`'`);
  }
  expect(Object.keys(SOCKET_METHODS)).toEqual(EVENT_METHODS);
});

test('docs/wallet.md lists exactly these methods, with their params', () => {
  const documented = rows(section('JSON-RPC')).filter(([, method]) => method?.startsWith('`'));
  const declared = [...Object.entries(METHODS), ...Object.entries(SOCKET_METHODS)];
  expect(documented.map(([group, method]) => `${group} ${method}`)).toEqual(
    expect.arrayContaining(declared.map(([name, { group }]) => `${group} \`${name}\``)),
  );
  expect(documented).toHaveLength(declared.length);
  for (const [name, { params }] of declared) {
    const cell = documented.find(([, method]) => method === `\`${name}\``)?.[2] ?? '';
    const schema = params as JsonSchema;
    const fields = Object.keys(schema.properties ?? {}).map(
      (field) => `\`${field}\`${schema.required?.includes(field) ? '' : '?'}`,
    );
    if (name === 'send_many') expect(cell).toContain('the rest as `send`');
    else expect({ name, fields: fields.filter((field) => !cell.includes(field)) }).toEqual({ name, fields: [] });
  }
});

/** Specification: Wallet daemon events. */
const EVENT_ROWS = ['unconfirmed', 'removed', 'finalized', 'confirmations', 'settled', 'resync_required'];

test('every event of the specification exists and is documented; each is seen in following.test.ts', () => {
  // These stand next to those of the specification; test/wallet/staking/events.long.test.ts, test/wallet/multisig.long.test.ts.
  const every = [...EVENT_ROWS, 'staking', 'multisig'];
  expect([...EVENT_NAMES]).toEqual(every);
  expect(rows(section('Events')).flatMap(([name = '']) => (name.startsWith('`') ? [name.slice(1, -1)] : []))).toEqual(
    every,
  );
  const source = readFileSync(new URL('../chain/following.long.test.ts', import.meta.url), 'utf8');
  const payments = readFileSync(new URL('../payments/payments.long.test.ts', import.meta.url), 'utf8');
  for (const name of EVENT_ROWS) expect(source + payments).toContain(`'${name}'`);
});

/** Specification: Wallet daemon JSON-RPC codes. Each is brought about here. */
test('every error code of the specification, row by row', async () => {
  const documented = rows(section('Errors')).flatMap(([code = '']) => (/^-\d+$/.test(code) ? [Number(code)] : []));
  expect(documented).toEqual([-32001, -32002, -32003, -32000, -32004, -32602]);
  for (const code of new Set(Object.values(WALLET_ERRORS))) expect(documented).toContain(code);
  const node = new FakeNode();
  const wallet = await fundedWallet(node, [5n * COIN, 5n * COIN], { answerMillis: 2_000 });
  const send = (request_id: string, amount = '4') => wallet.refusal('send', { to: stranger, amount, request_id });
  node.down = true;
  await wallet.turn();
  expect((await send('a')).code).toBe(-32001);
  node.down = false;
  await wallet.turn();
  node.fault = 'lost';
  expect((await send('b')).code).toBe(-32002);
  node.fault = 'refuse';
  expect((await send('c')).code).toBe(-32004);
  node.fault = 'none';
  expect((await send('d', '0.5')).code).toBe(-32003);
  expect((await send('e', '100')).code).toBe(-32000);
  expect((await send('f', '1.123456789')).code).toBe(-32602);
  node.seal();
  await wallet.turn();
  const answer = await dispatch(wallet.wallet, {
    id: 5,
    method: 'send',
    params: { to: stranger, amount: '9', request_id: 'b' },
  });
  expect(answer).toMatchObject({ id: 5, result: { duplicate: true, amount: '4.00000000' } });
});
