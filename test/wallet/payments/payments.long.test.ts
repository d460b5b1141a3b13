/** Payments against a node that fails in every way: never two payments for one request, never a balance that lies. */
import { expect, test } from 'vitest';
import { formatAddress } from '../../../protocol/address.ts';
import { FakeNode } from '../fake-node.ts';
import { fundedWallet, IMPATIENT, openTestWallet } from '../open-wallet.ts';

const COIN = 100_000_000n;
const stranger = (n: number): string => {
  const payload = new Uint8Array(49).fill(n, 1);
  return formatAddress(payload, 'development');
};

test('a payment is sent, finalized and settled; its repetition is the first result', async () => {
  const node = new FakeNode();
  const { wallet, call, turn } = await fundedWallet(node, [10n * COIN]);
  const settled: unknown[] = [];
  wallet.events.listen(({ name, params }) => name === 'settled' && settled.push(params));
  const params = { to: stranger(1), amount: '1.25', request_id: 'r1' };
  const first = await call('send', params);
  expect(first).toMatchObject({
    kind: 'payment',
    to: stranger(1),
    amount: '1.25000000',
    fee_per_mass: '10',
    submitted: true,
    duplicate: false,
    state: 'pending',
  });
  expect(await call('balance')).toMatchObject({
    balance: '10.00000000',
    spendable: '0.00000000',
    reserved: '10.00000000',
  });
  expect(await call('send', params)).toEqual({ ...first, duplicate: true });
  node.seal();
  await turn();
  expect(node.balanceOf(stranger(1))).toBe(125_000_000n);
  const again = await call('send', { to: stranger(2), amount: '9', request_id: 'r1' });
  expect(again).toEqual({ ...first, duplicate: true, state: 'finalized' });
  expect(settled).toMatchObject([{ request_id: 'r1', state: 'finalized', transaction: first.transaction }]);
  const fee = BigInt(String(first.fee).replace('.', ''));
  const left = 10n * COIN - 125_000_000n - fee;
  expect(BigInt(String((await call('balance')).balance).replace('.', ''))).toBe(left);
});

test('a repetition with other parameters is logged, also beside the first call', async () => {
  const node = new FakeNode();
  const { call, log } = await fundedWallet(node, [10n * COIN, 10n * COIN]);
  const answers = await Promise.all([
    call('send', { to: stranger(1), amount: '1', request_id: 'same' }),
    call('send', { to: stranger(1), amount: '1', request_id: 'same' }),
  ]);
  expect(answers.map(({ duplicate }) => duplicate)).toEqual([false, true]);
  expect(answers[0]?.transaction).toBe(answers[1]?.transaction);
  await call('send', { to: stranger(1), amount: '2', request_id: 'same' });
  expect(log.join('')).toContain('request repeated with other parameters');
  expect(node.mempool.size).toBe(1);
});

test('two calls at once never take the same output', async () => {
  const node = new FakeNode();
  const { call, turn } = await fundedWallet(
    node,
    Array.from({ length: 20 }, () => 2n * COIN),
  );
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => call('send', { to: stranger(3), amount: '1', request_id: `p${i}` })),
  );
  expect(node.mempool.size).toBe(20);
  node.seal();
  await turn();
  expect(node.balanceOf(stranger(3))).toBe(20n * COIN);
});

test('money that other payments hold is busy; money that is not there is refused', async () => {
  const node = new FakeNode();
  const { call, refusal, turn } = await fundedWallet(node, [5n * COIN]);
  expect(await refusal('send', { to: stranger(1), amount: '6', request_id: 'a' })).toMatchObject({
    code: -32000,
    word: 'insufficient_funds',
    data: { spendable: '5.00000000' },
  });
  await call('send', { to: stranger(1), amount: '1', request_id: 'b' });
  expect(await refusal('send', { to: stranger(1), amount: '1', request_id: 'c' })).toMatchObject({
    code: -32003,
    word: 'funds_in_flight',
  });
  node.seal();
  await turn();
  expect(await call('send', { to: stranger(1), amount: '1', request_id: 'c' })).toMatchObject({ duplicate: false });
});

