/** The settings that a miner can change with the key of its address, and the beginning of each signed text. */

/** What is to be signed, and the fields by which the pool knows it. */
export type SignedWish = {
  /** How what the pool wants signed must begin: nothing else gets a signature. */
  readonly purpose: string;
  readonly fields: Readonly<Record<string, string | readonly string[]>>;
};

export const thresholdWish = (atoms: string): SignedWish => ({
  purpose: `payout threshold of ${atoms} atoms at the pool "`,
  fields: { threshold_atoms: atoms },
});

/** Empty takes the webhook away. */
export const webhookWish = (url: string, events: readonly string[]): SignedWish | string =>
  events.length === 0
    ? NO_EVENTS
    : { purpose: url === '' ? 'no webhook at the pool "' : `webhook ${url} at the pool "`, fields: { url, events } };

/** Empty takes the address away. */
export const mailWish = (email: string, events: readonly string[]): SignedWish | string =>
  events.length === 0
    ? NO_EVENTS
    : {
        purpose: email === '' ? 'no e-mail at the pool "' : `e-mail to ${email} at the pool "`,
        fields: { email, events },
      };

const NO_EVENTS = 'Choose at least one kind of notification. To stop all of them, leave the field above empty.';
