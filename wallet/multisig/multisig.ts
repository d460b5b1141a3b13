/**
 * Multisig addresses of a wallet: those it watches, payments that it proposes from them, packages that it reviews, signs and sends (docs/wallet.md, Multisig). What such an address holds belongs
 * to several members, so it is never part of the balance and no payment of the wallet takes it. Every call reads the chain: there is no second state that could fall behind.
 */
import { setImmediate } from 'node:timers/promises';
import { formatAddress, keyAddressPayload } from '../../protocol/address.ts';
import { formatCoins } from '../../protocol/amount.ts';
import { ApiError } from '../../protocol/api/client.ts';
import { ByteReader, type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { minimumFee } from '../../protocol/transactions/fee.ts';
import {
  encodeDescriptor,
  type MultisigDescriptor,
  multisigAddressPayload,
  readDescriptor,
} from '../../protocol/transactions/multisig.ts';
import {
  checkDigest,
  completePackage,
  decodePackage,
  encodePackage,
  type MultisigPackage,
  type MultisigProfile,
  newPackage,
  packageFee,
  packageMass,
  packageMessages,
  withSignatures,
} from '../../protocol/transactions/multisig-package.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import type { WallClock } from '../../runtime/clock/clock.ts';
import type { Follower } from '../chain/follower.ts';
import { isAway, type NodeClient, nodeFailure, pagesOf, readPending } from '../chain/node-link.ts';
import type { Keyring } from '../keys/keyring.ts';
import { type SigningKey, signMessage, verifySignature } from '../keys/signing.ts';
import type { Book } from '../state/book.ts';
import type { Journal } from '../state/journal.ts';
import { type MultisigRecord, outputKey } from '../state/records.ts';
import { WalletError } from '../wallet-error.ts';
import { type AmountsState, amountsState, checkAmounts } from './amounts.ts';
import { type GroupOutput, proposalParts } from './proposing.ts';
import { checkOnePart, type GroupOutputs, sharedInput } from './replacing.ts';

export type MultisigClient = Pick<
  NodeClient,
  | 'addressesUtxos'
  | 'addressBalances'
  | 'addressHistory'
  | 'registeredKeys'
  | 'submitTransaction'
  | 'mempoolPending'
  | 'utxoProofs'
>;

export type MultisigDependencies = {
  readonly client: MultisigClient;
  readonly book: Book;
  readonly journal: Journal;
  readonly keyring: Keyring;
  readonly follower: Pick<Follower, 'node' | 'rescanning'>;
  readonly network: NetworkName;
  readonly maxFeePerMass: bigint;
  readonly now: WallClock;
};

export type ProposalWish = {
  readonly to: Bytes;
  readonly amount: bigint;
  readonly payload: Bytes;
  readonly validCuts: number;
  /** With whole keys also where the chain knows them. */
  readonly inline: boolean;
  /** An earlier package: at most one of both can be paid. */
  readonly replaces?: MultisigPackage | undefined;
};

export type SigningTerms = {
  /** Sign although no node can be asked for the amounts. */
  readonly trusted: boolean;
  /** Also with a fee above `maxFeePerMass`. */
  readonly anyFee: boolean;
};

/** Also searches keys beyond the watched ones: a wallet restored from its words has handed out none yet. */
const SEARCHED_KEYS = 1_024;

export class Multisig {
  readonly #with: MultisigDependencies;

  constructor(dependencies: MultisigDependencies) {
    this.#with = dependencies;
  }

  /** Watches an address from now on. Again with another label: the new one stays. */
  async watch(descriptor: MultisigDescriptor, label: string): Promise<MultisigRecord> {
    const { book, journal, network, now } = this.#with;
    const address = formatAddress(multisigAddressPayload(descriptor), network);
    const before = book.multisig.get(address);
    const record: MultisigRecord = {
      address,
      descriptorHex: toHex(encodeDescriptor(descriptor)),
      label: label === '' ? (before?.label ?? '') : label,
      createdMillis: before?.createdMillis ?? now(),
    };
    await journal.commit({ multisig: [record] }, true);
    return record;
  }

  watched(address: string): MultisigRecord | undefined {
    return this.#with.book.multisig.get(address);
  }

  /** The members whose keys this wallet has. */
  ownMembers(descriptor: MultisigDescriptor): readonly number[] {
    return descriptor.keys.flatMap((key, member) => (this.#keyOf(key) === undefined ? [] : [member]));
  }

  #keyOf(publicKey: Bytes): SigningKey | undefined {
    const { book, keyring, network } = this.#with;
    const record = book.address(formatAddress(keyAddressPayload(publicKey), network));
    return record && keyring.key(record);
  }

  /**
   * Derives every key of a range, which takes half a second with calls answered in between; only if no member is among
   * this wallet's addresses.
   */
  async #searchKey(descriptor: MultisigDescriptor): Promise<SigningKey | undefined> {
    const { book, keyring } = this.#with;
    const names = new Set(descriptor.keys.map((key) => toHex(key)));
    for (let index = book.branches.receive.length; index < SEARCHED_KEYS; index++) {
      const key = keyring.key({ branch: 'receive', index });
      if (names.has(toHex(key.publicKey))) return key;
      await setImmediate();
    }
    return undefined;
  }

  #edge() {
    const { book, network, follower } = this.#with;
    const { chainId } = book.meta;
    if (chainId === null) throw follower.node.trouble ?? new WalletError('node_unreachable', 'no node was met yet');
    return { network, chainId: fromHex(chainId), verify: verifySignature };
  }

  /** Throws a ProtocolError if it is not a package of this wallet's chain. */
  read(bytes: Bytes): MultisigPackage {
    return decodePackage(bytes, this.#edge());
  }

  #feePerMass(): bigint {
    const { follower, maxFeePerMass } = this.#with;
    const { trouble, synced, behindBy, manifest } = follower.node;
    if (trouble !== null) throw trouble;
    if (manifest === null || !synced)
      throw new WalletError('node_not_synced', 'the node is not synchronized yet', { behind_by: behindBy });
    const feePerMass = BigInt(manifest.min_fee_per_mass);
    if (feePerMass > maxFeePerMass)
      throw new WalletError(
        'fee_too_high',
        `the node asks for ${feePerMass} atoms per mass, at most ${maxFeePerMass} are paid`,
      );
    return feePerMass;
  }

  async #outputsOf(address: string): Promise<GroupOutputs> {
    const { client } = this.#with;
    const { pending } = await readPending(client, [address]);
    const waiting = new Map(
      pending
        .filter(({ direction }) => direction === 'outgoing')
        .map(({ outpoint, transaction_id }) => [
          outputKey(outpoint.transaction_id, outpoint.output_index),
          transaction_id,
        ]),
    );
    const free: GroupOutput[] = [];
    const read = (place: { readonly cursor?: string }) => client.addressesUtxos({ addresses: [address], ...place });
    for await (const page of pagesOf('outputs', read))
      for (const { outpoint, amount } of page.utxos)
        if (!waiting.has(outputKey(outpoint.transaction_id, outpoint.output_index)))
          free.push({
            outpoint: { transactionId: fromHex(outpoint.transaction_id), outputIndex: outpoint.output_index },
            amount: BigInt(amount),
          });
    return { free, waiting };
  }

  async #profileFor({ keys }: MultisigDescriptor, inline: boolean): Promise<MultisigProfile> {
    if (inline) return 'multisig_inline';
    const { client, network } = this.#with;
    const addresses = keys.map((key) => formatAddress(keyAddressPayload(key), network));
    const { keys: known } = await client.registeredKeys({ addresses });
    const isKnown = (address: string): boolean =>
      known.some((one) => one.address === address && one.registered && one.registered_height !== null);
    return addresses.every(isKnown) ? 'multisig_referenced' : 'multisig_inline';
  }

  /** Unsigned packages that together pay the amount. Nothing is reserved: two proposals may spend the same outputs, or different ones. */
  async propose(record: MultisigRecord, wish: ProposalWish): Promise<readonly MultisigPackage[]> {
    const { network, follower, client } = this.#with;
    const feePerMass = this.#feePerMass();
    const descriptor = descriptorOf(record);
    const address = multisigAddressPayload(descriptor);
    const { chainId } = this.#edge();
    try {
      const profile = await this.#profileFor(descriptor, wish.inline);
      const outputs = await this.#outputsOf(record.address);
      const first = wish.replaces && (await sharedInput(client, wish.replaces, record.address, outputs));
      const parts = proposalParts(outputs.free, wish.amount, {
        profile,
        descriptor,
        feePerMass,
        payloadBytes: wish.payload.length,
        first,
      });
      if ('needed' in parts)
        throw new WalletError(
          'insufficient_funds',
          'the multisig address does not hold enough for the amount and the fees',
          {
            needed: formatCoins(parts.needed),
            spendable: formatCoins(outputs.free.reduce((sum, { amount }) => sum + amount, 0n)),
          },
        );
      if (wish.replaces) checkOnePart(parts.length);
      const height = follower.node.finalizedHeight;
      return parts.map(({ inputs, amount, change }) =>
        newPackage({
          profile,
          network,
          descriptor,
          amounts: inputs.map((input) => input.amount),
          body: {
            chainId,
            validFromHeight: height,
            validUntilHeight: height + wish.validCuts,
            inputs: inputs.map(({ outpoint }) => outpoint),
            outputs: [{ address: wish.to, amount }, ...(change > 0n ? [{ address, amount: change }] : [])],
            payload: wish.payload,
          },
        }),
      );
    } catch (error) {
      throw nodeFailure(error);
    }
  }

  amounts(of: MultisigPackage): Promise<AmountsState> {
    return amountsState(this.#with.client, of);
  }

  /** The maker of a package sets its fee, and no node refuses an excessive one. */
  #checkFee(of: MultisigPackage): void {
    const [fee, most] = [packageFee(of), minimumFee(packageMass(of), this.#with.maxFeePerMass)];
    if (fee > most)
      throw new WalletError(
        'fee_too_high',
        `the fee of the package is ${formatCoins(fee)}, at most ${formatCoins(most)} is paid for its mass`,
      );
  }

  /** With every key of this wallet that is a member, for the digest that was reviewed. */
  async sign(of: MultisigPackage, digest: Bytes, { trusted, anyFee }: SigningTerms): Promise<MultisigPackage> {
    checkDigest(of, digest);
    checkAmounts(await this.amounts(of), trusted);
    if (!anyFee) this.#checkFee(of);
    const own = this.ownMembers(of.descriptor).map((member) => this.#keyOf(of.descriptor.keys[member] as Bytes));
    const found = own.length > 0 ? own : [await this.#searchKey(of.descriptor)];
    const keys = found.filter((key) => key !== undefined);
    if (keys.length === 0)
      throw new WalletError('multisig_not_member', 'none of the members’ keys is a key of this wallet');
    const messages = packageMessages(of);
    let signed = of;
    for (const key of keys) {
      const signatures = await Promise.all(messages.map((message) => signMessage(key, message)));
      signed = withSignatures(signed, key.publicKey, signatures, verifySignature);
    }
    return signed;
  }

  /** Completes a package and hands it to the node. The same package may be sent again: it is one transaction. */
  async send(
    of: MultisigPackage,
    anyFee: boolean,
  ): Promise<{ readonly transaction: string; readonly isKnown: boolean }> {
    if (!anyFee) this.#checkFee(of);
    const least = minimumFee(packageMass(of), this.#feePerMass());
    if (packageFee(of) < least)
      throw new WalletError('multisig_package_invalid', 'the fee of the package is below what the node asks for now', {
        reason: 'fee_below_minimum',
      });
    const wire = completePackage(of);
    const transaction = toHex(transactionIdOfWire(wire));
    try {
      const { status } = await this.#with.client.submitTransaction(Buffer.from(wire));
      return { transaction, isKnown: status === 'known' };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 'client_outcome_unknown')
        throw new WalletError('outcome_unknown', 'the node did not answer: send the same package again', {
          transaction,
        });
      if (isAway(error)) throw nodeFailure(error);
      const reason = error.detail?.reason ?? error.detail?.failure ?? error.code;
      throw new WalletError('node_refused', `the node refused the transaction: ${reason}: ${error.message}`, {
        transaction,
        reason,
      });
    }
  }

  /** What a watched address holds by finalized cuts, and what waits for it. */
  async balance({ address }: MultisigRecord) {
    const { client } = this.#with;
    try {
      const { balances, indexed_height } = await client.addressBalances({ addresses: [address] });
      const { pending } = await readPending(client, [address]);
      const sum = (direction: 'incoming' | 'outgoing'): bigint =>
        pending.reduce((all, one) => (one.direction === direction ? all + BigInt(one.amount) : all), 0n);
      const [held] = balances;
      return {
        total: BigInt(held?.balance ?? '0'),
        outputs: held?.utxos ?? 0,
        reserved: sum('outgoing'),
        unconfirmed: sum('incoming'),
        indexedHeight: indexed_height,
      };
    } catch (error) {
      throw nodeFailure(error);
    }
  }

  /** Newest first. */
  async history({ address }: MultisigRecord, cursor: string | undefined, limit: number) {
    try {
      return await this.#with.client.addressHistory({ address, limit, ...(cursor === undefined ? {} : { cursor }) });
    } catch (error) {
      if (error instanceof ApiError && error.code === 'bad_cursor')
        throw new WalletError('params_invalid', 'cursor is not from this list', { field: 'cursor' });
      throw nodeFailure(error);
    }
  }
}

export const descriptorOf = ({ descriptorHex }: MultisigRecord): MultisigDescriptor =>
  readDescriptor(new ByteReader(fromHex(descriptorHex)));

export const packageHex = (of: MultisigPackage): string => toHex(encodePackage(of));
