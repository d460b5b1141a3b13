/** Wallet daemon: calls, amounts, send results, errors and events. */
import assert from 'node:assert/strict';
import { documentAt, get, Socket, until, wait } from './client.ts';
import { type Fact, factsOf, needs, type Target } from './fact.ts';
import {
  atomsOf,
  bearer,
  codeOf,
  type Fields,
  newAddress,
  paidOnce,
  requestId,
  result,
  rpc,
  settled,
} from './json-rpc.ts';
import { walletParams } from './unshown.ts';

const GROUPS = {
  Wallet: ['status', 'balance', 'pending', 'rescan'],
  Addresses: ['new_address', 'receive', 'addresses', 'set_label', 'validate_address'],
  Incoming: ['received', 'incoming', 'outputs', 'history', 'transaction'],
  Outgoing: ['send', 'send_many', 'sweep', 'burn', 'compound'],
  Staking: ['validators', 'positions', 'stake', 'unstake', 'withdraw'],
  Ownership: ['proof_request', 'prove_address', 'verify_address_proof'],
} as const;
const UNKNOWN_METHOD = -32601;

/** The socket of events, after a call on it was answered. */
async function listening<T>(
  target: Target,
  events: readonly string[],
  use: (socket: Socket) => Promise<T>,
): Promise<T> {
  const socket = await Socket.open(`${needs(target.wallet, '--wallet')}/v1/ws`, [], bearer(target));
  try {
    socket.send({ jsonrpc: '2.0', id: 1, method: 'subscribe', params: { events } });
    await socket.next();
    return await use(socket);
  } finally {
    socket.close();
  }
}

