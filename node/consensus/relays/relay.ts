/**
 * The relay's side of circuits (consensus rule 24). Connected members request a slot, and circuits to others that have
 * one; both ends then connect with separate tokens, and their bytes are forwarded. The handshake of rule 22 runs
 * between the two ends, so a relay can end a circuit, but cannot insert messages or impersonate an end.
 */
import { randomBytes } from 'node:crypto';
import { type Bytes, toHex } from '../../../protocol/bytes.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Peer } from '../engine/effects.ts';
import { Allowance } from '../link/allowance.ts';
import type { Role } from '../link/channel.ts';
import { JOINED, TOKEN_BYTES } from '../link/frames.ts';
import type { OverlaySocket } from '../link/quic-socket.ts';
import { encodeCircuitMessage } from './circuit-messages.ts';
import { CircuitPipe } from './circuit-pipe.ts';
import { CIRCUIT } from './relay-limits.ts';
import { type Circuit, type CircuitRefusal, RelaySlots } from './relay-slots.ts';

export type RelayDependencies = {
  readonly steady: SteadyClock;
  send(peer: Peer, bytes: Bytes): void;
};

/** A connected member. */
export type RelayClient = { readonly peer: Peer; readonly name: string; readonly id: Bytes };

type Expected = { readonly circuit: Circuit; readonly role: Role };

export class Relay {
  readonly #with: RelayDependencies;
  readonly #slots = new RelaySlots();
  /** By token. */
  readonly #expected = new Map<string, Expected>();
  /** First halves of circuits, by number. */
  readonly #halves = new Map<number, OverlaySocket>();
  /** Open circuits, by number. */
  readonly #pipes = new Map<number, CircuitPipe>();
  readonly #together: Allowance;

  constructor(dependencies: RelayDependencies) {
    this.#with = dependencies;
    this.#together = new Allowance(CIRCUIT.together, dependencies.steady(), CIRCUIT.mostMillis);
  }

  /** Numbers of open circuits, and of those that wait for their ends. */
  get circuits(): number {
    return this.#slots.size;
  }

  slot({ peer, name }: RelayClient): void {
    if (this.#slots.grant(name, peer)) this.#with.send(peer, encodeCircuitMessage({ type: 'granted' }));
  }

  /** Undefined if both ends were invited. */
  circuit(from: RelayClient, to: { readonly name: string; readonly id: Bytes }): CircuitRefusal | undefined {
    const circuit = this.#slots.open(from.name, to.name, this.#with.steady());
    if (typeof circuit === 'string') return circuit;
    this.#invite(circuit, 'dialler', from.peer, to.id);
    this.#invite(circuit, 'dialled', this.#slots.at(to.name) as Peer, from.id);
    return undefined;
  }

  #invite(circuit: Circuit, role: Role, peer: Peer, validator: Bytes): void {
    const token = randomBytes(TOKEN_BYTES);
    this.#expected.set(toHex(token), { circuit, role });
    this.#with.send(peer, encodeCircuitMessage({ type: 'invitation', validator, role, token }));
  }

  isExpected(token: Bytes): boolean {
    return this.#expected.has(toHex(token));
  }

  /** A connection that began with a token that is expected. A token is valid once. */
  arrived(socket: OverlaySocket, token: Bytes): void {
    const name = toHex(token);
    const { circuit } = this.#expected.get(name) as Expected;
    // An error on a waiting half must not end this process.
    socket.on('error', () => undefined);
    this.#expected.delete(name);
    const first = this.#halves.get(circuit.number);
    if (first === undefined) {
      this.#halves.set(circuit.number, socket);
      socket.once('close', () => this.#halves.get(circuit.number) === socket && this.#forget(circuit.number));
      return;
    }
    this.#halves.delete(circuit.number);
    this.#join(circuit, first, socket);
  }

  #join(circuit: Circuit, one: OverlaySocket, other: OverlaySocket): void {
    circuit.isOpen = true;
    for (const socket of [one, other]) socket.write(JOINED);
    const pipe = new CircuitPipe([one, other], this.#together, this.#with.steady, () => {
      this.#pipes.delete(circuit.number);
      this.#slots.end(circuit.number);
    });
    this.#pipes.set(circuit.number, pipe);
  }

  left(peer: Peer): void {
    this.#slots.left(peer);
  }

  /** Connected members, and validators that the chain lists now. */
  tick(members: ReadonlySet<string>, listed: ReadonlySet<string>): void {
    const now = this.#with.steady();
    this.#slots.keep(members, listed);
    for (const number of this.#slots.late(now)) this.#forget(number);
    for (const number of this.#slots.unlisted(listed, now)) {
      this.#pipes.get(number)?.end();
      this.#forget(number);
    }
  }

  close(): void {
    for (const pipe of [...this.#pipes.values()]) pipe.end();
    for (const number of [...this.#halves.keys()]) this.#forget(number);
  }

  /** A circuit that was never established. */
  #forget(number: number): void {
    this.#slots.end(number);
    for (const [token, { circuit }] of this.#expected) if (circuit.number === number) this.#expected.delete(token);
    const half = this.#halves.get(number);
    this.#halves.delete(number);
    half?.destroy();
  }
}
