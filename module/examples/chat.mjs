/**
 * A chat between two addresses with svc-wasm and fetch (the rules: docs/protocol/messenger.md). Every step is a payment of one atom: wait until it is final before the next one. From a shell:
 *   node chat.mjs request http://127.0.0.1:28701 ADDRESS < words.txt        # asks an address for a chat
 *   node chat.mjs accept http://127.0.0.1:28701 ADDRESS < words.txt         # the other side; ADDRESS is that of the asker
 *   node chat.mjs send http://127.0.0.1:28701 ADDRESS "text" < words.txt
 *   node chat.mjs read http://127.0.0.1:28701 < words.txt                   # all chats of the wallet, as JSON
 */
import init, * as svc from '../svc_wasm.js';

const VALID_CUTS = 1000n;
/** A payload of the messenger begins with this byte. */
const MESSENGER = '02';

async function answerOf(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return text;
}

const get = async (url) => JSON.parse(await answerOf(await fetch(url)));

/** Pages of a list, one after the other. */
async function* pages(url) {
  for (let cursor; ; ) {
    const page = await get(cursor === undefined ? url : `${url}?cursor=${encodeURIComponent(cursor)}`);
    yield page;
    cursor = page.next_cursor;
    if (cursor === undefined) return;
  }
}

/** Opens the wallet of the words with its first address, and frees it afterwards. */
async function withWallet(api, words, use) {
  await init();
  const manifest = await answerOf(await fetch(`${api}/v1/transactions/manifest`));
  const { network, finalized_height: height } = JSON.parse(svc.validateManifest(manifest));
  const root = svc.WalletRoot.fromMnemonic(words, '', network);
  try {
    const publicKey = root.derivePublicKey(0, 'receive', 0);
    return await use({ api, manifest, height, root, publicKey, address: svc.addressFromPublicKey(publicKey, network) });
  } finally {
    root.free();
  }
}

/** Every messenger transaction that pays to the address or spends from it. */
async function entriesOf({ api, address }) {
  const heights = new Set();
  for await (const { events } of pages(`${api}/v1/address/${address}/history`))
    for (const event of events) heights.add(event.finalized_height);
  const entries = [];
  for (const height of heights)
    for await (const { transactions } of pages(`${api}/v1/cuts/${height}/transactions`))
      for (const { transaction_id, outcome, inputs, outputs, payload_hex } of transactions)
        if (outcome === 'finalized' && payload_hex.startsWith(MESSENGER) && outputs.length > 0)
          entries.push({
            transaction_id,
            height: String(height),
            senders: inputs.map((input) => input.address),
            recipient: outputs[0].address,
            amount: outputs[0].amount,
            payload_hex,
          });
  return entries;
}

const chatsOf = async (wallet) =>
  JSON.parse(wallet.root.messengerChats(JSON.stringify(await entriesOf(wallet)), JSON.stringify([wallet.address])));

async function chatWith(wallet, peer) {
  const chat = (await chatsOf(wallet)).find(({ peer_address }) => peer_address === peer);
  if (chat === undefined) throw new Error(`there is no chat with ${peer}`);
  return JSON.stringify(chat);
}

/** One atom to the other side, with the payload; the change returns. Returns the transaction's id. */
async function submit({ api, manifest, height, root, publicKey, address }, recipient, payload) {
  const { utxos } = await get(`${api}/v1/address/${address}/utxos`);
  const [first, ...others] = utxos;
  if (first === undefined) throw new Error(`${address} holds nothing: pay to it first`);
  const { outpoint, amount } = others.reduce((a, b) => (BigInt(b.amount) > BigInt(a.amount) ? b : a), first);
  const spent = JSON.stringify({ address, amount });
  const paid = JSON.parse(svc.messengerLimits()).amount;
  const bodyWith = (change) =>
    svc.encodeTransactionBody(
      JSON.stringify({
        valid_from_height: height,
        valid_until_height: String(BigInt(height) + VALID_CUTS),
        inputs: [{ transaction_id: outpoint.transaction_id, output_index: String(outpoint.output_index) }],
        // Output 0 pays one atom: without it this would be no messenger transaction.
        outputs: [
          { address: recipient, amount: paid },
          { address, amount: String(change) },
        ],
        payload_hex: payload,
      }),
      manifest,
    );
  const { minimum_fee: fee } = JSON.parse(svc.quoteTransaction(bodyWith(1n), manifest));
  const change = BigInt(amount) - BigInt(paid) - BigInt(fee);
  if (change < 1n) throw new Error(`the largest output of ${address} is too small for the fee: pay to it first`);
  const body = bodyWith(change);
  const signature = root.sign(0, 'receive', 0, svc.spendMessage(body, 0, spent, manifest), true);
  const witnesses = JSON.stringify([svc.encodeWitness(publicKey, signature)]);
  const wire = svc.assembleTransaction(body, witnesses, manifest);
  svc.verifyTransaction(wire, `[${spent}]`, null, manifest);
  const submitted = await fetch(`${api}/v1/transactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_version: 1, wire_hex: wire }),
  });
  return JSON.parse(await answerOf(submitted)).transaction_id;
}

export const request = (api, peer, words) =>
  withWallet(api, words, (wallet) => submit(wallet, peer, wallet.root.messengerRequest(wallet.address)));

export const accept = (api, peer, words) =>
  withWallet(api, words, async (wallet) =>
    submit(wallet, peer, wallet.root.messengerAccept(await chatWith(wallet, peer))),
  );

export const send = (api, peer, text, words) =>
  withWallet(api, words, async (wallet) =>
    submit(wallet, peer, wallet.root.messengerMessage(await chatWith(wallet, peer), text, Date.now())),
  );

/** All chats, again from the words and the chain alone. */
export const read = (api, words) => withWallet(api, words, chatsOf);

async function fromShell([act, api, peer, text]) {
  const { readFileSync } = await import('node:fs');
  const words = readFileSync(0, 'utf8').trim();
  if (act === 'request') return await request(api, peer, words);
  if (act === 'accept') return await accept(api, peer, words);
  if (act === 'send') return await send(api, peer, text, words);
  if (act === 'read') return JSON.stringify(await read(api, words), null, 2);
  throw new Error('request, accept, send or read');
}

if (typeof process !== 'undefined' && process.argv[1] === import.meta.filename)
  try {
    console.log(await fromShell(process.argv.slice(2)));
  } catch (error) {
    console.error(`${error.code ?? ''} ${error.message}`);
    process.exitCode = 1;
  }