const coinsOf = async ({ api }: Target, address: string): Promise<bigint> =>
  BigInt(String((await documentAt(`${api}/v1/address/${address}/balance`)).balance));

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
    'an answer has the id of its call, a number or a text': async (target) => {
      for (const id of [7, 'own', 'x'.repeat(60)]) assert.ok('result' in (await rpc(target, 'status', {}, id)));
    },
    '`new_address` gives another address each time; `addresses` lists it with its label, which `set_label` changes':
      async (target) => {
        const [first, second] = [await newAddress(target), await newAddress(target)];
        assert.notEqual(first, second);
        await result(target, 'set_label', walletParams.setLabel(second, 'another name'));
        const list = (await result(target, 'addresses')).addresses as Fields[];
        const labelOf = (address: string) => list.find((entry) => entry.address === address)?.label;
        assert.deepEqual([labelOf(first), labelOf(second)], ['conformance', 'another name']);
      },
    'a damaged address is not valid; the words of an address are always the same, and another has others': async (
      target,
    ) => {
      const [first, second] = [await newAddress(target), await newAddress(target)];
      const said = async (address: string) => JSON.stringify(await result(target, 'validate_address', { address }));
      const words = async (address: string) => /words":(\[.*?\])/.exec(await said(address))?.[1];
      assert.equal(await words(first), await words(first));
      assert.notEqual(await words(first), await words(second));
      const damaged = first.slice(0, -1) + (first.endsWith('q') ? 'p' : 'q');
      const answer = await rpc(target, 'validate_address', { address: damaged });
      assert.ok(answer.error?.code === -32602 || JSON.stringify(answer.result).includes('false'));
    },
    'an answer to another challenge, or for another address, proves nothing': async (target) => {
      const [own, other] = [await newAddress(target), await newAddress(target)];
      const requests = [
        await result(target, 'proof_request', { address: own }),
        await result(target, 'proof_request', { address: own }),
        await result(target, 'proof_request', { address: other }),
      ];
      const proof = await result(target, 'prove_address', { request: requests[0] });
      for (const request of requests.slice(1)) {
        const answer = await rpc(target, 'verify_address_proof', { proof, request });
        assert.ok(answer.error !== undefined || JSON.stringify(answer.result).includes('false'));
      }
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
  ...factsOf('Wallet daemon: more payments', {
    'a used `request_id` with another amount returns the first result, and pays nothing more': async (target) => {
      const to = await newAddress(target);
      const request_id = requestId();
      const first = await result(target, 'send', { to, amount: '0.5', request_id });
      const again = await result(target, 'send', { to, amount: '0.75', request_id });
      assert.deepEqual([again.transaction, again.amount, again.duplicate], [first.transaction, first.amount, true]);
      await settled(target, String(first.transaction));
      await until(
        () => coinsOf(target, to),
        (coins) => coins > 0n,
      );
      assert.equal(await coinsOf(target, to), 50_000_000n);
    },
    '`subtract_fee` takes the fee out of the amount': async (target) => {
      const to = await newAddress(target);
      const sent = await result(target, 'send', { to, amount: '1', subtract_fee: true, request_id: requestId() });
      await settled(target, String(sent.transaction));
      const coins = await until(
        () => coinsOf(target, to),
        (value) => value > 0n,
      );
      assert.equal(coins + atomsOf(sent.fee), 100_000_000n);
    },
    '`send_many` pays all its recipients in one transaction': async (target) => {
      const to = [await newAddress(target), await newAddress(target)];
      const recipients = to.map((address, i) => ({ to: address, amount: `0.0${i + 1}` }));
      const sent = await result(target, 'send_many', { recipients, request_id: requestId() });
      await settled(target, String(sent.transaction));
      for (const [i, address] of to.entries()) {
        const coins = await until(
          () => coinsOf(target, address),
          (value) => value > 0n,
        );
        assert.equal(coins, BigInt(i + 1) * 1_000_000n);
        assert.ok((await get(`${target.api}/v1/address/${address}/history`)).text.includes(String(sent.transaction)));
      }
    },
    'an amount of zero, below zero, in another notation or as a number is -32602': async (target) => {
      const to = await newAddress(target);
      for (const amount of ['0', '-1', '1e3', '', ' 1', '1,5', '0x1', 0.5, null])
        assert.equal(
          await codeOf(target, 'send', { to, amount, request_id: requestId() }),
          -32602,
          JSON.stringify(amount),
        );
    },
    'what is burned leaves the supply, and no output has it': async (target) => {
      const supply = async () => {
        const document = await documentAt(`${target.api}/v1/economics/supply`);
        return BigInt(String(document.burned));
      };
      const before = await supply();
      const sent = await result(target, 'burn', walletParams.burn('0.125', requestId()));
      await settled(target, String(sent.transaction));
      const after = await until(supply, (burned) => burned > before);
      assert.equal(after - before, 12_500_000n);
    },
    '`received` after the indexed height has nothing of before; each (`transaction`, `output`) comes once': async (
      target,
    ) => {
      const { id } = await paidOnce(target);
      const all = await result(target, 'received', { since_height: 0 });
      const pairs = (Object.values(all).find(Array.isArray) as Fields[]).map(
        (payment) => `${payment.transaction}:${payment.output}`,
      );
      assert.ok(pairs.some((pair) => pair.startsWith(id)));
      assert.equal(new Set(pairs).size, pairs.length);
      const later = await result(target, 'received', { since_height: all.indexed_height });
      assert.ok(!JSON.stringify(later).includes(id));
    },
  }),
  ...factsOf('Wallet daemon: events', {
    '`unconfirmed`, where it is seen in time, comes before `finalized`, and never after it': (target) =>
      listening(target, ['unconfirmed', 'finalized'], async (socket) => {
        const to = await newAddress(target);
        const sent = await result(target, 'send', { to, amount: '0.03125', request_id: requestId() });
        const seen: string[] = [];
        const read = async (): Promise<Fields> => {
          const said = (await socket.next()) as unknown as Fields;
          const event = ['unconfirmed', 'finalized'].find((name) => JSON.stringify(said).includes(`"${name}"`));
          if (event !== undefined && JSON.stringify(said).includes(String(sent.transaction))) seen.push(event);
          return said;
        };
        while (!seen.includes('finalized')) await read();
        const end = await until(
          async () => {
            socket.send({ jsonrpc: '2.0', id: 2, method: 'subscribe', params: { events: ['finalized'] } });
            return await read();
          },
          ({ id }) => id === 2,
        );
        assert.ok(end !== undefined);
        assert.equal(seen.at(-1), 'finalized');
        assert.equal(seen.filter((event) => event === 'finalized').length, 1);
      }),
    'after `unsubscribe` no events come': (target) =>
      listening(target, ['unconfirmed', 'finalized'], async (socket) => {
        socket.send({ jsonrpc: '2.0', id: 2, method: 'unsubscribe', params: { events: ['unconfirmed', 'finalized'] } });
        const answered = async (id: number): Promise<Fields> => {
          for (;;) {
            const said = (await socket.next()) as unknown as Fields;
            if (said.id === id) return said;
          }
        };
        assert.ok('result' in (await answered(2)));
        const sent = await result(target, 'send', {
          to: await newAddress(target),
          amount: '0.01',
          request_id: requestId(),
        });
        await settled(target, String(sent.transaction));
        socket.send({ jsonrpc: '2.0', id: 3, method: 'unsubscribe', params: { events: ['settled'] } });
        for (;;) {
          const said = (await socket.next()) as unknown as Fields;
          assert.ok(!JSON.stringify(said).includes(String(sent.transaction)));
          if (said.id === 3) break;
        }
      }),
    'the socket needs the token, too': async (target) => {
      const url = `${needs(target.wallet, '--wallet')}/v1/ws`;
      await assert.rejects(Socket.open(url), /refused: 401/);
      await assert.rejects(Socket.open(url, [], { authorization: 'Bearer wrong' }), /refused: 401/);
    },
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
            4 * wait.seconds,
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
