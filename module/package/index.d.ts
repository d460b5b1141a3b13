/**
 * The protocol module `svc-wasm`. Requests, manifests and answers are JSON text; every protocol integer is a decimal string (amounts are atoms and never numbers); bytes are
 * lower-case hex. A refusal is thrown as an Error with a `code` that the project's list of errors explains. `init()` comes first; everything else is synchronous.
 */

export type Network = 'mainnet' | 'testnet' | 'testnet100' | 'development';
export type Branch = 'receive' | 'change';
export type WitnessProfile = 'inline' | 'referenced';
/** What `quoteTransactionWithInputProfiles` takes: of a multisig address the profile and its form. */
export type QuoteProfile = WitnessProfile | `multisig_${WitnessProfile}_${'2_of_3' | '3_of_5'}`;
/** A whole number, or its decimal digits. */
export type Index = number | string;

/** What every refusal is. */
export interface Refusal extends Error {
  readonly code: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Loads and starts the module; later calls do nothing. `source`: the bytes of svc_wasm_bg.wasm, or the compiled module, where it does not lie beside svc_wasm.js. */
export default function init(source?: BufferSource | WebAssembly.Module): Promise<void>;

// Manifest

/** Checks the document of `GET /v1/transactions/manifest`; returns it as the module understands it. */
export function validateManifest(manifestJson: string): string;

// Bodies

/** From `{valid_from_height, valid_until_height, inputs, outputs, payload_hex, operation?}` to the bytes of the body, in hex. */
export function encodeTransactionBody(requestJson: string, manifestJson: string): string;
export function inspectTransactionBody(bodyHex: string, manifestJson: string): string;
export function transactionId(bodyHex: string, manifestJson: string): string;
/** `{wire_bytes, mass, minimum_fee}`, exact, with every witness inline. */
export function quoteTransaction(bodyHex: string, manifestJson: string): string;
/** `profilesJson`: one `QuoteProfile` per input, and one more for the owner of an operation. */
export function quoteTransactionWithInputProfiles(bodyHex: string, profilesJson: string, manifestJson: string): string;
/** `witnessesJson`: the witnesses, in hex. */
export function quoteTransactionWithWitnesses(bodyHex: string, witnessesJson: string, manifestJson: string): string;

// Authorization

/** What the key of input `index` signs. `previousOutputJson`: `{address, amount}` of the output that it spends. */
export function spendMessage(bodyHex: string, index: Index, previousOutputJson: string, manifestJson: string): string;
/** What the owner of the body's staking operation signs. */
export function operationMessage(bodyHex: string, manifestJson: string): string;
/** What a consensus key signs for the owner that registers it. */
export function possessionMessage(publicKey: string, ownerAddress: string, manifestJson: string): string;
export function encodeWitness(publicKey: string, signature: string): string;
/** `referenced` takes no public key. */
export function encodeWitnessWithProfile(
  profile: WitnessProfile,
  publicKey: string | null | undefined,
  signature: string,
): string;
/** `signaturesJson`: `[{member, signature}]`, exactly as many as the threshold says, in ascending order of members. */
export function encodeMultisigInlineWitness(descriptorJson: string, signaturesJson: string): string;
/** Input witnesses in their order, then that of the operation if there is one. Returns the hex for `POST /v1/transactions`. */
export function assembleTransaction(bodyHex: string, witnessesJson: string, manifestJson: string): string;
export function inspectTransaction(wireHex: string, manifestJson: string): string;
/** Throws for whatever a node would refuse without looking into its ledger. `ownerAddress`: only with an operation. */
export function verifyTransaction(
  wireHex: string,
  previousOutputsJson: string,
  ownerAddress: string | null | undefined,
  manifestJson: string,
): string;
/** `keysJson`: public keys that the registry reports from a finalized cut. */
export function verifyTransactionWithReferencedKeys(
  wireHex: string,
  previousOutputsJson: string,
  ownerAddress: string | null | undefined,
  keysJson: string,
  manifestJson: string,
): string;

// Multisig: 2-of-3 and 3-of-5

/** `membersJson`: the members' public keys, in any order. Returns `{threshold, members}` in its one form. */
export function createMultisigDescriptor(threshold: Index, membersJson: string): string;
/** Throws unless the descriptor is in its one form: 2-of-3 or 3-of-5, keys ascending, none twice. */
export function validateMultisigDescriptor(descriptorJson: string): string;
export function multisigAddress(descriptorJson: string, network: Network): string;
/** An inline package (`TRMSIGP1`) without signatures. `inputAmountsJson`: atoms of the outputs that are spent, all of the multisig address. */
export function createMultisigPackage(
  descriptorJson: string,
  bodyHex: string,
  inputAmountsJson: string,
  manifestJson: string,
): string;
/** The parts of a package. Every function that takes a package checks its form, its chain and each signature in it. */
export function decodeMultisigPackage(packageHex: string, manifestJson: string): string;
/** What a person must see before a key signs: recipients, amounts, fee, inputs, heights, descriptor, `template_digest`, `witness_profile`. */
export function reviewMultisigPackage(packageHex: string, manifestJson: string): string;
/** For the digest that was reviewed: the messages that each member signs, as a JSON array. */
export function multisigPackageSigningMessages(
  packageHex: string,
  templateDigest: string,
  manifestJson: string,
): string;
/** `signaturesJson`: one member's signatures over these messages, in their order. */
export function addMultisigPackageSignatures(
  packageHex: string,
  publicKey: string,
  signaturesJson: string,
  manifestJson: string,
): string;
/** `packagesJson`: packages of one template, descriptor and manifest, in any order. */
export function combineMultisigPackages(packagesJson: string, manifestJson: string): string;
/** The transaction, once as many members as the threshold says have signed. It is for `verifyTransaction` and the node. */
export function completeMultisigPackage(packageHex: string, manifestJson: string): string;

// Text

export function addressFromPublicKey(publicKey: string, network: Network): string;
/** `{address, network, kind, payload_hex}`. With a network, an address of another one is refused. */
export function parseAddress(address: string, network?: Network | null): string;
export function burnAddress(network: Network): string;
/** `{address, network, amount?, label?, message?}` of `svc:ADDRESS?amount=1.25&label=...&message=...`; the amount in atoms. */
export function parsePaymentUri(uri: string, network?: Network | null): string;
/** From coins, such as `1.25`, to atoms. */
export function parseAmount(coins: string): string;
/** From atoms to coins with 8 decimals. */
export function formatAmount(atoms: string): string;

// Recipient payloads

/** From `[{output_index, payload_hex}]` to the `payload_hex` of a body. Everyone can read them. */
export function encodeRecipientPayloads(payloadsJson: string): string;
export function decodeRecipientPayloads(payloadHex: string): string;

// Keys

export function mnemonicFromEntropy(entropyHex: string): string;
export function mnemonicEntropy(mnemonic: string): string;

/** The secrets of a wallet, inside the module's memory. Call `free()` after use. */
export class WalletRoot {
  private constructor();
  static fromMnemonic(mnemonic: string, passphrase: string, network: Network): WalletRoot;
  static fromEntropy(entropyHex: string, passphrase: string, network: Network): WalletRoot;
  readonly network: Network;
  /** 16 hex characters by which a person tells one wallet from another. */
  fingerprint(): string;
  derivePublicKey(account: Index, branch: Branch, index: Index): string;
  /** `spend`: true for the message of an input, false for that of a staking operation. */
  sign(account: Index, branch: Branch, index: Index, message: string, spend: boolean): string;
  /** The signature of `possessionMessage` by the consensus key of an index. */
  signPossession(account: Index, index: Index, ownerAddress: string, manifestJson: string): string;
  /** Answers `addressProofRequest` with the key of its address. */
  proveAddress(account: Index, branch: Branch, index: Index, requestJson: string): string;
  /** 32 hex characters by which people compare the messenger key of an address of this wallet. */
  messengerId(address: string): string;
  /** The payload that asks for a chat in the name of an address of this wallet. The transaction spends from that address, and its output 0 pays one atom to the other. */
  messengerRequest(address: string): string;
  /** The payload that accepts a request, given as `messengerChats` shows it. The transaction spends from the address that was asked. */
  messengerAccept(chatJson: string): string;
  /** The payload of a message in an accepted chat, given as `messengerChats` shows it. */
  messengerMessage(chatJson: string, text: string, sentMillis: Index): string;
  /**
   * Every chat of these addresses of this wallet, from `[{transaction_id, height, senders, recipient, amount, payload_hex}]` in any order: `senders` are the addresses of the
   * inputs, `recipient` and `amount` those of output 0. Junk is passed over. Texts come from others: escape them where they are shown.
   */
  messengerChats(entriesJson: string, addressesJson: string): string;
  /** Overwrites the secrets. */
  free(): void;
  [Symbol.dispose](): void;
}

// Messenger

/** How long texts and payloads are, and what a messenger transaction pays to its recipient, in atoms. */
export function messengerLimits(): string;
/** Whether a payload has the form of one of the messenger's. */
export function isMessengerPayload(payloadHex: string): boolean;

// Address ownership

/** Six words by which two people compare an address aloud, as a JSON array. */
export function addressVerificationWords(address: string): string;
/** A request to keep: the answer is checked against exactly this. */
export function addressProofRequest(
  address: string,
  network: Network,
  createdMillis: Index,
  expiresMillis: Index,
  purpose?: string | null,
): string;
/** Throws unless the proof answers the request. Multisig addresses cannot be proven. */
export function verifyAddressProof(requestJson: string, proofJson: string, network: Network, nowMillis: Index): string;

// Wallet file

/** The wallet's own file. Takes about a second and 128 MiB (`log2N` 17): in a page, call it from a worker. */
export function sealWalletFile(root: WalletRoot, password: string, log2N?: Index): string;
export function openWalletFile(text: string, password: string): WalletRoot;

// Service answers

/** The identity that a client pins. */
export function serviceIdentityForPublicKey(publicKey: string): string;
/** `responseJson`: `{method, target, request_body_hex, status, response_body_hex, nonce, headers}`. Throws unless the pinned node signed it. */
export function verifyServiceResponse(
  responseJson: string,
  publicKey: string,
  pinnedIdentity: string,
  chainId: string,
): string;