test('a lost answer is unknown until the node says that it has the transaction', async () => {
  const node = new FakeNode();
  const { call, refusal, turn } = await fundedWallet(node, [5n * COIN, 5n * COIN], IMPATIENT);
  for (const fault of ['lost', 'away', 'busy'] as const) {
    node.fault = fault;
    const params = { to: stranger(4), amount: '1', request_id: `after ${fault}` };
    if (fault === 'busy') node.reward((await call('receive')).address as string, 5n * COIN);
    if (fault === 'busy') {
      node.fault = 'none';
      node.seal();
      await turn();
      node.fault = fault;
    }
    expect(await refusal('send', params)).toMatchObject({ code: -32002, word: 'outcome_unknown' });
    expect(await refusal('send', params)).toMatchObject({ code: -32002 });
    node.fault = 'none';
    await new Promise((resolve) => setTimeout(resolve, 1100));
    await turn();
    expect(await call('send', params)).toMatchObject({ duplicate: true, submitted: true });
  }
  node.seal();
  await turn();
  expect(node.balanceOf(stranger(4))).toBe(3n * COIN);
});

test('a refusal is an answer to the first sending alone; the outputs are free again when a finalized cut says expired', async () => {
  const node = new FakeNode();
  const { call, refusal, turn } = await fundedWallet(node, [5n * COIN], { validityCuts: 20 });
  node.fault = 'refuse';
  const params = { to: stranger(5), amount: '1', request_id: 'refused' };
  expect(await refusal('send', params)).toMatchObject({ code: -32004, word: 'node_refused' });
  expect(await refusal('send', params)).toMatchObject({ code: -32004 });
  node.fault = 'none';
  expect(await call('balance')).toMatchObject({ spendable: '0.00000000' });
  node.skip(19);
  await turn();
  expect(await call('balance')).toMatchObject({ spendable: '0.00000000' });
  node.skip(2);
  await turn();
  expect(await call('balance')).toMatchObject({ spendable: '5.00000000' });
  expect(await call('send', params)).toMatchObject({ duplicate: true, state: 'void', reason: 'expired' });
  expect(node.balanceOf(stranger(5))).toBe(0n);
});

test('a chain that never confirms keeps a payment pending, never void', async () => {
  const node = new FakeNode();
  const { call, turn } = await fundedWallet(node, [5n * COIN], { validityCuts: 10 });
  const params = { to: stranger(6), amount: '1', request_id: 'stuck' };
  await call('send', params);
  for (let i = 0; i < 5; i++) await turn();
  expect(await call('send', params)).toMatchObject({ state: 'pending' });
  node.skip(10);
  await turn();
  expect(await call('send', params)).toMatchObject({ state: 'pending' });
  node.skip(1);
  await turn();
  expect(await call('send', params)).toMatchObject({ state: 'void', reason: 'expired' });
});

test('an output spent by another wallet with the same words makes the payment void by conflict', async () => {
  const node = new FakeNode();
  const { wallet, call, turn } = await fundedWallet(node, [5n * COIN]);
  const [key = ''] = wallet.book.outputs.keys();
  await call('send', { to: stranger(6), amount: '1', request_id: 'conflict' });
  node.steal(key);
  await turn();
  expect(await call('send', { to: stranger(6), amount: '1', request_id: 'conflict' })).toMatchObject({
    state: 'void',
    reason: 'conflict',
  });
  expect(await call('balance')).toMatchObject({ balance: '0.00000000' });
});

