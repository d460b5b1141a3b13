/**
 * The interfaces that a session uses: the state that all sessions of a listener share (`SessionDesk`), and its own
 * connection for everything else (`SessionHost`). Calls go one way: desk, conversation, session; answers come back
 * through the host.
 */
import type { Address } from '../../protocol/address.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import type { Network } from '../../protocol/network.ts';
import type { RefusalCode } from '../../protocol/stratum/errors.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { ServedTemplate } from '../nodes/served-template.ts';
import type { StratumLimits } from '../options.ts';
import type { Balance, Member } from '../threads/hub.ts';
import type { Fault } from './ban-score.ts';
import type { TemplateShelf } from './job-book.ts';
import type { PendingShare } from './pending-share.ts';
import type { Voice } from './voice.ts';

export type ConnectionNumbers = { readonly owner: Bytes; readonly prefix: number; readonly handle: number };

export interface SessionDesk {
  readonly network: Network;
  readonly server: string;
  readonly limits: StratumLimits;
  readonly bootId: Bytes;
  readonly ready: boolean;
  /** Whether the sink is asked before a connection may have jobs. */
  readonly asksSink: boolean;
  readonly headHeight: number;
  readonly shelf: TemplateShelf<ServedTemplate>;
  readonly now: SteadyClock;
  newest(draw: number): ServedTemplate | undefined;
  /** The place of the newest cut that any node has told of (nodes/told-cuts.ts): its template may come here later than elsewhere. */
  readonly toldCuts: number;
  /** The template that came just before the newest, for the same draw. */
  before(draw: number): ServedTemplate | undefined;
  /** An address of the network (known-addresses.ts); throws what parseAddress throws. */
  readonly readAddress: (text: string) => Address;
  newNumbers(mark?: number): ConnectionNumbers;
  newSessionId(): string;
  /** The draw of an account's own templates (nodes/origin-job.ts); -1 while it has none. */
  partOf(account: string): number;
  /** The next generation that no connection of the part has had, and at least this one; undefined after the last. */
  takeGeneration(first: number, part: number): number | undefined;
  /** How many generations are left out before the next one. */
  drawSteps(): number;
  /** A prefix that no connection of any thread has, and that it is free again. */
  takePrefix(): number;
  freePrefix(prefix: number): void;
}

export interface SessionHost extends Voice {
  /** Answered by `resumed`. */
  resume(sessionId: string): void;
  /** Answered by `owned` or `notOwned`. */
  own(member: Member): void;
  /** Milliseconds that the operator's ban of this address or account still lasts; 0 for none. */
  banLeft(account: Bytes): number;
  /** The session mines from now on. */
  joined(member: Member): void;
  /** Whether its address has a fair share left of what the listener can verify, and that it uses some. */
  mayVerify(nowMillis: number): boolean;
  verifies(nowMillis: number): void;
  /** Answered by `accepted` or `refused`. */
  check(share: PendingShare): void;
  /** Whether its faults are not scored: it is on this machine, or on the operator's list. */
  readonly isExempt: boolean;
  /** It submits more than one connection may. */
  exceeds(): void;
  /** A fault before authorization: it counts against the address too, unless somebody else works there. */
  faultOfAddress(fault: Fault): void;
  /** A share of the session was accepted. */
  works(): void;
  balance(member: Member, tell: (balance: Balance | null) => void): void;
  /** How many of the rigs asked for it may have. */
  admitRigs(asked: number): number;
  /** The first share of a rig. */
  rigJoined(member: Member): void;
  /** Rigs whose names are gone. */
  rigsLeft(members: readonly Member[]): void;
  refusedShare(member: Pick<Member, 'service' | 'account' | 'worker'>, code: RefusalCode, isOfWorker: boolean): void;
  /** An entry for the session log, made only if there is one. */
  note(entry: () => Bytes | null): void;
  /** The session wants receipts. */
  wantsReceipts(): void;
  defect(error: unknown): void;
}
