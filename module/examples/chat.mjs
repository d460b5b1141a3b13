/**
 * A chat between two addresses with svc-wasm and fetch (the rules: docs/protocol/messenger.md). Every step is a payment of one atom: wait until it is final before the next one. From a shell:
 *   node chat.mjs request http://127.0.0.1:28701 ADDRESS < words.txt        # asks an address for a chat
 *   node chat.mjs accept http://127.0.0.1:28701 ADDRESS < words.txt         # the other side; ADDRESS is that of the asker
 *   node chat.mjs send http://127.0.0.1:28701 ADDRESS "text" < words.txt
 *   node chat.mjs read http://127.0.0.1:28701 < words.txt                   # all chats of the wallet, as JSON
 */
import * as svc from '../svc_wasm.js';
import { chatsOfAll } from './chat-parts.mjs';
import { pages } from './node.mjs';
import { spend, withWallet } from './payment.mjs';
import { standardInput, startFromShell } from './shell.mjs';

/** A payload of the messenger begins with this byte. */
const MESSENGER = '02';

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
  // The chats of others in the same cuts are left out.
  return entries.filter(({ senders, recipient }) => recipient === address || senders.includes(address));
}

const chatsOf = async (wallet) => chatsOfAll(wallet.root, await entriesOf(wallet), [wallet.address]);

/** The newest chat with the peer of which `isWanted` is true, or the newest of all: the module then says what is wrong with it. Both sides may have asked, so there can be several. */
async function chatWith(wallet, peer, isWanted) {
  const chats = (await chatsOf(wallet)).filter(({ peer_address }) => peer_address === peer);
  const chat = chats.filter(isWanted).at(-1) ?? chats.at(-1);
  if (chat === undefined) throw new Error(`there is no chat with ${peer}`);
  return JSON.stringify(chat);
}

const isIncoming = ({ role, state }) => role === 'accepter' && state === 'requested';
const isAccepted = ({ state }) => state === 'accepted';

/** One atom to the other side, as output 0, with the payload: without it this would be no messenger transaction. */
const submit = (wallet, peer, payload) =>
  spend(wallet, peer, BigInt(JSON.parse(svc.messengerLimits()).amount), payload);

export const request = (api, peer, words) =>
  withWallet(api, words, (wallet) => submit(wallet, peer, wallet.root.messengerRequest(wallet.address)));

export const accept = (api, peer, words) =>
  withWallet(api, words, async (wallet) =>
    submit(wallet, peer, wallet.root.messengerAccept(await chatWith(wallet, peer, isIncoming))),
  );

export const send = (api, peer, text, words) =>
  withWallet(api, words, async (wallet) =>
    submit(wallet, peer, wallet.root.messengerMessage(await chatWith(wallet, peer, isAccepted), text, Date.now())),
  );

/** All chats, again from the words and the chain alone. */
export const read = (api, words) => withWallet(api, words, chatsOf);

await startFromShell(import.meta.filename, async ([act, api, peer, text]) => {
  if (act === 'request') return await request(api, peer, await standardInput());
  if (act === 'accept') return await accept(api, peer, await standardInput());
  if (act === 'send') return await send(api, peer, text, await standardInput());
  if (act === 'read') return JSON.stringify(await read(api, await standardInput()), null, 2);
  throw new Error('usage: node chat.mjs request|accept|send|read ..., see the top of this file');
});
