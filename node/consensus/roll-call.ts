/**
 * The roll call (consensus rule 23). A member that listens before it signs (rule 21) asks its neighbours whether its key runs in another process too. A neighbour knows: both processes proved the key to it, and each has a name of its own
 * (rule 22). It answers at once, and hands the call on to the other process; that one, where it signs, answers with a signature over the name of the process that asks. This name is new with every start, so the signature proves that the key
 * runs elsewhere now, whatever clocks say and however slow everybody is. Until the signature is there, the word of the neighbours keeps the time of rule 21 from going on.
 */
import type { KeyObject } from 'node:crypto';
import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { Logger } from '../../runtime/log.ts';
import { signMessageAside, verifyMessage } from '../ml-dsa.ts';
import type { Peer } from './effects.ts';
import { isListening } from './listening.ts';
import { decodeRollCall, encodeRollCall, hereMessage, isBefore, type RollCallMessage } from './roll-call-messages.ts';
import type { ConsensusState } from './state.ts';
import type { Proven, Transport } from './transport.ts';

/** Ticks for which an answer counts, and for which a process that asked is known to listen. */
const ANSWER_TICKS = 8;
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

type Call = { readonly tick: number; readonly hasStopped: boolean };

export class RollCall {
  readonly #with: RollCallDependencies;
  #tick = 0;
  /** Of processes that listen, or have stopped. */
  readonly #asked = new Map<Peer, Call>();
  readonly #handedOn = new Map<Peer, number>();
  readonly #answers = new Map<Peer, { readonly tick: number; readonly answer: Answer }>();
  readonly #signatures = new BoundedMap<string, Bytes>(KEPT_SIGNATURES);
  /** Neighbours for which a signature was made, or one of which was false, since the last tick: each has one. */
  readonly #spent = new Set<Peer>();

  constructor(dependencies: RollCallDependencies) {
    this.#with = dependencies;
  }

  joined(peer: Peer): void {
    if (this.#asks) this.#ask([peer]);
  }

  left(peer: Peer): void {
    for (const known of [this.#asked, this.#handedOn, this.#answers]) known.delete(peer);
  }

  tick(): void {
    this.#tick++;
    this.#spent.clear();
    if (this.#asks) this.#ask(this.#with.transport.known());
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
  get #asks(): boolean {
    const { signer, state } = this.#with;
    return signer !== undefined && (isListening(state) || state.stopped);
  }

  #ask(peers: readonly Peer[]): void {
    const { transport, state } = this.#with;
    const call = encodeRollCall({ type: 'call', process: transport.process, hasStopped: state.stopped });
    for (const peer of peers) transport.send(peer, call);
  }

  #takeAnswer(peer: Peer, { process, isTaken, height }: RollCallMessage & { type: 'answer' }): void {
    if (!equalBytes(process, this.#with.transport.process)) return;
    this.#answers.set(peer, { tick: this.#tick, answer: isTaken ? 'taken' : 'clear' });
    this.#with.isAt(peer, height);
  }

  #takeCall(peer: Peer, { process, hasStopped }: RollCallMessage & { type: 'call' }, bytes: Bytes): void {
    const { transport, signer, state } = this.#with;
    const asker = transport.proven(peer);
    // Of a process that proved no key nobody can say whose key it asks about.
    const isOfSender = asker !== undefined && equalBytes(asker.process, process);
    if (!isOfSender) {
      this.#answerFor(peer, process);
      return;
    }
    this.#asked.set(peer, { tick: this.#tick, hasStopped });
    if (hasStopped) return;
    const others = this.#othersOf(asker);
    const isOwn = signer !== undefined && equalBytes(asker.key, signer.publicKey) && !state.stopped;
    const isTaken =
      others.some((other) => !this.#givesWay(other, asker)) ||
      (isOwn && !(isListening(state) && isBefore(process, transport.process)));
    transport.send(peer, encodeRollCall({ type: 'answer', process, isTaken, height: state.height }));
    if (isOwn) this.#answerFor(peer, process);
    if (others.length === 0 || this.#tick - (this.#handedOn.get(peer) ?? -HAND_ON_TICKS) < HAND_ON_TICKS) return;
    this.#handedOn.set(peer, this.#tick);
    for (const other of others) transport.send(other, bytes);
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
    if (asked === undefined || this.#tick - asked.tick >= ANSWER_TICKS) return false;
    return isBefore(asker.process, (this.#with.transport.proven(other) as Proven).process);
  }

  /** Somebody asks whether this process's key runs here too. */
  #answerFor(peer: Peer, process: Bytes): void {
    const { transport, signer, state, chainId, log } = this.#with;
    if (signer === undefined || state.self < 0 || state.stopped || isListening(state)) return;
    if (equalBytes(process, transport.process) || !transport.known().includes(peer)) return;
    const name = toHex(process);
    const give = (signature: Bytes) =>
      transport.send(peer, encodeRollCall({ type: 'here', process, by: transport.process, signature }));
    const known = this.#signatures.get(name);
    if (known !== undefined) {
      give(known);
      return;
    }
    if (this.#spent.has(peer)) return;
    this.#spent.add(peer);
    signMessageAside(signer.privateKey, hereMessage(chainId, process, transport.process)).then(
      (signature) => {
        this.#signatures.set(name, signature);
        give(signature);
      },
      (error) => log.error('a roll call could not be answered', { error }),
    );
  }

  #takeHere(peer: Peer, { process, by, signature }: RollCallMessage & { type: 'here' }, bytes: Bytes): void {
    const { transport, signer, chainId, state, found } = this.#with;
    if (signer !== undefined && equalBytes(process, transport.process)) {
      if (state.stopped || this.#spent.has(peer) || !transport.known().includes(peer)) return;
      if (!equalBytes(by, process) && verifyMessage(signer.publicKey, hereMessage(chainId, process, by), signature))
        found();
      else this.#spent.add(peer);
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
