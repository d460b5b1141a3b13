/**
 * The roll call (consensus rule 23). A member that listens before it signs (rule 21) asks its neighbours whether its
 * key also runs in another process. A neighbour can tell: both processes proved the key to it, and each has its own
 * name (rule 22). It answers at once, and forwards the call to the other process; if that one signs, it answers with a
 * signature over the name of the asking process and its call. Calls are random values, so the signature proves that the
 * key ran elsewhere after the call, independent of clocks and delays. Until the signature arrives, the neighbours'
 * answers stop the listening time of rule 21.
 */
import { type KeyObject, randomBytes } from 'node:crypto';
import { type Bytes, concat, equalBytes, toHex } from '../../../protocol/bytes.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { SureShare } from '../../../runtime/clients/sure-share.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { signMessageAside, verifyMessage } from '../../ml-dsa.ts';
import type { Peer } from '../engine/effects.ts';
import { isListening } from '../engine/listening.ts';
import type { ConsensusState } from '../engine/state.ts';
import { MAX_KNOWN } from '../link/allowance.ts';
import { isBefore } from '../link/process-name.ts';
import type { Proven, Transport } from '../reach/transport.ts';
import { CALL_BYTES, type Caller, encodeRollCall, hereMessage, type RollCallMessage } from './roll-call-messages.ts';

/** Ticks for which the answer to a call counts, from the call on. */
export const ANSWER_TICKS = 4;
/**
 * Ticks for which a process that asked is known to listen; it asks at every tick. Together with the validity of an
 * answer this is at most the shortest listening time: a neighbour's answer about a process that signs by now has
 * expired by then.
 */
export const LISTENS_TICKS = 2;
/** Ticks for which the signature of another process counts, from the call on: it may arrive late. */
const HERE_TICKS = 128;
/** Ticks between two forwarded calls of one process: their answers are long. */
const HAND_ON_TICKS = 8;
/** Signatures are cached for this many asking processes. */
const KEPT_SIGNATURES = 16;
/** For the clock of shares, on which a tick is a second. */
const TICK_MILLIS = 1_000;
/**
 * Signatures in a tick that are made for all neighbours together, and as many that are checked: liars may have most of the seats, and
 * the own votes wait for their signatures behind these. Surely for each as often as an honest one hands a call on.
 */
const SIGNATURES = { all: { perSecond: 4, burst: 32 }, sure: { perSecond: 1 / HAND_ON_TICKS, burst: 2 } };

export type Answer = 'clear' | 'taken';

export type RollCallDependencies = {
  readonly transport: Pick<Transport, 'process' | 'proven' | 'peers' | 'known' | 'isKnown' | 'accountOf' | 'send'>;
  readonly chainId: Bytes;
  readonly signer?: { readonly publicKey: Bytes; readonly privateKey: KeyObject } | undefined;
  readonly state: ConsensusState;
  readonly log: Pick<Logger, 'error'>;
  /** The height that a neighbour reports. */
  isAt(peer: Peer, height: number): void;
  /** The own key signs in another process. */
  found(): void;
};

type HeardCall = { readonly tick: number; readonly hasStopped: boolean };

export class RollCall {
  readonly #with: RollCallDependencies;
  #tick = 0;
  /** Calls of processes that listen, or have stopped. */
  readonly #asked = new Map<Peer, HeardCall>();
  readonly #handedOn = new Map<Peer, number>();
  readonly #answers = new Map<Peer, { readonly tick: number; readonly answer: Answer }>();
  readonly #signatures = new BoundedMap<string, Bytes>(KEPT_SIGNATURES);
  /** Two processes that finish listening together each send and receive one: sending must not prevent receiving. */
  readonly #made = new SureShare(SIGNATURES, MAX_KNOWN, 0);
  readonly #checked = new SureShare(SIGNATURES, MAX_KNOWN, 0);
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
    const caller = this.#caller;
    if (caller === 'listens') this.#call = this.#newCall();
    // Only once: a process that does not ask is known to sign.
    if (caller !== undefined && (caller !== 'signs' || this.#listened)) this.#say(caller, this.#with.transport.known());
    this.#listened = caller === 'listens';
  }

  /** The neighbour's newest answer; undefined if there is no recent one. */
  answerOf(peer: Peer): Answer | undefined {
    const given = this.#answers.get(peer);
    return given !== undefined && this.#tick - given.tick < ANSWER_TICKS ? given.answer : undefined;
  }

  take(peer: Peer, message: RollCallMessage, bytes: Bytes): void {
    if (message.type === 'answer') this.#takeAnswer(peer, message);
    else if (message.type === 'here') this.#takeHere(peer, message, bytes);
    else this.#takeCall(peer, message, bytes);
  }

  /** A stopped process reports that, and no longer counts. */
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

  /** The tick of an own call, if it is at most this many ticks old. */
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
    // A process that proved no key cannot ask about one.
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

  /**
   * The process has finished listening. From now on it answers calls of another one that still listens, so the next
   * call is forwarded at once; and a process that finished at the same time answers this last call.
   */
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

  /**
   * Of two listening processes the one that started first continues, at every neighbour that has both. One that does
   * not ask is already signing.
   */
  #givesWay(other: Peer, asker: Proven): boolean {
    const asked = this.#asked.get(other);
    if (asked === undefined || this.#tick - asked.tick >= LISTENS_TICKS) return false;
    return isBefore(asker.process, (this.#with.transport.proven(other) as Proven).process);
  }

  #may(share: SureShare, peer: Peer): boolean {
    return share.take(this.#with.transport.accountOf(peer), this.#tick * TICK_MILLIS);
  }

  /** Another process asks whether its key runs here too. */
  #answerFor(peer: Peer, process: Bytes, call: Bytes): void {
    const { transport, signer, state, chainId, log } = this.#with;
    if (signer === undefined || state.self < 0 || state.stopped || isListening(state)) return;
    if (equalBytes(process, transport.process) || !transport.isKnown(peer)) return;
    if (!this.#may(this.#made, peer)) return;
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
      if (state.stopped || equalBytes(by, process) || !transport.isKnown(peer)) return;
      // The call is too old: the other process may have ended since.
      if (this.#calledAt(call, HERE_TICKS) === undefined || !this.#may(this.#checked, peer)) return;
      if (verifyMessage(signer.publicKey, hereMessage(chainId, process, call, by), signature)) found();
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
