/**
 * The roll call (consensus rule 23). A member that listens before it signs (rule 21) asks its neighbours whether its key runs in another process too. A neighbour knows: both processes proved the key to it, and each has a name of its own
 * (rule 22). It answers at once, and hands the call on to the other process; that one, where it signs, answers with a signature over the name of the process that asks, and its call. Calls are random values, so the signature proves that the key
 * ran elsewhere when it was asked, whatever clocks say and however slow everybody is. Until the signature is there, the word of the neighbours keeps the time of rule 21 from going on.
 */
import { type KeyObject, randomBytes } from 'node:crypto';
import { type Bytes, concat, equalBytes, toHex } from '../../protocol/bytes.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { Logger } from '../../runtime/log.ts';
import { signMessageAside, verifyMessage } from '../ml-dsa.ts';
import type { Peer } from './effects.ts';
import { isListening } from './listening.ts';
import {
  CALL_BYTES,
  type Caller,
  decodeRollCall,
  encodeRollCall,
  hereMessage,
  isBefore,
  type RollCallMessage,
} from './roll-call-messages.ts';
import type { ConsensusState } from './state.ts';
import type { Proven, Transport } from './transport.ts';

/** Ticks for which the answer to a call counts, from the call on. */
export const ANSWER_TICKS = 4;
/** Ticks for which a process that asked is known to listen; it asks at every one. With those of an answer it is no more than the shortest time of listening: what a neighbour said of a process that signs by now ends before. */
export const LISTENS_TICKS = 2;
/** Ticks for which the signature of another process counts, from the call on: it may have been slow. */
const HERE_TICKS = 128;
/** Ticks between two calls of one process that are handed on: the answer to them is long. */
const HAND_ON_TICKS = 8;
/** Signatures for processes that ask are kept for as many. */
const KEPT_SIGNATURES = 16;

export type Answer = 'clear' | 'taken';

export type RollCallDependencies = {
  readonly transport: Pick<Transport, 'process' | 'proven' | 'peers' | 'known' | 'send'>;
  readonly chainId: Bytes;
  readonly signer?: { readonly publicKey: Bytes; readonly privateKey: KeyObject } | undefined;
  readonly state: ConsensusState;
  readonly log: Pick<Logger, 'error'>;
  /** Where a neighbour says it is. */
  isAt(peer: Peer, height: number): void;
  /** The own key signs in another process. */
  found(): void;
};

type HeardCall = { readonly tick: number; readonly hasStopped: boolean };

export class RollCall {
  readonly #with: RollCallDependencies;
  #tick = 0;
  /** Of processes that listen, or have stopped. */
  readonly #asked = new Map<Peer, HeardCall>();
  readonly #handedOn = new Map<Peer, number>();
  readonly #answers = new Map<Peer, { readonly tick: number; readonly answer: Answer }>();
  readonly #signatures = new BoundedMap<string, Bytes>(KEPT_SIGNATURES);
  /** Since the last tick each neighbour is given one signature, and may send one that is false. Two processes that come to their end together both give one and both get one: the first must not keep them from reading the second. */
  readonly #signedFor = new Set<Peer>();
  readonly #false = new Set<Peer>();
  /** Ticks of the own calls. */
  readonly #calls = new BoundedMap<string, number>(HERE_TICKS);
  #call = this.#newCall();
  #listened = false;

  constructor(dependencies: RollCallDependencies) {
    this.#with = dependencies;
  }

