/** What the log says of a validator that does not sign, so that its operator can act. */
import type { Logger } from '../../runtime/log.ts';
import type { Company, Effect } from './effects.ts';
import { isListening } from './listening.ts';
import type { ConsensusState } from './state.ts';

/** It is said after so many ticks (rule 15) without anybody to listen to, and again after as many. */
const LONELY_TICKS = 60;

export class SigningLog {
  readonly #log: Logger;
  #lonely = 0;

  constructor(log: Logger) {
    this.#log = log;
  }

  say({ do: what, vote: { height, round } }: Effect & { do: 'stop' | 'bar' }): void {
    if (what === 'stop')
      this.#log.error('this validator signs nothing more: its key runs in another process too', { height, round });
    else
      this.#log.warn(
        'votes of this validator came that its log does not have: it signs nothing at this height, and listens again before it signs',
        { height, round },
      );
  }

  tick(state: ConsensusState, { members, named, ahead }: Required<Company>): void {
    const others = [...members, ...ahead.members].filter((member) => member !== state.self);
    const isLonely = isListening(state) && others.length + named + ahead.named === 0;
    this.#lonely = isLonely ? this.#lonely + 1 : 0;
    if (isLonely && this.#lonely % LONELY_TICKS === 0)
      this.#log.warn(
        'this validator waits before it signs: no member of the committee and no neighbour that is named in its settings is connected',
        { height: state.height },
      );
  }
}