test('a restart finds what was signed and sends exactly that', async () => {
  const node = new FakeNode();
  const first = await fundedWallet(node, [5n * COIN], IMPATIENT);
  node.fault = 'away';
  const params = { to: stranger(7), amount: '1', request_id: 'restart' };
  expect(await first.refusal('send', params)).toMatchObject({ code: -32002 });
  const { transactions } = (await first.call('pending')) as { transactions: { transaction: string }[] };
  await first.wallet.close();
  node.fault = 'none';
  const second = await openTestWallet(node, { directory: first.directory });
  expect(await second.call('balance')).toMatchObject({ spendable: '0.00000000', balance: '5.00000000' });
  await second.turn();
  expect([...node.mempool.keys()]).toEqual([transactions[0]?.transaction]);
  expect(await second.call('send', params)).toMatchObject({
    duplicate: true,
    transaction: transactions[0]?.transaction,
  });
  expect((await first.call('status')).request_table).toBe((await second.call('status')).request_table);
});

test('send_many pays seven in one transaction, and subtract_fee takes the fee out of the amounts', async () => {
  const node = new FakeNode();
  const { call, refusal, turn } = await fundedWallet(node, [7n * COIN]);
  const recipients = Array.from({ length: 7 }, (_, i) => ({ to: stranger(10 + i), amount: '1' }));
  expect(
    await refusal('send_many', { recipients: [...recipients, { to: stranger(1), amount: '1' }], request_id: 'x' }),
  ).toMatchObject({ code: -32602, word: 'recipients_count' });
  expect(await refusal('send_many', { recipients: [], request_id: 'x' })).toMatchObject({ code: -32602 });
  const sent = await call('send_many', { recipients, request_id: 'x', subtract_fee: true });
  node.seal();
  await turn();
  const got = recipients.map(({ to }) => node.balanceOf(to));
  const fee = BigInt(String(sent.fee).replace('.', ''));
  expect(got.reduce((sum, one) => sum + one, 0n) + fee).toBe(7n * COIN);
  expect(Math.abs(Number((got[0] as bigint) - (got[6] as bigint)))).toBeLessThanOrEqual(7);
  expect(await call('balance')).toMatchObject({ balance: '0.00000000' });
});

test('the second spend from an address needs no public key any more', async () => {
  const node = new FakeNode();
  const { call, turn } = await fundedWallet(node, [5n * COIN, 5n * COIN]);
  const inline = await call('send', { to: stranger(1), amount: '4', request_id: 'one' });
  node.seal();
  await turn();
  const referenced = await call('send', { to: stranger(1), amount: '4', request_id: 'two' });
  const [a, b] = [inline, referenced].map(({ fee }) => BigInt(String(fee).replace('.', '')));
  expect((a as bigint) - (b as bigint)).toBe(1952n * 10n);
  node.seal();
  await turn();
  expect(node.balanceOf(stranger(1))).toBe(8n * COIN);
});

test('compound_first merges in rounds and then pays, across a restart', async () => {
  const node = new FakeNode();
  const many = Array.from({ length: 100 }, () => COIN / 10n);
  const first = await fundedWallet(node, many, IMPATIENT);
  const params = { to: stranger(8), amount: '8', request_id: 'big' };
  expect(await first.refusal('send', params)).toMatchObject({ code: -32000, word: 'too_many_outputs' });
  expect(await first.refusal('send', { ...params, compound_first: true })).toMatchObject({ code: -32002 });
  expect(((await first.call('pending')) as { merging: unknown[] }).merging).toHaveLength(1);
  node.seal();
  await first.turn();
  await first.wallet.close();
  const { turn, call, wallet } = await openTestWallet(node, { directory: first.directory });
  for (let i = 0; i < 6; i++) {
    node.seal();
    await turn();
  }
  expect(await call('send', params)).toMatchObject({ duplicate: true, state: 'finalized', amount: '8.00000000' });
  expect(node.balanceOf(stranger(8))).toBe(8n * COIN);
  expect(wallet.book.available.total).toBe(wallet.book.total);
});

