/** Methods of the groups Wallet and Addresses. */
import { parseAddress } from '../../protocol/address.ts';
import { formatCoins, parseCoins } from '../../protocol/amount.ts';
import { object, optional } from '../../protocol/api/schema.ts';
import { attempt } from '../../protocol/errors.ts';
import { addressVerificationWords } from '../../protocol/transactions/address-proof.ts';
import { version } from '../../runtime/program.ts';
import { nextAddress, unusedAddress } from '../state/address-book.ts';
import type { AddressRecord } from '../state/records.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import { addressDocument, outgoingDocument } from './documents.ts';
import {
  addressField,
  cursorField,
  labelField,
  limitField,
  method,
  ownAddress,
  refuseWhileRescanning,
} from './method.ts';
import { groupBalance, groupDocument, watchedGroup } from './multisig-documents.ts';

/** The node answers, but its chain is not the one that was read: a rescan is the remedy. */
const RESCAN_REPAIRS: ReadonlySet<string> = new Set(['chain_rolled_back', 'node_behind_wallet']);

export async function giveAddress(wallet: Wallet, label: string): Promise<AddressRecord> {
  let next = nextAddress(wallet.book);
  for (; next === undefined; next = nextAddress(wallet.book)) await wallet.follower.extendAddresses();
  const record = { ...next, given: true, label, createdMillis: wallet.now() };
  await wallet.journal.commit({ addresses: [record] }, true);
  await wallet.follower.extendAddresses();
  return record;
}

export const walletMethods = {
  status: method('Wallet', 'State of the wallet and of its node', object({}), (wallet) => {
    const { node, rescanning, caughtUp } = wallet.follower;
    const { meta } = wallet.book;
    return {
      version: version(),
      network: wallet.network,
      chain_id: meta.chainId,
      request_table: meta.requestTable,
      indexed_height: meta.indexedHeight,
      caught_up: caughtUp && node.trouble === null && wallet.ownSpends.looked,
      rescanning,
      payments_stopped: meta.stopped?.reason ?? null,
      payments_stopped_message: meta.stopped?.message ?? null,
      node_reachable: node.trouble === null,
      node_trouble: node.trouble?.code ?? null,
      node_synced: node.synced,
      node_behind_by: node.behindBy,
      node_finalized_height: node.finalizedHeight,
      confirmations: wallet.confirmations,
      validity_cuts: wallet.validityCuts,
      addresses: wallet.book.branches.receive.filter((record) => record.given).length,
      outputs: wallet.book.outputs.size,
      pending_transactions: wallet.book.open.size,
    };
  }),
  balance: method(
    'Wallet',
    'What the wallet holds, in finalized outputs',
    object({ address: optional(addressField) }),
    async (wallet, { address }) => {
      const group = address === undefined ? undefined : wallet.multisig.watched(address);
      if (group !== undefined) return await groupBalance(wallet, group);
      refuseWhileRescanning(wallet);
      const { book } = wallet;
      const incoming = wallet.incoming.list().filter((one) => address === undefined || one.address === address);
      const unconfirmed = incoming.reduce((total, { transaction, output, amount }) => {
        const known = book.outputs.has(`${transaction}:${output}`);
        return known ? total : total + parseCoins(amount);
      }, 0n);
      let [total, spendable, outputs] = [book.total, book.available.total, book.outputs.size];
      if (address !== undefined) {
        ownAddress(wallet, address, 'address');
        [total, spendable, outputs] = [0n, 0n, 0];
        for (const output of book.outputs.values()) {
          if (output.address !== address) continue;
          outputs++;
          total += output.amount;
          if (book.holderOf(output.key) === undefined) spendable += output.amount;
        }
      }
      return {
        balance: formatCoins(total),
        spendable: formatCoins(spendable),
        reserved: formatCoins(total - spendable),
        unconfirmed: formatCoins(unconfirmed),
        outputs,
        indexed_height: book.meta.indexedHeight,
      };
    },
  ),
  pending: method('Wallet', 'Outgoing transactions and requests whose fate is not final', object({}), (wallet) => ({
    transactions: [...wallet.book.open.values()].map(outgoingDocument),
    merging: [...wallet.outgoing.mergingRequests].map(({ requestId, kind, recipients, createdMillis }) => ({
      request_id: requestId,
      kind,
      recipients: recipients.map(({ to, amount }) => ({ to, amount: formatCoins(amount) })),
      created_millis: createdMillis,
    })),
    indexed_height: wallet.book.meta.indexedHeight,
  })),
  rescan: method('Wallet', 'Reads the whole history again; requests and labels stay', object({}), (wallet) => {
    refuseWhileRescanning(wallet);
    const { trouble } = wallet.follower.node;
    if (trouble !== null && !RESCAN_REPAIRS.has(trouble.code)) throw trouble;
    wallet.follower.rescan().catch((error) => wallet.log.error('rescan failed', { error }));
    return { rescanning: true, request_table: wallet.book.meta.requestTable };
  }),
  new_address: method(
    'Addresses',
    'A fresh address',
    object({ label: optional(labelField) }),
    async (wallet, { label }) => addressDocument(await giveAddress(wallet, label ?? '')),
  ),
  receive: method(
    'Addresses',
    'An address that has not been paid yet, the same one until it is; or a multisig address that is watched',
    object({ address: optional(addressField) }),
    async (wallet, { address }) => {
      if (address !== undefined) return groupDocument(wallet, watchedGroup(wallet, address));
      return addressDocument(unusedAddress(wallet.book) ?? (await giveAddress(wallet, '')));
    },
  ),
  addresses: method(
    'Addresses',
    'Addresses that were handed out or paid, oldest first',
    object({ cursor: optional(cursorField), limit: optional(limitField(100, 1000)) }),
    (wallet, { cursor, limit = 100 }) => {
      const from = cursor === undefined ? 0 : Number(cursor);
      if (!Number.isSafeInteger(from) || from < 0)
        throw new WalletError('params_invalid', 'cursor is not from this list', { field: 'cursor' });
      const given = wallet.book.branches.receive.filter((record) => record.given);
      const page = given.filter(({ index }) => index >= from).slice(0, limit);
      const next = given.find(({ index }) => index > (page.at(-1)?.index ?? Number.MAX_SAFE_INTEGER));
      return {
        addresses: page.map(addressDocument),
        ...(next === undefined ? {} : { next_cursor: String(next.index) }),
      };
    },
  ),
  set_label: method(
    'Addresses',
    'Names an address of this wallet',
    object({ address: addressField, label: labelField }),
    async (wallet, { address, label }) => {
      const record = { ...ownAddress(wallet, address, 'address'), label };
      await wallet.journal.commit({ addresses: [record] }, true);
      return addressDocument(record);
    },
  ),
  validate_address: method(
    'Addresses',
    'Whether a text is an address of this network, and its verification words',
    object({ address: addressField }),
    (wallet, { address }) => {
      const parsed = attempt(() => parseAddress(address, wallet.network));
      if (!parsed.ok) return { valid: false, reason: parsed.error.code, message: parsed.error.message };
      return {
        valid: true,
        address,
        network: parsed.value.network,
        kind: parsed.value.kind,
        mine: wallet.book.address(address) !== undefined,
        verification_words: addressVerificationWords(parsed.value.payload),
      };
    },
  ),
};
