/** Requests to a node's API, the choice of the outputs that a transaction spends, and the body of a payment. Used by the other examples. */
import init, * as svc from '../svc_wasm.js';

async function answerOf(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return text;
}

const get = async (url) => JSON.parse(await answerOf(await fetch(url)));

export async function post(url, body) {
  const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  return JSON.parse(await answerOf(await fetch(url, options)));
}

/** Fees follow from what the node asks for, and a node can ask for anything: more than this is refused. The wallet has the same limit. */
const MAX_FEE_PER_MASS = 100n;

/** Loads the module as well. The text as it came: every call about transactions takes it. */
export async function manifestOf(api) {
  await init();
  const manifest = await answerOf(await fetch(`${api}/v1/transactions/manifest`));
  const { min_fee_per_mass: asked } = JSON.parse(svc.validateManifest(manifest));
  if (BigInt(asked) > MAX_FEE_PER_MASS)
    throw new Error(
      `the node asks for ${asked} atoms per mass, and at most ${MAX_FEE_PER_MASS} are paid: check the node`,
    );
  return manifest;
}

/** Returns the transaction's id. */
export const submit = async (api, wire) =>
  (await post(`${api}/v1/transactions`, { api_version: 1, wire_hex: wire })).transaction_id;

/** Pages of a list, one after the other. */
export async function* pages(url) {
  for (let cursor; ; ) {
    const page = await get(cursor === undefined ? url : `${url}?cursor=${encodeURIComponent(cursor)}`);
    yield page;
    cursor = page.next_cursor;
    if (cursor === undefined) return;
  }
}

export const sumOf = (outputs) => outputs.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
const byAmount = (a, b) => Number(BigInt(b.amount) - BigInt(a.amount));
const coins = (atoms) => svc.formatAmount(String(atoms));

const nameOf = ({ outpoint: { transaction_id, output_index } }) => `${transaction_id}:${output_index}`;

/** Outputs of the address that a waiting transaction spends: until it is final or void, the node lists them as unspent and refuses another that spends them. */
async function waitingOf(api, address) {
  const spent = new Set();
  for (let cursor; ; ) {
    const body = { addresses: [address], ...(cursor === undefined ? {} : { cursor }) };
    const page = await post(`${api}/v1/mempool/pending`, body);
    for (const payment of page.pending) if (payment.direction === 'outgoing') spent.add(nameOf(payment));
    cursor = page.next_cursor;
    if (cursor === undefined) return spent;
  }
}

/**
 * As few outputs of the address as pay `paid`, the fee (`feeOf(outputs)`) and a change of at least one atom. The node lists outputs by their ids, not by amount: pages are read until the `most` largest of those
 * read so far are enough. What a waiting transaction spends is left out. `first`: an output of the address that is spent in any case.
 */
export async function outputsFor(api, address, { most, paid, feeOf, first }) {
  const neededFor = (outputs) => paid + feeOf(outputs) + 1n;
  const isFirst = (output) => first !== undefined && nameOf(output) === nameOf(first);
  const waiting = await waitingOf(api, address);
  const before = first === undefined ? [] : [first];
  let largest = [];
  let held = 0n;
  for await (const page of pages(`${api}/v1/address/${address}/utxos`)) {
    const utxos = page.utxos.filter((output) => !waiting.has(nameOf(output)));
    held += sumOf(utxos);
    const others = [...largest, ...utxos].filter((output) => !isFirst(output)).sort(byAmount);
    largest = [...before, ...others].slice(0, most);
    for (let count = 1; count <= largest.length; count++) {
      const outputs = largest.slice(0, count);
      if (sumOf(outputs) >= neededFor(outputs)) return outputs;
    }
  }
  const wait =
    waiting.size === 0
      ? ''
      : `; ${waiting.size} outputs are spent by transactions that wait: try again when these are final`;
  if (largest.length === 0) throw new Error(`${address} holds nothing: pay to it first${wait}`);
  const needed = neededFor(largest);
  if (held < needed)
    throw new Error(`${address} holds ${coins(held)} coins, and ${coins(needed)} are needed with the fee${wait}`);
  const sum = sumOf(largest);
  const merged = sum - (needed - paid);
  throw new Error(
    `a transaction spends at most ${most} outputs, and the ${most} largest of ${address} hold ${coins(sum)} of the ${coins(needed)} coins that are needed with the fee; ${
      merged > 0n
        ? `merge them first: pay ${coins(merged)} coins to ${address} itself, and wait until that is final`
        : 'spending them costs more than they hold: pay to it first'
    }`,
  );
}

/** The body of a transaction that spends `outputs` of `address`: `paid` atoms to `recipient`, and `change` back. It is valid for `cuts` cuts. */
export function paymentBody(manifest, { address, outputs, recipient, paid, change, cuts, payload = '' }) {
  const { finalized_height: height } = JSON.parse(svc.validateManifest(manifest));
  const body = {
    valid_from_height: height,
    valid_until_height: String(BigInt(height) + cuts),
    inputs: outputs.map(({ outpoint: { transaction_id, output_index } }) => ({
      transaction_id,
      output_index: String(output_index),
    })),
    outputs: [
      { address: recipient, amount: String(paid) },
      { address, amount: String(change) },
    ],
    payload_hex: payload,
  };
  return svc.encodeTransactionBody(JSON.stringify(body), manifest);
}
