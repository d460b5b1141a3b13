/**
 * A payment with svc-wasm and fetch, in Node or in a page. `pay` makes, signs, verifies and submits it, and returns the transaction's id. From a shell:
 *   node node_modules/svc-wasm/examples/payment.mjs http://127.0.0.1:28701 RECIPIENT 1.25 < words.txt
 */
import init, * as svc from '../svc_wasm.js';

const VALID_CUTS = 1000n;

async function answerOf(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return text;
}

/** The largest output of the address: the module selects no coins. */
async function largestOutput(api, address) {
  const { utxos } = JSON.parse(await answerOf(await fetch(`${api}/v1/address/${address}/utxos`)));
  const [first, ...others] = utxos;
  if (first === undefined) throw new Error(`${address} holds nothing`);
  return others.reduce((best, utxo) => (BigInt(utxo.amount) > BigInt(best.amount) ? utxo : best), first);
}

export async function pay(api, words, recipient, coins) {
  await init();
  const manifest = await answerOf(await fetch(`${api}/v1/transactions/manifest`));
  const { network, finalized_height: height } = JSON.parse(svc.validateManifest(manifest));
  const root = svc.WalletRoot.fromMnemonic(words, '', network);
  try {
    const publicKey = root.derivePublicKey(0, 'receive', 0);
    const address = svc.addressFromPublicKey(publicKey, network);
    const { outpoint, amount } = await largestOutput(api, address);
    const spent = { address, amount };
    const paid = BigInt(svc.parseAmount(coins));
    const bodyWith = (change) =>
      svc.encodeTransactionBody(
        JSON.stringify({
          valid_from_height: height,
          valid_until_height: String(BigInt(height) + VALID_CUTS),
          inputs: [{ transaction_id: outpoint.transaction_id, output_index: String(outpoint.output_index) }],
          outputs: [
            { address: recipient, amount: String(paid) },
            { address, amount: String(change) },
          ],
          payload_hex: '',
        }),
        manifest,
      );
    // The fee follows from the size, and the size does not depend on the change.
    const { minimum_fee: fee } = JSON.parse(svc.quoteTransaction(bodyWith(1n), manifest));
    const change = BigInt(amount) - paid - BigInt(fee);
    if (change < 1n) throw new Error('the output is too small for the amount and the fee');
    const body = bodyWith(change);
    const message = svc.spendMessage(body, 0, JSON.stringify(spent), manifest);
    const witness = svc.encodeWitness(publicKey, root.sign(0, 'receive', 0, message, true));
    const wire = svc.assembleTransaction(body, JSON.stringify([witness]), manifest);
    svc.verifyTransaction(wire, JSON.stringify([spent]), null, manifest);
    const submitted = await fetch(`${api}/v1/transactions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ api_version: 1, wire_hex: wire }),
    });
    return JSON.parse(await answerOf(submitted)).transaction_id;
  } finally {
    root.free();
  }
}

/** Whether this file was started from a shell, also through a link: `npm install FOLDER` makes one. */
async function isStarted() {
  if (typeof process === 'undefined' || !process.argv?.[1]) return false;
  const { realpathSync } = await import('node:fs');
  return realpathSync(process.argv[1]) === import.meta.filename;
}

async function fromShell([api, recipient, coins]) {
  if (coins === undefined) throw new Error('usage: node payment.mjs NODE RECIPIENT COINS < words.txt');
  let words = '';
  for await (const part of process.stdin) words += part;
  return await pay(api, words, recipient, coins);
}

if (await isStarted())
  try {
    console.log(await fromShell(process.argv.slice(2)));
  } catch (error) {
    console.error(`${error.code ?? ''} ${error.message} ${error.cause?.message ?? ''}`.trim());
    process.exitCode = 1;
  }
