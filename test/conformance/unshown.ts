/** Names that the specification says are not shown. An implementation with other names changes them here. */

/** Bodies of the batch routes. */
export const batchBody = {
  addresses: (path: string, addresses: readonly string[]) =>
    path === '/v1/address/changes' ? { addresses, after_height: 0 } : { addresses },
  transactions: (ids: readonly string[]) => ({ transaction_ids: ids }),
  outpoints: (outpoints: readonly object[]) => ({ outpoints }),
} as const;

/** Params of wallet calls whose parameters are not shown. */
export const walletParams = {
  burn: (amount: string, requestId: string) => ({ amount, request_id: requestId }),
  setLabel: (address: string, label: string) => ({ address, label }),
} as const;

/** Params of stratum calls. */
export const stratum = {
  subscribe: (agent: string, tag?: string) => (tag === undefined ? { agent } : { agent, tag }),
  authorize: (username: string) => ({ username }),
  authorizeMethod: 'mining.authorize',
} as const;

const ADDRESSES = {
  mainnet: 'svc1qqrswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc303tdc',
  testnet: 'tsvc1qqrswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpcfzyser',
} as const;

/** An address that is valid on another network than this one. */
export const foreignTo = (address: string): string =>
  address.startsWith('svc1') ? ADDRESSES.testnet : ADDRESSES.mainnet;
