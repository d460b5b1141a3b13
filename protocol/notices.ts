/** Where a miner can have its news sent, and how the signed text names the place (docs/notices.md, webhooks of miners). */

/** `webhook`: a program of the miner's own. The others are services for people: they get a sentence, not JSON of ours. */
export const CHANNELS = ['webhook', 'discord', 'telegram', 'ntfy'] as const;
export type Channel = (typeof CHANNELS)[number];

/** The signed text has at most 160 characters, with the channel and the pool's name. */
export const MAX_PLACE = 110;

/** Left out of the signed text, which would be too long for them otherwise. */
const BEGINNINGS: Readonly<Partial<Record<Channel, string>>> = {
  discord: 'https://discord.com/api/webhooks/',
  telegram: 'https://api.telegram.org/bot',
};

export function placeOf(channel: Channel, url: string): string {
  const beginning = BEGINNINGS[channel];
  return beginning !== undefined && url.startsWith(beginning) ? url.slice(beginning.length) : url;
}

/** How the text begins that the key of the address signs. An empty URL takes the channel away. */
export const noticePurpose = (channel: Channel, url: string): string =>
  url === '' ? `no ${channel}` : `${channel} ${placeOf(channel, url)}`;