  #newCall(): Bytes {
    const call = randomBytes(CALL_BYTES);
    this.#calls.set(toHex(call), this.#tick);
    return call;
  }

  joined(peer: Peer): void {
    const caller = this.#caller;
    if (caller === 'listens' || caller === 'stopped') this.#say(caller, [peer]);
  }

  left(peer: Peer): void {
    for (const known of [this.#asked, this.#handedOn, this.#answers]) known.delete(peer);
  }

  tick(): void {
    this.#tick++;
    this.#signedFor.clear();
    this.#false.clear();
    const caller = this.#caller;
    if (caller === 'listens') this.#call = this.#newCall();
    // Once: who does not ask is known to sign.
    if (caller !== undefined && (caller !== 'signs' || this.#listened)) this.#say(caller, this.#with.transport.known());
    this.#listened = caller === 'listens';
  }

  /** The neighbour's newest answer; undefined where it gave none lately. */
  answerOf(peer: Peer): Answer | undefined {
    const given = this.#answers.get(peer);
    return given !== undefined && this.#tick - given.tick < ANSWER_TICKS ? given.answer : undefined;
  }

  /** False where it is a message of another kind. Throws a ProtocolError for one that is malformed. */
  take(peer: Peer, bytes: Bytes): boolean {
    const message = decodeRollCall(bytes);
    if (message === undefined) return false;
    if (message.type === 'answer') this.#takeAnswer(peer, message);
    else if (message.type === 'here') this.#takeHere(peer, message, bytes);
    else this.#takeCall(peer, message, bytes);
    return true;
  }

  /** One that has stopped says so: it is in nobody's way. */
  get #caller(): Caller | undefined {
    const { signer, state } = this.#with;
    if (signer === undefined) return undefined;
    if (state.stopped) return 'stopped';
    return isListening(state) ? 'listens' : state.self >= 0 ? 'signs' : undefined;
  }

  #say(caller: Caller, peers: readonly Peer[]): void {
    const { transport } = this.#with;
    const bytes = encodeRollCall({ type: 'call', process: transport.process, call: this.#call, caller });
    for (const peer of peers) transport.send(peer, bytes);
  }

  /** The tick of an own call, where it is at most so many ticks old. */
  #calledAt(call: Bytes, ticks: number): number | undefined {
    const tick = this.#calls.get(toHex(call));
    return tick !== undefined && this.#tick - tick < ticks ? tick : undefined;
  }

  #takeAnswer(peer: Peer, { process, call, isTaken, height }: RollCallMessage & { type: 'answer' }): void {
    const tick = this.#calledAt(call, ANSWER_TICKS);
    if (!equalBytes(process, this.#with.transport.process) || tick === undefined) return;
    // A later call is answered already.
    if ((this.#answers.get(peer)?.tick ?? -1) > tick) return;
    this.#answers.set(peer, { tick, answer: isTaken ? 'taken' : 'clear' });
    this.#with.isAt(peer, height);
  }

  #takeCall(peer: Peer, { process, call, caller }: RollCallMessage & { type: 'call' }, bytes: Bytes): void {
    const { transport, signer, state } = this.#with;
    const asker = transport.proven(peer);
    // Of a process that proved no key nobody can say whose key it asks about.
    const isOfSender = asker !== undefined && equalBytes(asker.process, process);
    if (!isOfSender) {
      if (caller !== 'stopped') this.#answerFor(peer, process, call);
      return;
    }
    const others = this.#othersOf(asker);
    if (caller === 'signs') {
      if (this.#asked.delete(peer)) this.#signsNow(others, bytes);
      return;
    }
    this.#asked.set(peer, { tick: this.#tick, hasStopped: caller === 'stopped' });
    if (caller !== 'listens') return;
    const isOwn = signer !== undefined && equalBytes(asker.key, signer.publicKey) && !state.stopped;
    const isTaken =
      others.some((other) => !this.#givesWay(other, asker)) ||
      (isOwn && !(isListening(state) && isBefore(process, transport.process)));
    transport.send(peer, encodeRollCall({ type: 'answer', process, call, isTaken, height: state.height }));
    if (isOwn) this.#answerFor(peer, process, call);
    if (others.length === 0 || this.#tick - (this.#handedOn.get(peer) ?? -HAND_ON_TICKS) < HAND_ON_TICKS) return;
    this.#handedOn.set(peer, this.#tick);
    for (const other of others) transport.send(other, bytes);
  }

  /** It has listened. Another one that still does is answered by it from now on, so the next call is handed on at once; and one that has come to its end at the same time answers this last call. */
  #signsNow(others: readonly Peer[], bytes: Bytes): void {
    for (const other of others) {
      this.#handedOn.delete(other);
      this.#with.transport.send(other, bytes);
    }
  }

  /** Connections of other processes with the same key that may sign, now or later. */
  #othersOf({ key, process }: Proven): Peer[] {
    const { transport } = this.#with;
    return transport.peers().filter((peer) => {
      const other = transport.proven(peer);
      if (other === undefined || equalBytes(other.process, process) || !equalBytes(other.key, key)) return false;
      return this.#asked.get(peer)?.hasStopped !== true;
    });
  }

  /** Of two that listen the one that started first goes on, at whichever neighbour they meet. One that does not ask signs already. */
  #givesWay(other: Peer, asker: Proven): boolean {
    const asked = this.#asked.get(other);
    if (asked === undefined || this.#tick - asked.tick >= LISTENS_TICKS) return false;
    return isBefore(asker.process, (this.#with.transport.proven(other) as Proven).process);
  }

  /** Somebody asks whether this process's key runs here too. */
  #answerFor(peer: Peer, process: Bytes, call: Bytes): void {
    const { transport, signer, state, chainId, log } = this.#with;
    if (signer === undefined || state.self < 0 || state.stopped || isListening(state)) return;
    if (equalBytes(process, transport.process) || !transport.known().includes(peer)) return;
    if (this.#signedFor.has(peer)) return;
    this.#signedFor.add(peer);
    const name = toHex(concat(process, call));
    const give = (signature: Bytes) =>
      transport.send(peer, encodeRollCall({ type: 'here', process, call, by: transport.process, signature }));
    const known = this.#signatures.get(name);
    if (known !== undefined) {
      give(known);
      return;
    }
    signMessageAside(signer.privateKey, hereMessage(chainId, process, call, transport.process)).then(
      (signature) => {
        this.#signatures.set(name, signature);
        give(signature);
      },
      (error) => log.error('a roll call could not be answered', { error }),
    );
  }

  #takeHere(peer: Peer, { process, call, by, signature }: RollCallMessage & { type: 'here' }, bytes: Bytes): void {
    const { transport, signer, chainId, state, found } = this.#with;
    if (signer !== undefined && equalBytes(process, transport.process)) {
      if (state.stopped || this.#false.has(peer) || !transport.known().includes(peer)) return;
      // Of a call of long ago: the other process may have ended since.
      if (this.#calledAt(call, HERE_TICKS) === undefined) return;
      const isOther = !equalBytes(by, process);
      if (isOther && verifyMessage(signer.publicKey, hereMessage(chainId, process, call, by), signature)) found();
      else this.#false.add(peer);
      return;
    }
    const sender = transport.proven(peer);
    if (sender === undefined || !equalBytes(sender.process, by)) return;
    for (const other of transport.peers()) {
      const asker = transport.proven(other);
      if (asker !== undefined && equalBytes(asker.process, process) && equalBytes(asker.key, sender.key))
        transport.send(other, bytes);
    }
  }
}
