/**
 * Deposits of an exchange with svc-wasm and fetch: an address for each customer, and every finalized payment to one of them exactly once. From a shell:
 *   node deposits.mjs address http://127.0.0.1:28701 17 < words.txt         # the address of customer 17
 *   node deposits.mjs credits http://127.0.0.1:28701 0 ADDRESS ADDRESS      # what they received in cuts above height 0
 */
import init, * as svc from '../svc_wasm.js';

const ADDRESSES_AT_ONCE = 64;

async function answerOf(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return JSON.parse(text);
}

const post = async (url, body) =>
  await answerOf(
    await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  );

/** Account 0, receive, index = number of the customer. In production make the addresses beforehand, and leave the words on a machine without a network. */
export async function addressOf(api, customer, words) {
  await init();
  const { network } = await answerOf(await fetch(`${api}/v1/transactions/manifest`));
  const root = svc.WalletRoot.fromMnemonic(words, '', network);
  try {
    return svc.addressFromPublicKey(root.derivePublicKey(0, 'receive', customer), network);
  } finally {
    root.free();
  }
}

/**
 * What the addresses received in finalized cuts above `after`. Credit each entry under its key (`transaction`, `output`), so that a second reading credits nothing twice, and store `height` in the same
 * transaction of your database: it is `after` of the next call.
 */
export async function credits(api, after, addresses) {
  await init();
  const found = [];
  let height = Number.MAX_SAFE_INTEGER;
  for (let at = 0; at < addresses.length; at += ADDRESSES_AT_ONCE) {
    const some = addresses.slice(at, at + ADDRESSES_AT_ONCE);
    let cursor;
    do {
      const page = await post(`${api}/v1/address/changes`, {
        addresses: some,
        after_height: after,
        ...(cursor !== undefined && { cursor }),
      });
      for (const { kind, address, amount, outpoint, finalized_height } of page.changes)
        if (kind === 'received')
          found.push({
            address,
            coins: svc.formatAmount(amount),
            transaction: outpoint.transaction_id,
            output: outpoint.output_index,
            height: finalized_height,
          });
      cursor = page.next_cursor;
      // After the last page everything up to this height was listed.
      if (cursor === undefined) height = Math.min(height, page.indexed_height);
    } while (cursor !== undefined);
  }
  // What came above it is read by the next call.
  return { height, credits: found.filter((one) => one.height <= height) };
}

async function fromShell([act, api, ...words]) {
  const { readFileSync } = await import('node:fs');
  if (act === 'address') return await addressOf(api, words[0], readFileSync(0, 'utf8').trim());
  if (act === 'credits') return JSON.stringify(await credits(api, Number(words[0]), words.slice(1)), null, 2);
  throw new Error('address or credits');
}

if (typeof process !== 'undefined' && process.argv[1] === import.meta.filename)
  try {
    console.log(await fromShell(process.argv.slice(2)));
  } catch (error) {
    console.error(`${error.code ?? ''} ${error.message}`);
    process.exitCode = 1;
  }