test('merges that expire are made again; the payment still happens once', async () => {
  const node = new FakeNode();
  const { call, refusal, turn } = await fundedWallet(
    node,
    Array.from({ length: 30 }, () => COIN),
    { ...IMPATIENT, validityCuts: 10 },
  );
  const params = { to: stranger(8), amount: '20', request_id: 'slow', compound_first: true };
  expect(await refusal('send', params)).toMatchObject({ code: -32002 });
  node.mempool.clear();
  node.skip(12);
  node.mempool.clear();
  await turn();
  for (let i = 0; i < 4; i++) {
    node.seal();
    await turn();
  }
  expect(await call('send', params)).toMatchObject({ state: 'finalized' });
  expect(node.balanceOf(stranger(8))).toBe(20n * COIN);
});

test('sweep, burn and compound', async () => {
  const node = new FakeNode();
  const { call, refusal, turn } = await fundedWallet(
    node,
    Array.from({ length: 30 }, () => COIN),
  );
  expect(await call('compound', { dry_run: true })).toMatchObject({ submitted: false, transaction_count: 4 });
  const merged = await call('compound', { request_id: 'c' });
  expect(merged).toMatchObject({ kind: 'compound', remaining_outputs: 0 });
  expect(merged.transactions).toHaveLength(4);
  node.seal();
  await turn();
  expect(await call('balance')).toMatchObject({ outputs: 4 });
  const burn = await call('burn', { amount: '2', request_id: 'b' });
  expect(await refusal('send', { to: String(burn.to), amount: '1', request_id: 'b2' })).toMatchObject({
    code: -32602,
    word: 'burn_needs_method',
  });
  node.seal();
  await turn();
  await call('sweep', { to: stranger(9), request_id: 's' });
  node.seal();
  await turn();
  expect(await call('balance')).toMatchObject({ balance: '0.00000000', outputs: 0 });
  expect(await refusal('sweep', { to: stranger(9), request_id: 's2' })).toMatchObject({
    code: -32000,
    word: 'nothing_to_move',
  });
  expect(await call('sweep', { to: stranger(9), request_id: 's' })).toMatchObject({
    duplicate: true,
    state: 'finalized',
  });
  expect(node.balanceOf(stranger(9))).toBeGreaterThan(27n * COIN);
});

test('--auto-compound and --auto-sweep-to', async () => {
  const node = new FakeNode();
  const pool = await fundedWallet(
    node,
    Array.from({ length: 40 }, () => COIN),
    { name: 'pool', autoCompound: 10 },
  );
  node.seal();
  await pool.turn();
  expect(Number((await pool.call('balance')).outputs)).toBeLessThanOrEqual(10);
  const hot = await fundedWallet(node, [3n * COIN, 4n * COIN], { name: 'hot', autoSweepTo: stranger(20) });
  node.seal();
  await hot.turn();
  expect(await hot.call('balance')).toMatchObject({ balance: '0.00000000' });
  expect(node.balanceOf(stranger(20))).toBeGreaterThan(6n * COIN);
});

test('a node that is away, behind, on another chain or greedy stops payments with its own code', async () => {
  const node = new FakeNode();
  const { call, refusal, turn, directory, wallet } = await fundedWallet(node, [5n * COIN]);
  const params = { to: stranger(1), amount: '1', request_id: 'n' };
  node.synced = false;
  await turn();
  expect(await refusal('send', params)).toMatchObject({ code: -32001, word: 'node_not_synced' });
  expect(await call('status')).toMatchObject({ node_synced: false, node_behind_by: 7 });
  node.synced = true;
  node.down = true;
  await turn();
  expect(await refusal('send', params)).toMatchObject({ code: -32001, word: 'node_unreachable' });
  expect(await call('balance')).toMatchObject({ balance: '5.00000000' });
  node.down = false;
  node.minFeePerMass = 101n;
  await turn();
  expect(await refusal('send', params)).toMatchObject({ code: -32000, word: 'fee_too_high' });
  await wallet.close();
  const other = await openTestWallet(new FakeNode('another'), { directory });
  await other.turn();
  expect(await other.refusal('send', params)).toMatchObject({ code: -32001, word: 'node_other_chain' });
});

