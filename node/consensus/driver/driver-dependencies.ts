/** Dependencies of the consensus driver. */
import type { KeyObject } from 'node:crypto';
import type { Bytes } from '../../../protocol/bytes.ts';
import type { Evidence } from '../../../protocol/staking/operation.ts';
import type { WallClock } from '../../../runtime/clock/clock.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import type { FullNode } from '../../full-node.ts';
import type { Effect, Event } from '../engine/effects.ts';
import type { ConsensusState } from '../engine/state.ts';
import type { ConsensusLog, OpenedLog } from '../log/log-file.ts';
import type { Transport } from '../reach/transport.ts';
import type { ConsensusFigures } from './figures.ts';

/** A member: its key and its log. A node without one follows. */
export type Signer = Pick<OpenedLog, 'recovered' | 'coversTo'> & {
  readonly publicKey: Bytes;
  readonly privateKey: KeyObject;
  readonly log: Pick<ConsensusLog, 'append' | 'close'>;
};

export type DriverDependencies = {
  readonly node: FullNode & { readonly ledger: CutLedger };
  readonly transport: Transport;
  readonly signer?: Signer;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  now(): number;
  /** The same by a monotonic clock. */
  steady(): number;
  /** The raw system clock, if not the default: used to detect that the process was suspended. */
  readonly wall?: WallClock;
  /** Called with each event before the engine, and with the effects. */
  readonly watch?: (event: Event, effects: readonly Effect[], state: ConsensusState) => void;
  readonly onStep?: ConsensusFigures['step'] | undefined;
  /** Called for each message of a neighbour that is lost by an error of this node. */
  readonly onLost?: (() => void) | undefined;
  readonly onEvidence?: ((evidence: Evidence) => void) | undefined;
};
