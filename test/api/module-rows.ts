/** The specification's rows about the protocol module, for test/api/conformance.test.ts: each function by name, and the rules. */
const TABLE = 'Protocol module functions';
const FUNCTIONS = 'test/module/functions.test.ts';

const shown: readonly (readonly [row: string, file: string, title: string])[] = [
  ['Manifest: `validateManifest`', FUNCTIONS, 'manifest: another chain'],
  [
    'Bodies: `encodeTransactionBody`, `inspectTransactionBody`, `transactionId`, `quoteTransaction`, `quoteTransactionWithInputProfiles`, `quoteTransactionWithWitnesses`',
    'test/module/differential.test.ts',
    'bodies, identifiers, messages, quotes and wire forms',
  ],
  [
    'Authorization: `spendMessage`, `operationMessage`, `possessionMessage`, `encodeWitness`, `encodeWitnessWithProfile`, `encodeMultisigInlineWitness`, `assembleTransaction`, `inspectTransaction`, `verifyTransaction`, `verifyTransactionWithReferencedKeys`',
    'test/module/differential.test.ts',
    'whole and damaged transactions have the same verdict',
  ],
  [
    'Text: `addressFromPublicKey`, `parseAddress`, `burnAddress`, `parsePaymentUri`, `parseAmount`, `formatAmount`',
    FUNCTIONS,
    'text: addresses, links, amounts',
  ],
  [
    'Recipient payloads: `encodeRecipientPayloads`, `decodeRecipientPayloads`',
    FUNCTIONS,
    'payloads per recipient are those of the vectors',
  ],
  [
    'Messenger: `messengerLimits`, `isMessengerPayload`, wallet root `messengerId`, `messengerRequest`, `messengerAccept`, `messengerMessage`, `messengerChats`',
    'test/module/messenger.test.ts',
    'a conversation, the same for both',
  ],
  [
    'Keys: `mnemonicFromEntropy`, `mnemonicEntropy`, wallet root `fingerprint`, `derivePublicKey`, `sign`, `signPossession`, `proveAddress`',
    FUNCTIONS,
    'the wallet vectors: spend message',
  ],
  [
    'Address ownership: `addressVerificationWords`, `addressProofRequest`, `verifyAddressProof`',
    FUNCTIONS,
    'ownership: either side asks and answers',
  ],
  ['Wallet file: `sealWalletFile`, `openWalletFile`', FUNCTIONS, 'wallet files: each program opens'],
  ['Service answers: `serviceIdentityForPublicKey`, `verifyServiceResponse`', FUNCTIONS, 'signed answers of a node'],
  [
    'Multisig: `createMultisigDescriptor`, `validateMultisigDescriptor`, `multisigAddress`, `createMultisigPackage`, `decodeMultisigPackage`, `reviewMultisigPackage`, `multisigPackageSigningMessages`, `addMultisigPackageSignatures`, `combineMultisigPackages`, `completeMultisigPackage`',
    'test/module/multisig.test.ts',
    'three members, one transaction',
  ],
  [
    'Rule 6: review before signing, the digest, combining',
    'test/module/multisig.test.ts',
    'messages are given for the digest that was reviewed',
  ],
  [
    'Rule 6: `combineMultisigPackages` takes partial packages only',
    'test/module/multisig.test.ts',
    'only partial packages are combined',
  ],
  ['Convention 8: every protocol integer is a decimal string', FUNCTIONS, 'no function of the module gives a number'],
  ['Rule 1: a body of another chain, protocol version or rule set is refused', FUNCTIONS, 'refused (rule 1)'],
  ['Rule 2: `network`', 'test/module/bad-input.long.test.ts', 'arguments of another chain, network or wallet'],
  ['Rule 3: payment build order', 'test/module/package.slow.test.ts', 'packed, unpacked, imported by its name'],
  [
    'Rule 4: key derivation, fresh randomness, roots are freed',
    'test/module/secrets.test.ts',
    'no secret is left after free()',
  ],
  ['Rule 5: referenced inputs', FUNCTIONS, 'a referenced key (rule 5)'],
  ['`release.json` with SHA-256 hashes', FUNCTIONS, 'release.json has the SHA-256'],
];

export const MODULE_ROWS = { table: TABLE, shown } as const;
