/** The specification's rows about the protocol module, for test/api/conformance.test.ts: each function by name, and the rules. */
const TABLE = 'Protocol module functions';
const FUNCTIONS = 'test/module/functions.test.ts';

const shown: readonly (readonly [row: string, file: string])[] = [
  ['Manifest: `validateManifest`', FUNCTIONS],
  [
    'Bodies: `encodeTransactionBody`, `inspectTransactionBody`, `transactionId`, `quoteTransaction`, `quoteTransactionWithInputProfiles`, `quoteTransactionWithWitnesses`',
    'test/module/differential.test.ts',
  ],
  [
    'Authorization: `spendMessage`, `operationMessage`, `possessionMessage`, `encodeWitness`, `encodeWitnessWithProfile`, `encodeMultisigInlineWitness`, `assembleTransaction`, `inspectTransaction`, `verifyTransaction`, `verifyTransactionWithReferencedKeys`',
    'test/module/differential.test.ts',
  ],
  [
    'Text: `addressFromPublicKey`, `parseAddress`, `burnAddress`, `parsePaymentUri`, `parseAmount`, `formatAmount`',
    FUNCTIONS,
  ],
  ['Recipient payloads: `encodeRecipientPayloads`, `decodeRecipientPayloads`', FUNCTIONS],
  [
    'Messenger: `messengerLimits`, `isMessengerPayload`, wallet root `messengerId`, `messengerRequest`, `messengerAccept`, `messengerMessage`, `messengerChats`',
    'test/module/messenger.test.ts',
  ],
  [
    'Keys: `mnemonicFromEntropy`, `mnemonicEntropy`, wallet root `fingerprint`, `derivePublicKey`, `sign`, `signPossession`, `proveAddress`',
    FUNCTIONS,
  ],
  ['Address ownership: `addressVerificationWords`, `addressProofRequest`, `verifyAddressProof`', FUNCTIONS],
  ['Wallet file: `sealWalletFile`, `openWalletFile`', FUNCTIONS],
  ['Service answers: `serviceIdentityForPublicKey`, `verifyServiceResponse`', FUNCTIONS],
  [
    'Multisig: `createMultisigDescriptor`, `validateMultisigDescriptor`, `multisigAddress`, `createMultisigPackage`, `decodeMultisigPackage`, `reviewMultisigPackage`, `multisigPackageSigningMessages`, `addMultisigPackageSignatures`, `combineMultisigPackages`, `completeMultisigPackage`',
    'test/module/multisig.test.ts',
  ],
  ['Rule 6: review before signing, the digest, combining', 'test/module/multisig.test.ts'],
  ['Rule 1: a body of another chain, protocol version or rule set is refused', FUNCTIONS],
  ['Rule 2: `network`', 'test/module/bad-input.test.ts'],
  ['Rule 3: payment build order', 'test/module/package.slow.test.ts'],
  ['Rule 4: key derivation, fresh randomness, roots are freed', 'test/module/secrets.test.ts'],
  ['Rule 5: referenced inputs', FUNCTIONS],
  ['`release.json` with SHA-256 hashes', FUNCTIONS],
];

export const MODULE_ROWS = { table: TABLE, shown } as const;
