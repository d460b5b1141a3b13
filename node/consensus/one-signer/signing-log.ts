/** Log messages about a validator that does not sign, for its operator. */
import type { Logger } from '../../../runtime/log/log.ts';
import type { Company, Effect } from '../engine/effects.ts';
import { isListening, type Waits, waitsFor } from '../engine/listening.ts';
import type { ConsensusState } from '../engine/state.ts';

/** Logged after this many ticks (rule 15) of the same wait, and again after as many. */
const WAITING_TICKS = 60;

const WAITS: Readonly<Record<Waits, { readonly message: string; readonly advice: string }>> = {
  nobody: {
    message:
      'this validator waits before it signs: no member of the committee and no neighbour that is named in its settings is connected and answers',
    advice: 'check the neighbours in its settings and the port of the overlay',
  },
  few: {
    message: 'this validator waits before it signs: connected members have a third of the stake or less',
    advice: 'it signs within two minutes; name more validators as neighbours to make this shorter',
  },
  ahead: {
    message: 'this validator waits before it signs: members say that the chain is further, and do not send its cuts',
    advice: 'name a neighbour that has the cuts from this height on, or start from a newer copy of the store',
  },
  taken: {
    message: 'this validator waits before it signs: another process with its key is connected to its neighbours',
    advice: 'stop the other process for good, or this one; one that was killed is forgotten within a minute',
  },
  store: {
    message: 'this validator waits before it signs: its log is further than its store',
    advice:
      'name a neighbour that has the cuts from this height on, or put the store back that belongs to the log; never remove the log',
  },
};

export class SigningLog {
  readonly #log: Logger;
  #waits: Waits | undefined;
  #ticks = 0;

  constructor(log: Logger) {
    this.#log = log;
  }

  say({ do: what, vote: { height, round } }: Effect & { do: 'stop' | 'bar' }): void {
    if (what === 'stop')
      this.#log.error('this validator signs nothing more: its key runs in another process too', { height, round });
    else
      this.#log.warn(
        'votes of this validator came that its log does not have: it signs nothing up to this height, and listens again before it signs',
        { height, round },
      );
  }

  woke(state: ConsensusState): void {
    if (isListening(state) && !state.stopped)
      this.#log.warn('this process did not run for a while, or its clock was set: it listens before it signs', {
        height: state.height,
      });
  }

  tick(state: ConsensusState, company: Company): void {
    const waits = waitsFor(state, company);
    this.#ticks = waits === undefined || waits !== this.#waits ? 0 : this.#ticks + 1;
    this.#waits = waits;
    if (waits === undefined || (this.#ticks + 1) % WAITING_TICKS !== 0) return;
    const { message, advice } = WAITS[waits];
    const { height, recovered } = state;
    this.#log.warn(message, { height, ...(waits === 'store' && { log_height: recovered?.height }), advice });
  }
}
