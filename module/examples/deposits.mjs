/**
 * Deposits of an exchange with svc-wasm and fetch: an address for each customer, and every finalized payment to one of them exactly once. From a shell:
 *   node deposits.mjs address http://127.0.0.1:28701 17 < words.txt         # the address of customer 17
 *   node deposits.mjs credits http://127.0.0.1:28701 0 ADDRESS ADDRESS      # what they received in cuts above height 0
 */
import init, * as svc from '../svc_wasm.js';
import { manifestOf, post } from './node.mjs';
import { standardInput, startFromShell } from './shell.mjs';

const ADDRESSES_AT_ONCE = 64;

/** Account 0, receive, index = number of the customer. In production make the addresses beforehand, and leave the words on a machine without a network. */
export async function addressOf(api, customer, words) {
  const { network } = JSON.parse(svc.validateManifest(await manifestOf(api)));
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

await startFromShell(import.meta.filename, async ([act, api, ...words]) => {
  if (act === 'address') return await addressOf(api, words[0], await standardInput());
  if (act === 'credits') return JSON.stringify(await credits(api, Number(words[0]), words.slice(1)), null, 2);
  throw new Error('usage: node deposits.mjs address|credits ..., see the top of this file');
});
