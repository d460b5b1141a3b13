/** The interface for sending a mail. */
import type { MailText } from './mail-text.ts';

/**
 * `mailbox`: the server refuses mail for this mailbox. `later`: a temporary refusal. `away`: the server cannot be
 * reached, or refuses all mails of the pool. In these cases nothing was sent. `unsure`: the connection was lost during
 * the mail, which may have arrived.
 */
export type MailFailure = { readonly kind: 'mailbox' | 'later' | 'away' | 'unsure'; readonly reason: string };

export interface Mailer {
  /** Undefined if the server accepted it. Never throws. */
  send(mailbox: string, mail: MailText): Promise<MailFailure | undefined>;
  /** Aborts pending mails. */
  close(): void;
}
