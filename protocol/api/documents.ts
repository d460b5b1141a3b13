/** Every document of the public API, in one place for those who use them. docs/api.md describes them. */
export * from './address-documents.ts';
export * from './cut-documents.ts';
export * from './economics-documents.ts';
export * from './node-documents.ts';
export * from './staking-documents.ts';
export * from './transaction-documents.ts';
export * from './values.ts';
