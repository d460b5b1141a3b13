/** What the module exports. Memory is imported: shared between threads, or plain where a browser does not allow that. */
export { cacheChain, cachePass, datasetSlice, items } from './dataset';
export { hashFull, hashLight, preHash, searchFull, searchLight } from './hash';
