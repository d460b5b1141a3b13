/** The settings that a miner can change with the key of its address, and the beginning of each signed text. */

import { type Channel, noticePurpose } from '../../protocol/notices.ts';
import { type WordKey, word } from '../words/language.ts';

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

type Choice = { readonly chosen: readonly string[]; readonly isRemoved: boolean };

export function webhookWish(channel: Channel, entered: string, { chosen, isRemoved }: Choice): SignedWish | string {
  const fault = isRemoved ? undefined : missing(entered, chosen, 'wish.url');
  if (fault !== undefined) return fault;
  const url = isRemoved ? '' : entered;
  return {
    purpose: `${noticePurpose(channel, url)} at the pool "`,
    fields: isRemoved ? { channel, url } : { channel, url, events: chosen },
  };
}

export const mailWish = (email: string, { chosen, isRemoved }: Choice): SignedWish | string =>
  isRemoved
    ? { purpose: 'no e-mail at the pool "', fields: { email: '' } }
    : (missing(email, chosen, 'wish.mail') ?? {
        purpose: `e-mail to ${email} at the pool "`,
        fields: { email, events: chosen },
      });

/** A field is empty at first, also where something is set: that must not remove it. */
function missing(entered: string, chosen: readonly string[], enter: WordKey): string | undefined {
  if (entered === '') return word(enter);
  return chosen.length === 0 ? word('wish.choose') : undefined;
}
