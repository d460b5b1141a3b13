/** The interface for sending a mail. */
import type { MailText } from './mail-text.ts';

/**
 * `mailbox`: the server refuses mail for this mailbox. `later`: a temporary refusal. `away`: the server cannot be
 * reached, or refuses all mails of the pool. In these cases nothing was sent. `unsure`: the connection was lost during
 * the mail, which may have arrived.
 */
export type MailFailure = { readonly kind: 'mailbox' | 'later' | 'away' | 'unsure'; readonly reason: string };

/** What became of a mail that was handed to the server. */
export type MailResult = 'sent' | MailFailure['kind'];

/** Mails since the start, by result. */
export type MailTally = Record<MailResult, number>;
export const emptyTally = (): MailTally => ({ sent: 0, mailbox: 0, later: 0, away: 0, unsure: 0 });

export interface Mailer {
  /** Undefined if the server accepted it. Never throws. */
  send(mailbox: string, mail: MailText): Promise<MailFailure | undefined>;
  /** Aborts pending mails. */
  close(): void;
}
