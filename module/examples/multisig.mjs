/**
 * A payment from a 2-of-3 or 3-of-5 address with svc-wasm and fetch, in Node or in a page. Each member runs it on its own machine; what goes between them is the descriptor and packages. NETWORK is mainnet, testnet,
 * testnet100 or development. From a shell:
 *   node multisig.mjs key NETWORK < words.txt                                    # the public key, for the other members
 *   node multisig.mjs descriptor NETWORK 2 KEY KEY KEY                           # JSON: `descriptor` (a text of its own, which is DESCRIPTOR below), `address`
 *   node multisig.mjs propose http://127.0.0.1:28701 DESCRIPTOR RECIPIENT 1.25   # a package without signatures
 *   node multisig.mjs propose http://127.0.0.1:28701 DESCRIPTOR RECIPIENT 1.50 PACKAGE   # in place of PACKAGE: at most one of both can be paid
 *   node multisig.mjs review http://127.0.0.1:28701 PACKAGE
 *   node multisig.mjs sign http://127.0.0.1:28701 PACKAGE DIGEST < words.txt     # DIGEST: template_digest of the review
 *   node multisig.mjs send http://127.0.0.1:28701 PACKAGE PACKAGE
 */
import init, * as svc from '../svc_wasm.js';
import { manifestOf, outputsFor, paymentBody, post, submit, sumOf } from './node.mjs';
import { standardInput, startFromShell } from './shell.mjs';

/** People sign, and not at once. */
const VALID_CUTS = 34_560n;

/** How many outputs of an address of this form fit into a transaction with two outputs and no payload. */
const FORMS = { 2: { form: '2_of_3', most: 5 }, 3: { form: '3_of_5', most: 3 } };

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

export async function groupOf(threshold, keys, network) {
  await init();
  const descriptor = svc.createMultisigDescriptor(threshold, JSON.stringify(keys));
  return { descriptor, address: svc.multisigAddress(descriptor, network) };
}

/** The first output that an earlier package spends. A package that spends it too can never be paid beside that one. */
async function firstOutputOf(api, earlier, address) {
  const shown = await review(api, earlier);
  if (shown.address !== address) throw new Error('the package to replace is of another address');
  const [{ transaction_id, output_index, amount }] = shown.inputs;
  return { outpoint: { transaction_id, output_index: Number(output_index) }, amount };
}

/** The module selects no coins: `outputsFor` does. `replaces`: an earlier package that has not been paid. */
export async function propose(api, descriptor, recipient, coins, replaces) {
  const manifest = await manifestOf(api);
  const { network } = JSON.parse(svc.validateManifest(manifest));
  const address = svc.multisigAddress(descriptor, network);
  const { form, most } = FORMS[JSON.parse(descriptor).threshold];
  const paid = BigInt(svc.parseAmount(coins));
  const bodyWith = (outputs, change) =>
    paymentBody(manifest, { address, outputs, recipient, paid, change, cuts: VALID_CUTS });
  const feeOf = (outputs) => {
    const profiles = JSON.stringify(outputs.map(() => `multisig_inline_${form}`));
    const quote = svc.quoteTransactionWithInputProfiles(bodyWith(outputs, 1n), profiles, manifest);
    return BigInt(JSON.parse(quote).minimum_fee);
  };
  const first = replaces === undefined ? undefined : await firstOutputOf(api, replaces, address);
  const outputs = await outputsFor(api, address, { most, paid, feeOf, first });
  const body = bodyWith(outputs, sumOf(outputs) - paid - feeOf(outputs));
  return svc.createMultisigPackage(descriptor, body, JSON.stringify(outputs.map(({ amount }) => amount)), manifest);
}

/** To be shown to the member before it signs. The fee follows from amounts that the proposer wrote: a node must say that they are true. */
export async function review(api, proposal) {
  const shown = JSON.parse(svc.reviewMultisigPackage(proposal, await manifestOf(api)));
  const outpoints = shown.inputs.map(({ transaction_id, output_index }) => ({
    transaction_id,
    output_index: Number(output_index),
  }));
  const { proofs } = await post(`${api}/v1/proofs/utxos`, { outpoints });
  for (const [i, { amount }] of shown.inputs.entries())
    if (proofs[i]?.output?.amount !== amount || proofs[i].output.address !== shown.address)
      throw new Error(
        proofs[i]?.output === null
          ? `input ${i} is spent, or never was: look in the history of ${shown.address} which transaction spent it`
          : `input ${i} does not hold what the package says`,
      );
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
  // A package that the members signed one after the other needs no combining.
  const all = packages.length === 1 ? packages[0] : svc.combineMultisigPackages(JSON.stringify(packages), manifest);
  const wire = svc.completeMultisigPackage(all, manifest);
  const { address, inputs } = JSON.parse(svc.reviewMultisigPackage(all, manifest));
  svc.verifyTransaction(wire, JSON.stringify(inputs.map(({ amount }) => ({ address, amount }))), null, manifest);
  return await submit(api, wire);
}

await startFromShell(import.meta.filename, async ([act, ...words]) => {
  if (act === 'key') return await keyOf(await standardInput(), words[0]);
  if (act === 'descriptor') return JSON.stringify(await groupOf(words[1], words.slice(2), words[0]));
  if (act === 'propose') return await propose(...words);
  if (act === 'review') return JSON.stringify(await review(...words), null, 2);
  if (act === 'sign') return await sign(words[0], words[1], words[2], await standardInput());
  if (act === 'send') return await send(words[0], words.slice(1));
  throw new Error('usage: node multisig.mjs key|descriptor|propose|review|sign|send ..., see the top of this file');
});
