/**
 * How many confirmations the pool sends. Anybody with a share can name any mailbox, so a confirmation may go to a stranger: one mailbox gets few of them, one
 * miner causes few, and all miners together do not make the pool a source of unwanted mail. Keys cost nothing: those who earned something come first, most
 * earnings first, and a part of the hour is kept for them.
 */

/** Confirmations sent: of the last hour, and of the last week. */
export type Sent = {
  readonly allOfHour: number;
  /** Whether the miner has earned something at this pool. */
  readonly isEarner: boolean;
  readonly minersOfHour: number;
  readonly mailboxesOfHour: number;
  readonly mailboxesOfWeek: number;
  /** The holder of the mailbox wants none. */
  readonly isRefused: boolean;
};

export const CONFIRMATIONS = { allOfHour: 60, minersOfHour: 3, mailboxesOfHour: 1, mailboxesOfWeek: 10 } as const;
/** Of all of an hour, what those get who have not earned anything yet. */
export const FOR_NEW_MINERS = CONFIRMATIONS.allOfHour / 2;

/**
 * `never`: it looks to the miner as if it had been sent, which says nothing about the mailbox. `wait`: this one has enough. `full`: the hour has enough, for
 * this one and for all that earned less.
 */
export function confirmationVerdict(sent: Sent): 'send' | 'wait' | 'full' | 'never' {
  if (sent.isRefused) return 'never';
  if (sent.allOfHour >= (sent.isEarner ? CONFIRMATIONS.allOfHour : FOR_NEW_MINERS)) return 'full';
  const isEnough =
    sent.minersOfHour >= CONFIRMATIONS.minersOfHour ||
    sent.mailboxesOfHour >= CONFIRMATIONS.mailboxesOfHour ||
    sent.mailboxesOfWeek >= CONFIRMATIONS.mailboxesOfWeek;
  return isEnough ? 'wait' : 'send';
}
