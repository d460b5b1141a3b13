/** Options and dependencies of a listener's desk. */
import type { Verifier } from '../../kernels/verifier.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import type { Network } from '../../protocol/network.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { StratumLimits } from '../options.ts';
import type { Hub, MemberBook } from '../threads/hub.ts';

export type DeskOptions = {
  readonly network: Network;
  readonly server: string;
  readonly limits: StratumLimits;
  readonly thread: number;
  readonly bootId: Bytes;
  /** Whether the sink is asked before a connection may have jobs. */
  readonly asksSink: boolean;
  /** Whether there is a session log. */
  readonly keepsSessions: boolean;
  /** Connection counts of all threads, and of this one (connection-count.ts). */
  readonly counts: SharedArrayBuffer;
  readonly ownCounts: SharedArrayBuffer;
  /** Addresses and networks that are never banned. */
  readonly allow: readonly string[];
  /** Shared by all threads of a server (extranonce.ts). */
  readonly connectionNumbers: SharedArrayBuffer;
};

export type DeskDependencies = {
  readonly hub: Hub;
  /** Set where members are named by their handle: over a port to another thread. */
  readonly members?: MemberBook;
  readonly verifier: Pick<Verifier, 'hashMany'>;
  /** Milliseconds since 1970, never going back (runtime/clock/clock.ts). */
  readonly now: SteadyClock;
  /** Runs a function after the remaining reads of this turn of the event loop. */
  readonly soon: (run: () => void) => void;
  readonly randomBytes: (count: number) => Bytes;
  readonly log: (
    level: 'error' | 'warn' | 'info' | 'debug',
    message: string,
    fields: Readonly<Record<string, unknown>>,
  ) => void;
};
