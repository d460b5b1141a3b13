/** What sends a mail. */
import type { MailText } from './mail-text.ts';

/**
 * `mailbox`: the server does not take this mail for it. `later`: not now. `away`: the server cannot be reached, or does not take the pool's mails at all. With
 * these nothing was sent. `unsure`: the connection ended within the mail, which may have arrived.
 */
export type MailFailure = { readonly kind: 'mailbox' | 'later' | 'away' | 'unsure'; readonly reason: string };

export interface Mailer {
  /** Undefined when the server has it. Never throws. */
  send(mailbox: string, mail: MailText): Promise<MailFailure | undefined>;
  /** Ends what is under way. */
  close(): void;
}
