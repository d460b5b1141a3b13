/** Methods of the group Multisig: addresses of several members, and the packages that go between them (docs/wallet.md, Multisig). */
import { flag, integer, list, object, optional, text } from '../../protocol/api/schema.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { MOST_MEMBERS, multisigDescriptor } from '../../protocol/transactions/multisig.ts';
import type { MultisigPackage } from '../../protocol/transactions/multisig-package.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError, type WalletErrorCode } from '../wallet-error.ts';
import { addressField, amountField, labelField, method, readAddress, readAmount } from './method.ts';
import { groupDocument, packageDocument, reviewDocument, watchedGroup } from './multisig-documents.ts';
import { payloadField, readPayload } from './outgoing-methods.ts';
import { giveAddress } from './wallet-methods.ts';

const keyField = text({ maxLength: 2 * PUBLIC_KEY_BYTES, description: 'a public key in hex' });
const packageField = text({ minLength: 2, description: 'a package in hex' });
const anyFeeField = optional(flag('also with a fee above the limit of the wallet (max-fee-per-mass)'));
/** A day, at one cut per 2.5 seconds: people need time to sign. */
const VALID_CUTS = 34_560;

/** Turns an error of the codec into a refusal of the wallet, with the codec's code as the reason. */
function refusing<T>(code: WalletErrorCode, field: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    throw new WalletError(code, error.message, { field, reason: error.code });
  }
}

const readPackage = (wallet: Wallet, hex: string, field = 'package'): MultisigPackage =>
  refusing('multisig_package_invalid', field, () => wallet.multisig.read(fromHex(hex)));

export const multisigMethods = {
  multisig_key: method(
    'Multisig',
    'A public key of this wallet for a multisig address, with an address of its own',
    object({ label: optional(labelField) }),
    async (wallet, { label }) => {
      const record = await giveAddress(wallet, label ?? 'multisig member');
      return { public_key: toHex(wallet.keyring.key(record).publicKey), address: record.address, index: record.index };
    },
  ),
  multisig_watch: method(
    'Multisig',
    'Makes the multisig address of some members, and watches it',
    object({
      threshold: integer({ minimum: 2, maximum: 3 }),
      members: list(keyField, { minItems: 3, maxItems: MOST_MEMBERS }),
      label: optional(labelField),
    }),
    async (wallet, { threshold, members, label }) => {
      const descriptor = refusing('multisig_descriptor_invalid', 'members', () =>
        multisigDescriptor(
          threshold,
          members.map((key) => fromHex(key, PUBLIC_KEY_BYTES)),
        ),
      );
      return groupDocument(wallet, await wallet.multisig.watch(descriptor, label ?? ''));
    },
  ),
  multisig_addresses: method('Multisig', 'Multisig addresses that are watched', object({}), (wallet) => ({
    addresses: [...wallet.book.multisig.values()].map((record) => groupDocument(wallet, record)),
  })),
  multisig_propose: method(
    'Multisig',
    'Packages that pay an amount from a multisig address, without signatures',
    object({
      address: addressField,
      to: addressField,
      amount: amountField,
      payload_text: optional(payloadField),
      valid_cuts: optional(integer({ minimum: 10, maximum: 1_000_000, default: VALID_CUTS })),
      inline: optional(flag('show the keys also where the chain knows them')),
      replaces: optional(
        text({ minLength: 2, description: 'an earlier package in hex: at most one of both can be paid' }),
      ),
    }),
    async (
      wallet,
      { address, to, amount, payload_text, valid_cuts: validCuts = VALID_CUTS, inline = false, replaces },
    ) => {
      const recipient = readAddress(wallet, to, 'to');
      if (recipient.kind === 'burn')
        throw new WalletError('burn_needs_method', 'that is the burn address: what is sent there is gone', {
          field: 'to',
        });
      const old = replaces === undefined ? undefined : readPackage(wallet, replaces, 'replaces');
      const packages = await wallet.multisig.propose(watchedGroup(wallet, address), {
        to: recipient.payload,
        amount: readAmount(amount, 'amount'),
        payload: readPayload(payload_text),
        validCuts,
        inline,
        replaces: old,
      });
      return {
        packages: packages.map((one) => packageDocument(wallet, one)),
        ...(old === undefined ? {} : { replaces: reviewDocument(wallet, old) }),
      };
    },
  ),
  multisig_review: method(
    'Multisig',
    'What a package does: to be read before it is signed',
    object({ package: packageField }),
    async (wallet, { package: hex }) => {
      const of = readPackage(wallet, hex);
      return { ...reviewDocument(wallet, of), amounts: await wallet.multisig.amounts(of) };
    },
  ),
  multisig_sign: method(
    'Multisig',
    'Signs a package with this wallet’s key among the members, for the digest of its review',
    object({
      package: packageField,
      template_digest: text({ maxLength: 2 * ID_BYTES }),
      trust_amounts: optional(flag('sign although no node answers that could tell what the inputs hold')),
      any_fee: anyFeeField,
    }),
    async (wallet, { package: hex, template_digest, trust_amounts: trusted = false, any_fee: anyFee = false }) => {
      const of = readPackage(wallet, hex);
      const digest: Bytes = refusing('multisig_package_invalid', 'template_digest', () =>
        fromHex(template_digest, ID_BYTES),
      );
      try {
        return packageDocument(wallet, await wallet.multisig.sign(of, digest, { trusted, anyFee }));
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        throw new WalletError('multisig_package_invalid', error.message, {
          field: 'template_digest',
          reason: error.code,
        });
      }
    },
  ),
  multisig_send: method(
    'Multisig',
    'Completes a package that enough members have signed, and sends it; again is harmless',
    object({ package: packageField, any_fee: anyFeeField }),
    async (wallet, { package: hex, any_fee: anyFee = false }) => {
      const of = readPackage(wallet, hex);
      try {
        const { transaction, isKnown } = await wallet.multisig.send(of, anyFee);
        return { ...reviewDocument(wallet, of), transaction, submitted: true, duplicate: isKnown };
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        throw new WalletError('multisig_package_invalid', error.message, { field: 'package', reason: error.code });
      }
    },
  ),
};
