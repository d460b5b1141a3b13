/**
 * The bytes of a circuit, from each of its ends to the other. They are read no faster than the other end accepts them
 * and the allowances permit, so little is buffered here.
 */

import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import { Timers } from '../../../runtime/clock/timers.ts';
import { Allowance } from '../link/allowance.ts';
import type { OverlaySocket } from '../link/quic-socket.ts';
import { CIRCUIT } from './relay-limits.ts';

export type PipeLimits = { readonly bytes: { perSecond: number; burst: number }; readonly idleMillis: number };

export class CircuitPipe {
  readonly #sockets: readonly [OverlaySocket, OverlaySocket];
  readonly #timers = new Timers();
  readonly #ended: () => void;
  #isOver = false;

  /** `together`: the allowance shared by all circuits. */
  constructor(
    sockets: readonly [OverlaySocket, OverlaySocket],
    together: Allowance,
    steady: SteadyClock,
    ended: () => void,
    { bytes, idleMillis }: PipeLimits = CIRCUIT,
  ) {
    this.#sockets = sockets;
    this.#ended = ended;
    const [one, other] = sockets;
    for (const socket of sockets) {
      socket.on('error', () => this.end());
      socket.on('close', () => this.end());
      socket.setTimeout(idleMillis, () => this.end());
    }
    this.#carry(one, other, [new Allowance(bytes, steady()), together], steady);
    this.#carry(other, one, [new Allowance(bytes, steady()), together], steady);
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timers.close();
    for (const socket of this.#sockets) {
      // What its end has not read would stay in the kernel for minutes.
      socket.resetAndDestroy?.();
      socket.destroy();
    }
    this.#ended();
  }

  #carry(from: OverlaySocket, to: OverlaySocket, allowances: readonly Allowance[], steady: SteadyClock): void {
    let holds = 0;
    const release = () => {
      if (--holds === 0 && !this.#isOver) from.resume();
    };
    from.on('data', (piece: Buffer) => {
      const isTaken = to.write(piece);
      const now = steady();
      const millis = Math.max(...allowances.map((allowance) => allowance.spend(piece.length, now)));
      if (!isTaken) {
        holds++;
        to.once('drain', release);
      }
      if (millis > 0) {
        holds++;
        this.#timers.later(millis, release);
      }
      if (holds > 0) from.pause();
    });
    from.resume();
  }
}
