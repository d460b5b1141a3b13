/**
 * A payment with svc-wasm and fetch, in Node or in a page. `pay` makes, signs, verifies and submits it, and returns the transaction's id. From a shell:
 *   node node_modules/svc-wasm/examples/payment.mjs http://127.0.0.1:28701 RECIPIENT 1.25 < words.txt
 */
import * as svc from '../svc_wasm.js';
import { manifestOf, outputsFor, paymentBody, submit, sumOf } from './node.mjs';
import { standardInput, startFromShell } from './shell.mjs';

const VALID_CUTS = 1000n;

/** Opens the wallet of the words with its first address, and frees it afterwards. */
export async function withWallet(api, words, use) {
  const manifest = await manifestOf(api);
  const { network } = JSON.parse(svc.validateManifest(manifest));
  const root = svc.WalletRoot.fromMnemonic(words, '', network);
  try {
    const publicKey = root.derivePublicKey(0, 'receive', 0);
    return await use({ api, manifest, root, publicKey, address: svc.addressFromPublicKey(publicKey, network) });
  } finally {
    root.free();
  }
}

/** Pays from the first address, to which the change returns. The module selects no coins: `outputsFor` does. */
export async function spend({ api, manifest, root, publicKey, address }, recipient, paid, payload = '') {
  const { max_inputs: most } = JSON.parse(svc.validateManifest(manifest));
  const bodyWith = (outputs, change) =>
    paymentBody(manifest, { address, outputs, recipient, paid, change, cuts: VALID_CUTS, payload });
  // The fee follows from the size, and the size does not depend on the change.
  const feeOf = (outputs) => BigInt(JSON.parse(svc.quoteTransaction(bodyWith(outputs, 1n), manifest)).minimum_fee);
  const outputs = await outputsFor(api, address, { most: Number(most), paid, feeOf });
  const body = bodyWith(outputs, sumOf(outputs) - paid - feeOf(outputs));
  const spent = outputs.map(({ amount }) => ({ address, amount }));
  const witnesses = spent.map((one, i) => {
    const message = svc.spendMessage(body, i, JSON.stringify(one), manifest);
    return svc.encodeWitness(publicKey, root.sign(0, 'receive', 0, message, true));
  });
  const wire = svc.assembleTransaction(body, JSON.stringify(witnesses), manifest);
  svc.verifyTransaction(wire, JSON.stringify(spent), null, manifest);
  return await submit(api, wire);
}

export const pay = (api, words, recipient, coins) =>
  withWallet(api, words, (wallet) => spend(wallet, recipient, BigInt(svc.parseAmount(coins))));

await startFromShell(import.meta.filename, async ([api, recipient, coins]) => {
  if (coins === undefined) throw new Error('usage: node payment.mjs NODE RECIPIENT COINS < words.txt');
  return await pay(api, await standardInput(), recipient, coins);
});
