/** What is sent to each channel for one news item: signed JSON for a program, a sentence for people. */
import { createHmac } from 'node:crypto';
import type { Channel } from '../../protocol/notices.ts';
import { type NewsData, newsSentence } from './news-text.ts';

export type Notice = {
  readonly id: number;
  readonly kind: string;
  readonly atMillis: number;
  readonly address: string;
  readonly data: NewsData;
  /** News that were left out before this one. */
  readonly dropped: number;
};

export type NoticeRequest = { readonly headers: Readonly<Record<string, string>>; readonly body: string };

/** The first news sent to a receiver, so that the miner sees that it works. */
export const FIRST_NEWS = 'webhook_set';

export const SIGNATURE_HEADER = 'svc-pool-signature';

/** `t=<millis>,v1=<hex>`: the HMAC covers time and body, so an old request cannot be sent again as a new one. */
export const signWebhook = (secret: string, atMillis: number, body: string): string =>
  `t=${atMillis},v1=${createHmac('sha256', secret).update(`${atMillis}.${body}`).digest('hex')}`;

const SHORT = 12;
const shortOf = (address: string): string =>
  address.length <= 2 * SHORT ? address : `${address.slice(0, SHORT)}…${address.slice(-SHORT)}`;

function sentencesOf({ kind, data, address, dropped }: Notice): string {
  const first = kind === FIRST_NEWS ? 'News of your miner will come here.' : newsSentence(kind, data);
  return [
    first ?? kind,
    ...(dropped === 0 ? [] : [`${dropped} more were left out.`]),
    `Miner ${shortOf(address)}`,
  ].join('\n');
}

const json = (value: object): NoticeRequest => ({
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
});

const FORMS: Readonly<Record<Channel, (notice: Notice, sign: (body: string) => string) => NoticeRequest>> = {
  webhook: ({ id, kind, atMillis, address, data, dropped }, sign) => {
    const { headers, body } = json({ id, kind, at_millis: atMillis, address, data, dropped });
    return { headers: { ...headers, 'svc-pool-event': kind, [SIGNATURE_HEADER]: sign(body) }, body };
  },
  // Names of workers must neither call people (@everyone) nor become markup.
  discord: (notice) =>
    json({ content: sentencesOf(notice).replace(/[^\p{L}\p{N}\s]/gu, '\\$&'), allowed_mentions: { parse: [] } }),
  telegram: (notice) => json({ text: sentencesOf(notice), link_preview_options: { is_disabled: true } }),
  ntfy: (notice) => ({
    headers: { 'content-type': 'text/plain; charset=utf-8', title: 'Mining pool' },
    body: sentencesOf(notice),
  }),
};

export const noticeRequest = (
  channel: Channel,
  notice: Notice,
  { secret, wallMillis }: { readonly secret: string; readonly wallMillis: number },
): NoticeRequest => FORMS[channel](notice, (body) => signWebhook(secret, wallMillis, body));
