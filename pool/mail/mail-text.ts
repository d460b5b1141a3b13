/**
 * The texts of the mails. A confirmation may reach a stranger: the mining address is the only part chosen by the miner.
 */
import { type NewsData, newsSentence } from '../webhooks/news-text.ts';

export type MailText = {
  readonly subject: string;
  readonly text: string;
  /** Where a mail program stops these mails by itself (RFC 8058). A person who opens it gets a page with a button. */
  readonly stopUrl: string;
};
export type MailNews = {
  readonly kind: string;
  readonly atMillis: number;
  readonly data: NewsData;
};

export type MailPlace = {
  /** Name of the pool. */
  readonly pool: string;
  readonly publicUrl: string;
  /** The miner's address. */
  readonly address: string;
  readonly code: string;
};

const timeOf = (millis: number): string => `${new Date(millis).toISOString().slice(0, 16).replace('T', ' ')} UTC`;

const stopLinkOf = ({ publicUrl, code }: MailPlace): string => `${publicUrl}/#/mail/stop/${code}`;
/** What is behind # reaches no server: mail programs need a path of their own. */
const stopUrlOf = ({ publicUrl, code }: MailPlace): string => `${publicUrl}/api/v1/mail/stop/${code}`;
const linesOf = (...lines: readonly string[]): string => `${lines.join('\n')}\n`;

export function confirmationMail(place: MailPlace): MailText {
  const { pool, publicUrl, address, code } = place;
  return {
    subject: `${pool}: confirm your e-mail address`,
    stopUrl: stopUrlOf(place),
    text: linesOf(
      `The miner ${address} at the mining pool ${pool} asked for notifications to be sent to this e-mail address.`,
      '',
      'If that is you, confirm it here:',
      `${publicUrl}/#/mail/confirm/${code}`,
      '',
      'If it is not you, do nothing: nothing is sent without a confirmation. To receive no more such requests from this pool, open:',
      stopLinkOf(place),
    ),
  };
}

/** `news` is not empty. */
export function newsMail(place: MailPlace, news: readonly MailNews[], dropped: number): MailText {
  const lines = news.flatMap(({ kind, atMillis, data }) => {
    const line = newsSentence(kind, data);
    return line === undefined ? [] : [`${timeOf(atMillis)}  ${line}`];
  });
  return {
    subject: `${place.pool}: notifications about your miner (${news.length + dropped})`,
    stopUrl: stopUrlOf(place),
    text: linesOf(
      `Miner ${place.address}`,
      '',
      ...lines,
      ...(dropped === 0 ? [] : ['', `${dropped} more were left out.`]),
      '',
      `${place.publicUrl}/#/miner/${place.address}`,
      '',
      'To stop these e-mails, open:',
      stopLinkOf(place),
    ),
  };
}
