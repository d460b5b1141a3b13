/** Wallets of the module that chat over a made-up chain: each entry is a messenger transaction as `messengerChats` takes it. */
import { randomBytes } from 'node:crypto';
import type { WalletRoot } from '../../module/package/index.d.ts';
import type { Module } from './load.ts';

export type Entry = {
  readonly transaction_id: string;
  readonly height: string;
  readonly senders: readonly string[];
  readonly recipient: string;
  readonly amount: string;
  readonly payload_hex: string;
};

export type ChatDocument = {
  readonly chat: string;
  readonly role: string;
  readonly state: string;
  readonly own_address: string;
  readonly peer_address: string;
  readonly request_transaction: string;
  readonly requester_messenger_id: string;
  readonly messages: readonly { own: boolean; text: string; transaction_id: string; sent_millis: string }[];
};

export class Party {
  readonly entropy: string;
  readonly root: WalletRoot;
  readonly address: string;

  constructor(module: Module, entropy = randomBytes(32).toString('hex')) {
    this.entropy = entropy;
    this.root = module.WalletRoot.fromEntropy(entropy, '', 'development');
    this.address = module.addressFromPublicKey(this.root.derivePublicKey(0, 'receive', 0), 'development');
  }

  chats(entries: readonly Entry[], addresses: readonly string[] = [this.address]): ChatDocument[] {
    return JSON.parse(this.root.messengerChats(JSON.stringify(entries), JSON.stringify(addresses))) as ChatDocument[];
  }

  /** The chat with somebody after these entries. */
  with(peer: Party, entries: readonly Entry[]): string {
    return JSON.stringify(this.chats(entries).find(({ peer_address }) => peer_address === peer.address));
  }
}

let height = 0;

/** The next finalized transaction. */
export function entryOf(from: Party, to: Party, payload: string, more: Partial<Entry> = {}): Entry {
  height++;
  return {
    transaction_id: randomBytes(48).toString('hex'),
    height: String(height),
    senders: [from.address],
    recipient: to.address,
    amount: '1',
    payload_hex: payload,
    ...more,
  };
}

/** A request and its accept. */
export function acquaint(a: Party, b: Party): Entry[] {
  const entries = [entryOf(a, b, a.root.messengerRequest(a.address))];
  entries.push(entryOf(b, a, b.root.messengerAccept(b.with(a, entries))));
  return entries;
}

export const say = (from: Party, to: Party, entries: readonly Entry[], text: string, sent = height): Entry =>
  entryOf(from, to, from.root.messengerMessage(from.with(to, entries), text, sent));

/** What was said, in order: `>` by this party, `<` by the other. */
export const heard = (party: Party, entries: readonly Entry[], peer: Party): string[] =>
  party
    .chats(entries)
    .filter(({ peer_address }) => peer_address === peer.address)
    .flatMap(({ messages }) => messages.map(({ own, text }) => `${own ? '>' : '<'} ${text}`));
