/**
 * Replaces an earlier package (docs/wallet.md, Multisig). The new one spends the first input of the old one as its own
 * first input, so the ledger executes at most one of them. The first input stays the same through any number of
 * replacements, so at most one of all is paid. If an input of the old package is already spent, it can never be sent:
 * the transaction that spent it may be the wanted payment, so it is reported, and nothing is proposed.
 */
import { formatAddress } from '../../protocol/address.ts';
import { equalBytes, toHex } from '../../protocol/bytes.ts';
import type { MultisigPackage } from '../../protocol/transactions/multisig-package.ts';
import type { Outpoint } from '../../protocol/transactions/transaction.ts';
import type { NodeClient } from '../chain/node-link.ts';
import { outputKey } from '../state/records.ts';
import { WalletError } from '../wallet-error.ts';
import { type GroupOutput, mostOfPart } from './proposing.ts';

export type GroupOutputs = {
  /** Outputs that no waiting transaction spends. */
  readonly free: readonly GroupOutput[];
  /** By the key of an output, the waiting transaction that spends it. */
  readonly waiting: ReadonlyMap<string, string>;
};

const keyOfOutpoint = ({ transactionId, outputIndex }: Outpoint): string =>
  outputKey(toHex(transactionId), outputIndex);

/** How much of the newest history is searched: 10,000 entries. */
const MOST_PAGES = 40;
const PAGE = 256;

/** The transaction that spent an output, or null where the history does not show it. */
async function spenderOf(
  client: Pick<NodeClient, 'addressHistory'>,
  address: string,
  key: string,
): Promise<string | null> {
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page = await client.addressHistory({ address, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
    for (const { kind, outpoint, transaction_id } of page.events)
      if (kind === 'spent' && outputKey(outpoint.transaction_id, outpoint.output_index) === key) return transaction_id;
    cursor = page.next_cursor;
    if (cursor === undefined) break;
  }
  return null;
}

/** All parts of a divided payment but the last spend as many outputs as fit, and have no change. */
function looksDivided({ profile, descriptor, body, address }: MultisigPackage): boolean {
  const isFull = body.inputs.length >= mostOfPart(profile, descriptor, body.payload.length);
  return isFull && !body.outputs.some((output) => equalBytes(output.address, address));
}

/** The output that the new package must spend first. Throws if the old one cannot be replaced. */
export async function sharedInput(
  client: Pick<NodeClient, 'addressHistory'>,
  old: MultisigPackage,
  address: string,
  { free, waiting }: GroupOutputs,
): Promise<GroupOutput> {
  if (formatAddress(old.address, old.network) !== address)
    throw new WalletError('multisig_not_replaceable', 'the package to replace is of another multisig address', {
      reason: 'other_address',
    });
  if (looksDivided(old))
    throw new WalletError(
      'multisig_not_replaceable',
      'the package to replace looks like one of several that pay together: the others could still be sent',
      { reason: 'parts' },
    );
  const byKey = new Map(free.map((output) => [keyOfOutpoint(output.outpoint), output]));
  const found = old.body.inputs.map((input) => byKey.get(keyOfOutpoint(input)));
  const missing = found.indexOf(undefined);
  if (missing >= 0) {
    const key = keyOfOutpoint(old.body.inputs[missing] as Outpoint);
    const waits = waiting.get(key);
    const transaction = waits ?? (await spenderOf(client, address, key));
    throw new WalletError('multisig_not_replaceable', spentText(transaction, waits !== undefined), {
      reason: waits === undefined ? 'spent' : 'waiting',
      transaction,
    });
  }
  return found[0] as GroupOutput;
}

const spentText = (transaction: string | null, waits: boolean): string =>
  transaction === null
    ? 'an input of the package to replace is spent, or never was'
    : `transaction ${transaction} ${waits ? 'waits for the next cut and spends' : 'spent'} an input of the package to replace: look whether it paid what you want to pay`;

/** Of two packages that pay together, only one could exclude the old one. */
export function checkOnePart(parts: number): void {
  if (parts > 1)
    throw new WalletError(
      'multisig_not_replaceable',
      `the payment needs ${parts} packages, and only one of them would exclude the old one`,
      { reason: 'parts' },
    );
}
