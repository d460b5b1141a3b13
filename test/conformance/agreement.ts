/** Resources: what the documents say of one payment must agree; Conventions that hold for every answer. */
import assert from 'node:assert/strict';
import { ask, documentAt, get, HEX_96, post } from './client.ts';
import { type Fact, factsOf } from './fact.ts';
import { type Fields, newAddress, type Payment, paidOnce, result } from './json-rpc.ts';
import { batchBody } from './unshown.ts';

const entriesOf = (document: Fields): Fields[] => Object.values(document).find(Array.isArray) as Fields[];
const about = (payment: Payment, path: string): string => `/v1/address/${payment.address}/${path}`;
const posted = async (url: string, body: unknown): Promise<Fields> => {
  const answer = await post(url, body);
  assert.equal(answer.status, 200, answer.text.slice(0, 200));
  return answer.json;
};
const AMOUNT = /(^|_)(amount|balance|supply|minted|burned|bonded|unbonding|reserve|subsidy|emission|fee|reward)$/;

/** Every named value of a document. */
function* fieldsIn(value: unknown): Generator<[string, unknown]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) yield [name, inner];
    yield* fieldsIn(inner);
  }
}

const heightIn = (status: Fields, name: string): number => (status[name] as { height: number }).height;

export const AGREEMENT: readonly Fact[] = [
  ...factsOf('Conventions: every answer', {
    'is `application/json`, to POST and to what is refused too': async (target) => {
      const { api } = target;
      const addresses = batchBody.addresses('/v1/address/balances', []);
      for (const answer of [
        await post(`${api}/v1/address/balances`, addresses),
        await post(`${api}/v1/transactions`, { api_version: 1, wire_hex: '00' }),
        await post(`${api}/v1/transactions`, 'no JSON'),
        await get(`${api}/v1/nothing`),
        await get(`${api}/v1/address/nobody/balance`),
        await get(`${api}/v1/cuts?limit=many`),
        await ask(`${api}/v1/cuts`, { method: 'DELETE' }),
      ])
        assert.match(answer.header('content-type') ?? '', /^application\/json/, answer.text.slice(0, 80));
    },
    'has no amount that is a number': async (target) => {
      const payment = await paidOnce(target);
      const block = (payment.status.observed_work as Fields).block_id;
      for (const path of [
        '/v1/economics/supply',
        '/v1/economics/emission',
        '/v1/economics/estimate/staking?amount=10000000000',
        about(payment, 'balance'),
        about(payment, 'utxos'),
        about(payment, 'history'),
        `/v1/blocks/${block}`,
        `/v1/cuts/${heightIn(payment.status, 'finalized_cut')}/changes`,
      ])
        for (const [name, value] of fieldsIn(await documentAt(`${target.api}${path}`)))
          if (AMOUNT.test(name)) assert.notEqual(typeof value, 'number', `${path}: ${name}`);
    },
  }),
  ...factsOf('Resources: one payment', {
    'its balance document: the amount, one output': async (target) => {
      const payment = await paidOnce(target);
      const { balance, utxos } = await documentAt(`${target.api}${about(payment, 'balance')}`);
      assert.deepEqual([balance, utxos], [payment.amount, 1]);
    },
    'its page of outputs: one, of that transaction and amount, and no `next_cursor`': async (target) => {
      const payment = await paidOnce(target);
      const page = await documentAt(`${target.api}${about(payment, 'utxos')}`);
      const [output] = entriesOf(page);
      assert.equal(entriesOf(page).length, 1);
      assert.ok(JSON.stringify(output).includes(payment.id) && JSON.stringify(output).includes(`"${payment.amount}"`));
      assert.equal(page.next_cursor ?? undefined, undefined);
    },
    'its history: one event, at the height of the finalized cut, of source `regular`': async (target) => {
      const payment = await paidOnce(target);
      const { events } = await documentAt(`${target.api}${about(payment, 'history')}`);
      const [event, ...others] = events as Fields[];
      assert.deepEqual(others, []);
      assert.deepEqual(
        [event?.finalized_height, event?.amount, event?.source, event?.transaction_id],
        [heightIn(payment.status, 'finalized_cut'), payment.amount, 'regular', payment.id],
      );
      assert.equal((event?.outpoint as Fields | undefined)?.transaction_id, payment.id);
    },
    'batch balances and outputs say the same as the single documents': async (target) => {
      const payment = await paidOnce(target);
      for (const path of ['/v1/address/balances', '/v1/address/utxos']) {
        const said = JSON.stringify(await posted(`${target.api}${path}`, batchBody.addresses(path, [payment.address])));
        assert.ok(said.includes(`"${payment.amount}"`) && said.includes(payment.address), said.slice(0, 200));
      }
    },
    '`POST /v1/address/changes` has it for a reader that missed it': async (target) => {
      const payment = await paidOnce(target);
      const path = '/v1/address/changes';
      const before = heightIn(payment.status, 'finalized_cut') - 1;
      const body = { ...batchBody.addresses(path, [payment.address]), after_height: before };
      assert.ok(JSON.stringify(await posted(`${target.api}${path}`, body)).includes(payment.id));
    },
    'its cut lists the transaction and its output': async (target) => {
      const payment = await paidOnce(target);
      for (const name of ['transactions', 'changes']) {
        const url = `${target.api}/v1/cuts/${heightIn(payment.status, 'finalized_cut')}/${name}`;
        assert.ok((await get(url)).text.includes(payment.id), name);
      }
    },
    'its work block is known, and was registered no later than it was executed': async (target) => {
      const { status } = await paidOnce(target);
      const block = String((status.observed_work as Fields).block_id);
      await documentAt(`${target.api}/v1/blocks/${block}`);
      const heights = [heightIn(status, 'registered_cut'), heightIn(status, 'finalized_cut')];
      assert.ok((heights[0] as number) <= (heights[1] as number), heights.join());
      assert.match(String((status.finalized_cut as Fields).cut_id), HEX_96);
    },
    'the batch of statuses says the same as the status document': async (target) => {
      const { id, status } = await paidOnce(target);
      const said = await posted(`${target.api}/v1/transactions/status`, batchBody.transactions([id]));
      const [entry] = entriesOf(said);
      assert.deepEqual([entry?.transaction_id, entry?.lifecycle], [id, 'finalized']);
      assert.deepEqual(entry?.finalized_cut, status.finalized_cut);
    },
    'its output can be proven, one that never was cannot': async (target) => {
      const { id, amount, address } = await paidOnce(target);
      const [output] = entriesOf(await documentAt(`${target.api}/v1/address/${address}/utxos`));
      const outpoint = ((output?.outpoint as Fields | undefined) ?? output) as Fields;
      const proof = async (transaction_id: string) => {
        const body = batchBody.outpoints([{ transaction_id, output_index: outpoint.output_index }]);
        return JSON.stringify(entriesOf(await posted(`${target.api}/v1/proofs/utxos`, body)));
      };
      assert.ok((await proof(id)).includes(`"${amount}"`));
      assert.ok(!(await proof('0'.repeat(96))).includes(`"${amount}"`));
    },
    'an address that never received anything: 0, no outputs, no events, one page': async (target) => {
      const address = await newAddress(target);
      const { balance, utxos } = await documentAt(`${target.api}/v1/address/${address}/balance`);
      assert.deepEqual([balance, utxos], ['0', 0]);
      const history = await documentAt(`${target.api}/v1/address/${address}/history`);
      assert.deepEqual([history.events, history.next_cursor], [[], undefined]);
    },
    'an address that has spent is in the registry of keys, a new one is not': async (target) => {
      const { id, address } = await paidOnce(target);
      const received = JSON.stringify(await result(target, 'received', { since_height: 0 }));
      const senders = received.slice(received.indexOf(id)).match(/"senders":\[[^\]]*?"([a-z]+1[02-9ac-hj-np-z]+)"/);
      const sender = senders?.[1];
      assert.ok(sender !== undefined, 'the payment names no sender');
      const path = '/v1/keys/registered';
      const said = entriesOf(await posted(`${target.api}${path}`, batchBody.addresses(path, [sender, address])));
      const of = (one: string) => JSON.stringify(said.find((entry) => entry.address === one)).replaceAll(one, '');
      assert.notEqual(of(sender), of(address));
    },
  }),
];