test('bad input is refused with its field', async () => {
  const node = new FakeNode();
  const { refusal } = await fundedWallet(node, [5n * COIN]);
  const good = { to: stranger(1), amount: '1', request_id: 'bad' };
  const cases: [Record<string, unknown>, string, string][] = [
    [{ ...good, amount: '0' }, 'amount_invalid', 'amount'],
    [{ ...good, amount: '-1' }, 'amount_invalid', 'amount'],
    [{ ...good, amount: '1.123456789' }, 'amount_invalid', 'amount'],
    [{ ...good, amount: '1e3' }, 'amount_invalid', 'amount'],
    [{ ...good, amount: '200000001' }, 'amount_invalid', 'amount'],
    [{ ...good, amount: 1 }, 'params_invalid', 'amount'],
    [{ ...good, to: 'nonsense' }, 'address_invalid', 'to'],
    [{ ...good, to: formatAddress(new Uint8Array(49), 'mainnet') }, 'address_invalid', 'to'],
    [{ ...good, request_id: '' }, 'params_invalid', 'request_id'],
    [{ ...good, request_id: 'a\nb' }, 'params_invalid', 'request_id'],
    [{ ...good, request_id: 'x'.repeat(129) }, 'params_invalid', 'request_id'],
    [{ ...good, fee: '0' }, 'params_invalid', 'fee'],
    [{ to: good.to, amount: '1' }, 'params_invalid', 'request_id'],
    [{ ...good, payload_text: 'ä'.repeat(1500) }, 'payload_too_long', 'payload_text'],
  ];
  for (const [params, word, field] of cases)
    expect({ params, ...(await refusal('send', params)) }).toMatchObject({ code: -32602, word, data: { field } });
  expect(node.submissions).toBe(0);
});

test('a payment from one address spends its outputs alone, also when it merges first, and change returns to it', async () => {
  const node = new FakeNode();
  const { call, refusal, turn } = await fundedWallet(node, [50n * COIN], { answerMillis: 2_000 });
  const from = String((await call('new_address')).address);
  for (let i = 0; i < 12; i++) node.reward(from, COIN);
  node.seal();
  await turn();
  const pay = (amount: string, request_id: string) => ({ to: stranger(7), amount, request_id, from_address: from });
  expect(await refusal('send', pay('13', 'a'))).toMatchObject({
    word: 'insufficient_funds',
    data: { spendable: '12.00000000' },
  });
  expect(await refusal('send', { ...pay('1', 'b'), from_address: stranger(7) })).toMatchObject({
    word: 'address_not_mine',
    data: { field: 'from_address' },
  });
  expect(await call('send', pay('0.5', 'c'))).toMatchObject({ duplicate: false });
  node.seal();
  await turn();
  const merging = { ...pay('11', 'd'), compound_first: true };
  await refusal('send', merging);
  for (let round = 0; round < 3; round++) {
    node.seal();
    await turn();
    await turn();
  }
  expect(await call('send', merging)).toMatchObject({ duplicate: true, state: 'finalized' });
  expect(node.balanceOf(stranger(7))).toBe(1_150_000_000n);
  const outputs = (await call('outputs')).outputs as { address: string; amount: string }[];
  expect(outputs.filter(({ address }) => address !== from).map(({ amount }) => amount)).toEqual(['50.00000000']);
  const left = outputs.filter(({ address }) => address === from);
  expect(left.length).toBeGreaterThan(0);
  const fees =
    12n * COIN - 1_150_000_000n - left.reduce((sum, { amount }) => sum + BigInt(amount.replace('.', '')), 0n);
  expect(fees > 0n && fees < COIN / 10n).toBe(true);
  // What returned is no payment to anybody.
  const { entries } = (await call('history')) as { entries: { recipients: { to: string }[] }[] };
  expect(new Set(entries.flatMap(({ recipients }) => recipients.map(({ to }) => to)))).toEqual(new Set([stranger(7)]));
});
