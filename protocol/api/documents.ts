/** Re-exports every document of the public API. docs/api.md describes them. */
export * from './address-documents.ts';
export * from './cut-documents.ts';
export * from './economics-documents.ts';
export * from './node-documents.ts';
export * from './staking-documents.ts';
export * from './transaction-documents.ts';
export * from './values.ts';
