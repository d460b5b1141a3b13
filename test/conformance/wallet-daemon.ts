/** Wallet daemon: calls, amounts, send results, errors and events. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type Answer, post, Socket, until } from './client.ts';
import { type Fact, factsOf, needs, type Target } from './fact.ts';

type Fields = Record<string, unknown>;
type Said = { readonly result?: Fields; readonly error?: { readonly code: number } };

const bearer = ({ token }: Target): Record<string, string> => ({
  authorization: `Bearer ${needs(token, '--token-file')}`,
});

const rpc = async (target: Target, method: string, params: unknown): Promise<Said & Fields> => {
  const url = `${needs(target.wallet, '--wallet')}/v1/rpc`;
  const answer: Answer = await post(url, { jsonrpc: '2.0', id: 'own', method, params }, bearer(target));
  assert.equal(answer.status, 200, answer.text.slice(0, 200));
  assert.deepEqual([answer.json.jsonrpc, answer.json.id], ['2.0', 'own']);
  return answer.json as Said & Fields;
};
const result = async (target: Target, method: string, params: unknown = {}): Promise<Fields> => {
  const { result: value, error } = await rpc(target, method, params);
  assert.ok(value !== undefined, `${method}: ${JSON.stringify(error)}`);
  return value;
};
const codeOf = async (target: Target, method: string, params: unknown): Promise<number | undefined> =>
  (await rpc(target, method, params)).error?.code;

const GROUPS = {
  Wallet: ['status', 'balance', 'pending', 'rescan'],
  Addresses: ['new_address', 'receive', 'addresses', 'set_label', 'validate_address'],
  Incoming: ['received', 'incoming', 'outputs', 'history', 'transaction'],
  Outgoing: ['send', 'send_many', 'sweep', 'burn', 'compound'],
  Staking: ['validators', 'positions', 'stake', 'unstake', 'withdraw'],
  Ownership: ['proof_request', 'prove_address', 'verify_address_proof'],
} as const;
const UNKNOWN_METHOD = -32601;
const requestId = (): string => `conformance-${randomBytes(8).toString('hex')}`;

const newAddress = async (target: Target): Promise<string> =>
  String((await result(target, 'new_address', { label: 'conformance' })).address);

export const WALLET: readonly Fact[] = [
  ...factsOf('Wallet daemon: calls', {
    ...Object.fromEntries(
      Object.entries(GROUPS).map(([group, methods]) => [
        `${group}: ${methods.map((name) => `\`${name}\``).join(', ')} are methods, and refuse an unknown field`,
        async (target: Target) => {
          for (const method of methods)
            assert.equal(await codeOf(target, method, { no_such_field: 1 }), -32602, method);
        },
      ]),
    ),
    'a method that is not in the table is unknown': async (target) => {
      assert.equal(await codeOf(target, 'no_such_method', {}), UNKNOWN_METHOD);
    },
    '`params` is an object': async (target) => {
      assert.notEqual(await codeOf(target, 'status', [1]), undefined);
    },
    '`status` includes `node_synced` and `node_behind_by`': async (target) => {
      const status = await result(target, 'status');
      assert.equal(typeof status.node_synced, 'boolean');
      assert.ok('node_behind_by' in status);
    },
    'amounts are decimal strings in coins with 8 decimals': async (target) => {
      const amounts = Object.values(await result(target, 'balance')).filter((value) => typeof value === 'string');
      assert.ok(
        amounts.some((text) => /^\d+\.\d{8}$/.test(text as string)),
        amounts.join(),
      );
    },
    '`validate_address` returns the verification words': async (target) => {
      const address = needs(target.address, '--address');
      assert.match(JSON.stringify(await result(target, 'validate_address', { address })), /words":\[/);
    },
    '`proof_request` gives a challenge, which `prove_address` answers and `verify_address_proof` checks': async (
      target,
    ) => {
      const request = await result(target, 'proof_request', { address: await newAddress(target) });
      const proof = await result(target, 'prove_address', { request });
      assert.match(JSON.stringify(await result(target, 'verify_address_proof', { proof, request })), /true/);
    },
    '`received` takes `since_height` and reports `indexed_height`': async (target) => {
      const received = await result(target, 'received', { since_height: 0 });
      assert.ok(Number.isSafeInteger(received.indexed_height));
    },
  }),
  ...factsOf('Wallet daemon: payments', {
    'a send: the fields of its result; a repeated `request_id` returns it with `duplicate` true and pays once': async (
      target,
    ) => {
      const to = await newAddress(target);
      const params = { to, amount: '0.25', request_id: requestId() };
      const first = await result(target, 'send', params);
      assert.equal(first.kind, 'payment');
      assert.deepEqual([first.to, first.amount, first.submitted, first.duplicate], [to, '0.25000000', true, false]);
      assert.match(String(first.fee), /^\d+\.\d{8}$/);
      assert.equal(typeof first.fee_per_mass, 'string');
      assert.match(String(first.transaction), /^[0-9a-f]{96}$/);
      const again = await result(target, 'send', params);
      assert.deepEqual([again.transaction, again.duplicate], [first.transaction, true]);
    },
    'an amount with more than 8 decimals, and a wrong address, are -32602': async (target) => {
      const to = await newAddress(target);
      assert.equal(await codeOf(target, 'send', { to, amount: '0.123456789', request_id: requestId() }), -32602);
      assert.equal(await codeOf(target, 'send', { to: 'nobody', amount: '1', request_id: requestId() }), -32602);
      assert.equal(await codeOf(target, 'send', { to, amount: 1, request_id: requestId() }), -32602);
    },
    'more than there is, is -32000': async (target) => {
      const to = await newAddress(target);
      assert.equal(await codeOf(target, 'send', { to, amount: '199999999', request_id: requestId() }), -32000);
    },
    '`send_many`: seven recipients, not eight': async (target) => {
      const to = await newAddress(target);
      const many = (count: number) => ({
        recipients: Array.from({ length: count }, () => ({ to, amount: '0.01' })),
        request_id: requestId(),
      });
      assert.equal(await codeOf(target, 'send_many', many(8)), -32602);
      const seven = await rpc(target, 'send_many', many(7));
      assert.ok(seven.error === undefined || seven.error.code !== -32602, JSON.stringify(seven.error));
    },
  }),
  ...factsOf('Wallet daemon: events', {
    '`finalized` lists a payment with transaction, output, amount, `payload_text` and senders; `settled` follows a withdrawal':
      async (target) => {
        const url = `${needs(target.wallet, '--wallet')}/v1/ws`;
        const socket = await Socket.open(url, [], bearer(target));
        try {
          socket.send({
            jsonrpc: '2.0',
            id: 1,
            method: 'subscribe',
            params: { events: ['unconfirmed', 'finalized', 'settled'] },
          });
          const to = await newAddress(target);
          const sent = await result(target, 'send', { to, amount: '0.125', request_id: requestId() });
          const seen = new Map<string, string>();
          await until(
            async () => {
              const text = JSON.stringify(await socket.next());
              // A withdrawal that is settled says that it is finalized, too.
              const event = ['settled', 'finalized'].find((name) => text.includes(`"${name}"`));
              if (event !== undefined && text.includes(String(sent.transaction))) seen.set(event, text);
              return [...seen.keys()].sort().join();
            },
            (events) => events === 'finalized,settled',
            120,
          );
          for (const name of ['transaction', 'output', 'amount', 'payload_text', 'senders'])
            assert.ok(seen.get('finalized')?.includes(`"${name}":`), name);
        } finally {
          socket.close();
        }
      },
    'an event that is not in the table is refused': async (target) => {
      const socket = await Socket.open(`${needs(target.wallet, '--wallet')}/v1/ws`, [], bearer(target));
      try {
        socket.send({ jsonrpc: '2.0', id: 1, method: 'subscribe', params: { events: ['weather'] } });
        assert.match(JSON.stringify(await socket.next()), /"error"/);
      } finally {
        socket.close();
      }
    },
  }),
];
