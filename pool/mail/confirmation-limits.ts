/**
 * How many confirmations the pool sends. Anybody with a share can name any mailbox, so a confirmation may go to a stranger: one mailbox gets few of them, one
 * miner causes few, and all miners together do not make the pool a source of unwanted mail.
 */

/** Confirmations sent: of the last hour, and of the last week. */
export type Sent = {
  readonly allOfHour: number;
  readonly minersOfHour: number;
  readonly mailboxesOfHour: number;
  readonly mailboxesOfWeek: number;
  /** The holder of the mailbox wants none. */
  readonly isRefused: boolean;
};

export const CONFIRMATIONS = { allOfHour: 60, minersOfHour: 3, mailboxesOfHour: 1, mailboxesOfWeek: 10 } as const;

/** `never`: it looks to the miner as if it had been sent, which says nothing about the mailbox. */
export function confirmationVerdict(sent: Sent): 'send' | 'wait' | 'never' {
  if (sent.isRefused) return 'never';
  const isEnough =
    sent.allOfHour >= CONFIRMATIONS.allOfHour ||
    sent.minersOfHour >= CONFIRMATIONS.minersOfHour ||
    sent.mailboxesOfHour >= CONFIRMATIONS.mailboxesOfHour ||
    sent.mailboxesOfWeek >= CONFIRMATIONS.mailboxesOfWeek;
  return isEnough ? 'wait' : 'send';
}
