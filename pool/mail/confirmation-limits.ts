/**
 * How many confirmations the pool sends. Anybody with a share can name any mailbox, so a confirmation may go to a
 * stranger: one mailbox gets few of them, one miner causes few, and all miners together do not make the pool a source
 * of unwanted mail. Keys cost nothing: so miners with earnings come first, highest first, and part of the hourly limit
 * is reserved for them.
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
/** The part of the hourly limit for miners without earnings. */
export const FOR_NEW_MINERS = CONFIRMATIONS.allOfHour / 2;

/**
 * `never`: not sent, but to the miner it looks as if it were, which reveals nothing about the mailbox. `wait`: the
 * limit of this miner or mailbox is reached. `full`: the hourly limit is reached, for this miner and all with lower
 * earnings.
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
