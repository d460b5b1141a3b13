/** Reports in the log and in the metrics when a validator gains or loses its seat, and why it has none. */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Logger } from '../../runtime/log/log.ts';
import type { FullNode } from '../full-node.ts';
import { STANDINGS, type Standing, standingOf, validatorOfKey } from './validator-state.ts';

export type SeatDependencies = {
  readonly node: Pick<FullNode, 'chain'>;
  /** The consensus key of this node. */
  readonly key: Bytes;
  /** From the configuration; otherwise the validator is found by its key. */
  readonly validatorId?: Bytes | undefined;
  readonly log: Logger;
};

export type Seat = {
  readonly validator: Bytes;
  readonly standing: Standing;
  /** Also of one that exits, to the end of the epoch. */
  readonly hasSeat: boolean;
  /** Epochs since the last final heartbeat; undefined of one that is not registered. */
  readonly heartbeatAge: number | undefined;
};

export class SeatWatch {
  readonly #with: SeatDependencies;
  #told: { readonly standing: Standing; readonly epoch: number } | undefined;

  constructor(dependencies: SeatDependencies) {
    this.#with = dependencies;
  }

  seat(): Seat {
    const { node, key, validatorId } = this.#with;
    const staking = node.chain.staking();
    const validator = validatorId ?? validatorOfKey(staking, key);
    const standing = standingOf(staking, validator, key);
    const heartbeat = staking.validator(validator)?.heartbeatEpoch;
    return {
      validator,
      standing,
      hasSeat: standing === 'member' || standing === 'exiting',
      heartbeatAge: heartbeat === undefined ? undefined : Math.max(0, staking.epoch - heartbeat),
    };
  }

  /** Called at the start and after every cut: one line for every change, and one per epoch while action is needed. */
  tick(): void {
    const { node, log } = this.#with;
    const { epoch } = node.chain.staking();
    const { validator, standing } = this.seat();
    const before = this.#told;
    const { severity, says, ...more } = STANDINGS[standing];
    if (before?.standing === standing && (severity === 'none' || before.epoch === epoch)) return;
    this.#told = { standing, epoch };
    const fields = { validator, epoch, standing, why: says, ...more };
    if (standing === 'member') log.info('this validator has a seat', { validator, epoch });
    else if (severity === 'none') log.info('this validator has no seat', fields);
    else if (before?.standing === 'member') log.warn('this validator has lost its seat', fields);
    else log.warn('this validator has no seat', fields);
  }
}
