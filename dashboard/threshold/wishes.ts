/** What a miner can change with the key of its address, and how what is signed begins. */

/** What is to be signed, and the fields by which the pool knows it. */
export type SignedWish = {
  /** How what the pool wants signed must begin: nothing else gets a signature. */
  readonly purpose: string;
  readonly fields: Readonly<Record<string, string>>;
};

export const thresholdWish = (atoms: string): SignedWish => ({
  purpose: `payout threshold of ${atoms} atoms at the pool "`,
  fields: { threshold_atoms: atoms },
});

/** Empty takes the webhook away. */
export const webhookWish = (url: string): SignedWish => ({
  purpose: url === '' ? 'no webhook at the pool "' : `webhook ${url} at the pool "`,
  fields: { url },
});
