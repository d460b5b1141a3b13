/**
 * The protocol module `svc-wasm` (specification: Protocol module functions): what wallets, exchanges and web pages need to make, sign and check transactions. It makes no
 * network requests, stores no wallet and selects no coins. Call `init()` first; everything else is synchronous.
 */
import { isStarted, startWith } from './wasm.ts';

export {
  assembleTransaction,
  encodeWitness,
  encodeWitnessWithProfile,
  inspectTransaction,
  operationMessage,
  possessionMessage,
  spendMessage,
  verifyTransaction,
  verifyTransactionWithReferencedKeys,
} from './authorization.ts';
export {
  encodeTransactionBody,
  inspectTransactionBody,
  quoteTransaction,
  quoteTransactionWithInputProfiles,
  quoteTransactionWithWitnesses,
  transactionId,
} from './bodies.ts';
export { validateManifest } from './manifest.ts';
export { isMessengerPayload, messengerLimits } from './messenger.ts';
export {
  addMultisigPackageSignatures,
  combineMultisigPackages,
  completeMultisigPackage,
  createMultisigDescriptor,
  createMultisigPackage,
  decodeMultisigPackage,
  encodeMultisigInlineWitness,
  multisigAddress,
  multisigPackageSigningMessages,
  reviewMultisigPackage,
  validateMultisigDescriptor,
} from './multisig.ts';
export { addressProofRequest, addressVerificationWords, verifyAddressProof } from './ownership.ts';
export { decodeRecipientPayloads, encodeRecipientPayloads } from './recipients.ts';
export { serviceIdentityForPublicKey, verifyServiceResponse } from './service.ts';
export { addressFromPublicKey, burnAddress, formatAmount, parseAddress, parseAmount, parsePaymentUri } from './text.ts';
export { openWalletFile, sealWalletFile } from './wallet-file.ts';
export { mnemonicEntropy, mnemonicFromEntropy, WalletRoot } from './wallet-root.ts';

/** The file beside this one, from the disk in Node and over HTTP elsewhere. */
async function ownFile(): Promise<BufferSource> {
  const url = new URL('svc_wasm_bg.wasm', import.meta.url);
  if (url.protocol === 'file:' && typeof process !== 'undefined') {
    const { readFile } = process.getBuiltinModule('node:fs/promises');
    return await readFile(url);
  }
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url.href}: ${answer.status}`);
  return await answer.arrayBuffer();
}

/** Loads and starts the WebAssembly half. `source`: its bytes or the compiled module, where they do not lie beside this file. */
export default async function init(source?: BufferSource | WebAssembly.Module): Promise<void> {
  if (isStarted()) return;
  const given = source ?? (await ownFile());
  startWith(given instanceof WebAssembly.Module ? given : await WebAssembly.compile(given));
}
