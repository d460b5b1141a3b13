/** Default sizes and pace of a node. */
const MEBIBYTE = 1024 * 1024;

export const NODE_DEFAULTS = {
  cutMillis: 2_500,
  mempoolBytes: 256 * MEBIBYTE,
  workPoolBlocks: 4_096,
  workPoolBytes: 256 * MEBIBYTE,
  signatureThreads: 2,
  maxPendingTransactions: 4_096,
} as const;
