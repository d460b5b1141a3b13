/**
 * A payment from a 2-of-3 or 3-of-5 address with svc-wasm and fetch, in Node or in a page. Each member runs it on its own machine; what goes between them is the descriptor and packages. NETWORK is mainnet, testnet,
 * testnet100 or development. From a shell:
 *   node multisig.mjs key NETWORK < words.txt                                    # the public key, for the other members
 *   node multisig.mjs descriptor NETWORK 2 KEY KEY KEY                           # JSON: `descriptor` (a text of its own, which is DESCRIPTOR below), `address`, `words`
 *   node multisig.mjs propose http://127.0.0.1:28701 DESCRIPTOR RECIPIENT 1.25   # a package without signatures
 *   node multisig.mjs review http://127.0.0.1:28701 PACKAGE
 *   node multisig.mjs sign http://127.0.0.1:28701 PACKAGE DIGEST < words.txt     # DIGEST: template_digest of the review
 *   node multisig.mjs send http://127.0.0.1:28701 PACKAGE PACKAGE
 */
import init, * as svc from '../svc_wasm.js';

/** People sign, and not at once. */
const VALID_CUTS = 34_560n;

async function answerOf(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return text;
}

async function manifestOf(api) {
  await init();
  return await answerOf(await fetch(`${api}/v1/transactions/manifest`));
}

/** The key of account 0, receive, 0. Use other words, or another index, for every group. */
function withRoot(words, network, use) {
  const root = svc.WalletRoot.fromMnemonic(words, '', network);
  try {
    return use(root);
  } finally {
    root.free();
  }
}

export async function keyOf(words, network) {
  await init();
  return withRoot(words, network, (root) => root.derivePublicKey(0, 'receive', 0));
}

const post = (url, body) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

export async function groupOf(threshold, keys, network) {
  await init();
  const descriptor = svc.createMultisigDescriptor(threshold, JSON.stringify(keys));
  const address = svc.multisigAddress(descriptor, network);
  return { descriptor, address, words: JSON.parse(svc.addressVerificationWords(address)) };
}

/** Spends the largest output of the address: the module selects no coins. */
export async function propose(api, descriptor, recipient, coins) {
  const manifest = await manifestOf(api);
  const { network, finalized_height: height } = JSON.parse(svc.validateManifest(manifest));
  const address = svc.multisigAddress(descriptor, network);
  const { utxos } = JSON.parse(await answerOf(await fetch(`${api}/v1/address/${address}/utxos`)));
  const [first, ...others] = utxos;
  if (first === undefined) throw new Error(`${address} holds nothing`);
  const { outpoint, amount } = others.reduce(
    (best, one) => (BigInt(one.amount) > BigInt(best.amount) ? one : best),
    first,
  );
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
  const form = JSON.parse(descriptor).threshold === '2' ? '2_of_3' : '3_of_5';
  const profiles = JSON.stringify([`multisig_inline_${form}`]);
  const { minimum_fee: fee } = JSON.parse(svc.quoteTransactionWithInputProfiles(bodyWith(1n), profiles, manifest));
  const change = BigInt(amount) - paid - BigInt(fee);
  if (change < 1n) throw new Error('the output is too small for the amount and the fee');
  return svc.createMultisigPackage(descriptor, bodyWith(change), JSON.stringify([amount]), manifest);
}

/** To be shown to the member before it signs. The fee follows from amounts that the proposer wrote: a node must say that they are true. */
export async function review(api, proposal) {
  const shown = JSON.parse(svc.reviewMultisigPackage(proposal, await manifestOf(api)));
  const outpoints = shown.inputs.map(({ transaction_id, output_index }) => ({
    transaction_id,
    output_index: Number(output_index),
  }));
  const { proofs } = JSON.parse(await answerOf(await post(`${api}/v1/proofs/utxos`, { outpoints })));
  for (const [i, { amount }] of shown.inputs.entries())
    if (proofs[i]?.output?.amount !== amount || proofs[i].output.address !== shown.address)
      throw new Error(`input ${i} does not hold what the package says`);
  return shown;
}

/** For the digest of the review that the member has seen. */
export async function sign(api, proposal, digest, words) {
  const manifest = await manifestOf(api);
  const { network } = JSON.parse(svc.validateManifest(manifest));
  await review(api, proposal);
  const messages = JSON.parse(svc.multisigPackageSigningMessages(proposal, digest, manifest));
  return withRoot(words, network, (root) => {
    const signatures = messages.map((message) => root.sign(0, 'receive', 0, message, true));
    const publicKey = root.derivePublicKey(0, 'receive', 0);
    return svc.addMultisigPackageSignatures(proposal, publicKey, JSON.stringify(signatures), manifest);
  });
}

/** Combines, completes, verifies and submits; returns the transaction's id. */
export async function send(api, packages) {
  const manifest = await manifestOf(api);
  const all = svc.combineMultisigPackages(JSON.stringify(packages), manifest);
  const wire = svc.completeMultisigPackage(all, manifest);
  const { address, inputs } = JSON.parse(svc.reviewMultisigPackage(all, manifest));
  svc.verifyTransaction(wire, JSON.stringify(inputs.map(({ amount }) => ({ address, amount }))), null, manifest);
  const submitted = await post(`${api}/v1/transactions`, { api_version: 1, wire_hex: wire });
  return JSON.parse(await answerOf(submitted)).transaction_id;
}

async function fromShell([act, ...words]) {
  let secret = '';
  if (act === 'key' || act === 'sign') for await (const chunk of process.stdin) secret += chunk;
  if (act === 'key') return await keyOf(secret.trim(), words[0]);
  if (act === 'descriptor') return JSON.stringify(await groupOf(words[1], words.slice(2), words[0]));
  if (act === 'propose') return await propose(...words);
  if (act === 'review') return JSON.stringify(await review(...words), null, 2);
  if (act === 'sign') return await sign(words[0], words[1], words[2], secret.trim());
  if (act === 'send') return await send(words[0], words.slice(1));
  throw new Error('usage: node multisig.mjs key|descriptor|propose|review|sign|send ..., see the top of this file');
}

/** Whether this file was started from a shell, also through a link: `npm install FOLDER` makes one. */
async function isStarted() {
  if (typeof process === 'undefined' || !process.argv?.[1]) return false;
  const { realpathSync } = await import('node:fs');
  return realpathSync(process.argv[1]) === import.meta.filename;
}

if (await isStarted())
  try {
    console.log(await fromShell(process.argv.slice(2)));
  } catch (error) {
    console.error(`${error.code ?? ''} ${error.message} ${error.cause?.message ?? ''}`.trim());
    process.exitCode = 1;
  }
