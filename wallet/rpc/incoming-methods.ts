/** Methods of the group Incoming. */
import { integer, object, optional, text } from '../../protocol/api/schema.ts';
import { asOf } from '../state/records.ts';
import { WalletError } from '../wallet-error.ts';
import { historyDocument, outgoingDocument, outputDocument, paymentsOf } from './documents.ts';
import { addressField, cursorField, limitField, method, ownAddress, refuseWhileRescanning } from './method.ts';
import { groupHistory, watchedGroup } from './multisig-documents.ts';

const identifier = text({ pattern: '^[0-9a-f]{96}$' });

export const incomingMethods = {
  received: method(
    'Incoming',
    'Every payment finalized after a height, oldest first: the way to catch up',
    object({ since_height: integer(), limit: optional(limitField(1000, 10_000)) }),
    async (wallet, { since_height, limit = 1000 }) => {
      await wallet.journal.settled();
      refuseWhileRescanning(wallet);
      const indexed = wallet.book.meta.indexedHeight;
      let entries = await wallet.store.historyAfter(since_height, limit + 1, indexed);
      let through = indexed;
      if (entries.length > limit) {
        // A page ends where a cut ends, so that indexed_height always means that everything up to it was listed.
        const last = entries.at(-1)?.height as number;
        const whole = entries.filter(({ height }) => height < last);
        if (whole.length > 0) [entries, through] = [whole, last - 1];
        else [entries, through] = [await wallet.store.historyAfter(last - 1, Number.MAX_SAFE_INTEGER, last), last];
      }
      refuseWhileRescanning(wallet);
      return {
        payments: entries.flatMap((entry) => paymentsOf(entry, wallet.book)),
        indexed_height: through,
        more: through < indexed,
      };
    },
  ),
  incoming: method('Incoming', 'Payments on their way that are not final', object({}), (wallet) => ({
    payments: wallet.incoming
      .list()
      .filter(({ transaction, output }) => !wallet.book.outputs.has(`${transaction}:${output}`)),
    indexed_height: wallet.book.meta.indexedHeight,
  })),
  outputs: method(
    'Incoming',
    'Unspent outputs, smallest first',
    object({
      address: optional(addressField),
      cursor: optional(cursorField),
      limit: optional(limitField(100, 1000)),
    }),
    (wallet, { address, cursor, limit = 100 }) => {
      const { book } = wallet;
      if (address !== undefined) ownAddress(wallet, address, 'address');
      const all = [...book.outputs.values()]
        .filter((output) => address === undefined || output.address === address)
        .sort((a, b) => (a.key < b.key ? -1 : 1));
      const from = cursor === undefined ? all : all.filter(({ key }) => key > cursor);
      const page = from.slice(0, limit);
      return {
        outputs: page.map((output) => outputDocument(output, book.holderOf(output.key))),
        indexed_height: book.meta.indexedHeight,
        ...(from.length > limit ? { next_cursor: page.at(-1)?.key } : {}),
      };
    },
  ),
  history: method(
    'Incoming',
    'Everything that moved money of this wallet, or of a multisig address that is watched, newest first',
    object({
      address: optional(addressField),
      cursor: optional(cursorField),
      limit: optional(limitField(100, 1000)),
    }),
    async (wallet, { address, cursor, limit = 100 }) => {
      if (address !== undefined) return await groupHistory(wallet, watchedGroup(wallet, address), cursor, limit);
      await wallet.journal.settled();
      // Its callers conclude from what is not in it: a history that is being read again lacks payments that were made.
      refuseWhileRescanning(wallet);
      const { entries, next } = await wallet.store.historyBefore(cursor, limit);
      return {
        entries: entries.map(historyDocument),
        indexed_height: wallet.book.meta.indexedHeight,
        ...(next === undefined ? {} : { next_cursor: next }),
      };
    },
  ),
  transaction: method(
    'Incoming',
    'What this wallet knows of a transaction',
    object({ transaction: identifier }),
    async (wallet, { transaction }) => {
      await wallet.journal.settled();
      const { book, store } = wallet;
      const { soundHeight } = wallet.follower;
      const sent = book.open.get(transaction) ?? (await store.outgoing(transaction));
      const found = await store.historyOf(transaction);
      // Above this height the node has another chain than the one that was read, or none.
      const entry = (found?.height ?? 0) > soundHeight ? undefined : found;
      const incoming = wallet.incoming.list().filter((one) => one.transaction === transaction);
      if (sent === undefined && found === undefined && incoming.length === 0)
        throw new WalletError('not_found', 'this wallet does not know that transaction');
      return {
        transaction,
        finalized_height: entry?.height ?? null,
        confirmations: entry === undefined ? 0 : book.meta.indexedHeight - entry.height + 1,
        outgoing: sent === undefined ? null : outgoingDocument(asOf(sent, soundHeight)),
        history: entry === undefined ? null : historyDocument(entry),
        payments: entry === undefined ? [] : paymentsOf(entry, book),
        incoming,
      };
    },
  ),
};
