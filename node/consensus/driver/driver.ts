/**
 * The driver: the engine with time, disk, network and execution around it. Events go into the engine as they come; its effects are carried out one after the other, each
 * done before the next begins, so nothing is sent before it is on the disk (rule 11). What the engine decides is written to the store, and the next height begins.
 */
import type { KeyObject } from 'node:crypto';
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { decodeProposedCut, type ProposedCut } from '../../../protocol/consensus/proposal.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { type Certificate, CUT_HEADER_BYTES, decodeCutHeader } from '../../../protocol/ledger/cut.ts';
import { epochOf } from '../../../protocol/staking/limits.ts';
import type { Evidence } from '../../../protocol/staking/operation.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { FairShare } from '../../../runtime/clients/fair-share.ts';
import { SureShare } from '../../../runtime/clients/sure-share.ts';
import { type LedgerClock, type SteadyClock, type WallClock, wallMillis } from '../../../runtime/clock/clock.ts';
import { Timers } from '../../../runtime/clock/timers.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { type Adopt, type Adopted, adoptInto } from '../../chain/adopted-cut.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import type { FullNode } from '../../full-node.ts';
import { isPassing } from '../../ledger/unread-record.ts';
import { signMessageAside } from '../../ml-dsa.ts';
import { haveOf } from '../engine/anti-entropy.ts';
import { Committee } from '../engine/committee.ts';
import type { Effect, Event, Message, Peer, Proposal, Receiver } from '../engine/effects.ts';
import { step } from '../engine/engine.ts';
import { lastCutOf } from '../engine/last-cut.ts';
import { isListening, listenFirst } from '../engine/listening.ts';
import { beginMillis, isTimely, tickMillis, timelyIn, timeoutMillis } from '../engine/pace.ts';
import { openState } from '../engine/recovery.ts';
import type { ConsensusState, Value } from '../engine/state.ts';
import { type CutName, PRECOMMIT, proofOf, type VoteKind } from '../engine/votes.ts';
import { MAX_KNOWN } from '../link/allowance.ts';
import { hexOf } from '../log/dump.ts';
import type { ConsensusLog, OpenedLog } from '../log/log-file.ts';
import { untilDone, writeUntilDone } from '../log/log-writing.ts';
import { mayLeave } from '../one-signer/own-messages.ts';
import { Presence } from '../one-signer/presence.ts';
import { RollCall } from '../one-signer/roll-call.ts';
import { decodeRollCall } from '../one-signer/roll-call-messages.ts';
import { SigningLog } from '../one-signer/signing-log.ts';
import type { Transport } from '../reach/transport.ts';
import { BlockExchange, decodeBlockMessage } from './block-exchange.ts';
import { lastProofIn, servedOf } from './catch-up.ts';
import { CutDesk, nextEarliest } from './cut-desk.ts';
import { EffectQueue } from './effect-queue.ts';
import { examine, type Worth } from './examine.ts';
import type { ConsensusFigures } from './figures.ts';
import { decodeForward, encodeForward, type Forward, Forwarding } from './forwarding.ts';
import { decodeMessage, encodeMessage } from './messages.ts';
import { Receivers } from './receivers.ts';
import { evidenceOf, type SignatureCheck, signatureCheck, signedText } from './signatures.ts';

/** The votes of more than two thirds. */
type QuorumVotes = { readonly kind: VoteKind; readonly round: number };

/** Cuts of which it is remembered who brought them: blocks are requested there first. */
const KEPT_SOURCES = 64;
/**
 * Answers between two ticks to all that are known, and to all strangers, of which each address has a fair part: one can be every
 * vote of two rounds, 1 MiB and ten milliseconds of processor time with 64 members, and is made before it is known whether there is bandwidth for
 * it. Of its neighbours a member asks a few at each tick, so it asks one of many every few seconds.
 */
const ANSWERED = { perTick: 8, burst: 64 };
const SURELY_ANSWERED = { perTick: 1 / 8, burst: 2 };
const ANSWERED_STRANGERS = { perTick: 8, burst: 32 };
/**
 * Signatures in messages of all strangers that are checked, of which each address has a fair part: one takes a third of a
 * millisecond of the thread that also votes, a certificate has 64, and who sends a false one loses only an address. Others are ignored: members bring what counts.
 */
const CHECKED_OF_STRANGERS = { perSecond: 128, burst: 512 };
/** Time between two lines about messages that were lost. */
const LOST_LOG_MILLIS = 10_000;

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
  readonly now: LedgerClock;
  /** The same by a monotonic clock. */
  readonly steady: SteadyClock;
  /** The raw system clock, if not the default: used to detect that the process was suspended. */
  readonly wall?: WallClock;
  /** Called with each event before the engine, and with the effects. */
  readonly watch?: (event: Event, effects: readonly Effect[], state: ConsensusState) => void;
  readonly onStep?: ConsensusFigures['step'] | undefined;
  /** Called for each message of a neighbour that is lost by an error of this node. */
  readonly onLost?: (() => void) | undefined;
  readonly onEvidence?: ((evidence: Evidence) => void) | undefined;
};

export class ConsensusDriver {
  readonly state: ConsensusState;
  readonly #with: DriverDependencies;
  readonly #ledger: CutLedger;
  readonly #cutMillis: number;
  readonly #check: SignatureCheck;
  readonly #desk: CutDesk;
  readonly #adoptInto: Adopt;
  readonly #blocks: BlockExchange;
  readonly #timers = new Timers();
  readonly #receivers: Receivers;
  readonly #forwarding: Forwarding;
  readonly #signing: SigningLog;
  readonly #rollCall: RollCall;
  readonly #sources = new BoundedMap<CutName, readonly Peer[]>(KEPT_SOURCES);
  readonly #queue = new EffectQueue();
  /** A cut of peers that waits for its turn. */
  #adopting: { readonly adopt: () => Promise<Adopted>; readonly over: PromiseWithResolvers<Adopted> } | undefined;
  readonly #presence: Presence;
  readonly #answered: SureShare;
  readonly #answeredStrangers: FairShare;
  readonly #checkedOfStrangers: FairShare;
  #working: Promise<void> | undefined;
  #signed: Promise<void> = Promise.resolve();
  /** Cuts of this height that a quorum stands for, that were not valid here, and whose blocks come anew. */
  readonly #doubted = new Map<CutName, QuorumVotes>();
  /** A decision whose cut is executed again: too many others were executed since. */
  #undone: (Effect & { do: 'decide' }) | undefined;
  #lostMessages = 0;
  #lostToldAt = Number.NEGATIVE_INFINITY;
  #committee: Committee;
  readonly #ending = new AbortController();
  #closed = false;

  constructor(cutMillis: number, dependencies: DriverDependencies) {
    const { node, transport, signer, steady } = dependencies;
    this.#with = dependencies;
    this.#ledger = node.ledger;
    this.#cutMillis = cutMillis;
    this.#receivers = new Receivers(transport);
    this.#forwarding = new Forwarding(transport, steady);
    this.#presence = new Presence(dependencies.wall ?? wallMillis, steady, tickMillis(cutMillis));
    const rateOf = ({ perTick, burst }: typeof ANSWERED) => ({
      perSecond: (1_000 * perTick) / tickMillis(cutMillis),
      burst,
    });
    const answered = { all: rateOf(ANSWERED), sure: rateOf(SURELY_ANSWERED) };
    this.#answered = new SureShare(answered, MAX_KNOWN, steady());
    this.#answeredStrangers = new FairShare(rateOf(ANSWERED_STRANGERS), steady());
    this.#checkedOfStrangers = new FairShare(CHECKED_OF_STRANGERS, steady());
    this.#signing = new SigningLog(dependencies.log);
    this.#check = signatureCheck(this.#ledger.chainId);
    this.#desk = new CutDesk({
      ledger: this.#ledger,
      cutMillis,
      verdict: (height, cut, valid, reason) => this.#judged(height, cut, valid, reason),
      want: (ids, cut) => this.#blocks.want(ids, ...(this.#sources.get(cut) ?? [])),
      blame: (peer) => this.#drop(peer, 'wrong_body'),
      lost: (error) => this.#lost(error),
      onExecuted: (seconds) => dependencies.onStep?.('execute', seconds),
    });
    this.#adoptInto = adoptInto(this.#ledger, (cut) => this.#desk.adopted(cut));
    this.#blocks = new BlockExchange({
      node,
      transport,
      desk: this.#desk,
      askAgainMillis: tickMillis(cutMillis),
      log: dependencies.log,
      steady,
    });
    const height = this.#ledger.head().height + 1;
    this.#committee = this.#committeeFor(height);
    const final = lastProofIn(this.#ledger);
    const last = final && lastCutOf(final.proof, final.committee);
    this.state = openState(height, this.#committee, this.#self(), last, signer?.recovered);
    if (signer !== undefined) listenFirst(this.state, signer.coversTo);
    this.#rollCall = new RollCall({
      transport,
      signer,
      state: this.state,
      chainId: this.#ledger.chainId,
      log: dependencies.log,
      isAt: (peer, at) => this.#receivers.isAt(peer, at),
      found: () => this.#feed({ type: 'elsewhere' }),
    });
  }

  start(): void {
    this.#with.transport.start({
      joined: (peer) => {
        this.#sendTo(peer, { type: 'have', have: haveOf(this.state) });
        this.#blocks.joined(peer);
        this.#rollCall.joined(peer);
      },
      left: (peer) => {
        this.#receivers.left(peer);
        this.#blocks.left(peer);
        this.#rollCall.left(peer);
      },
      message: (peer, bytes) => this.#receive(peer, bytes),
    });
    this.#planBegin();
    this.#planTick();
  }

  /** Stops; pending writes to the log are finished first. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#ending.abort();
    this.#timers.close();
    this.#blocks.close();
    await this.#with.transport.close();
    await this.#working?.catch(() => undefined);
    await this.#with.signer?.log.close();
  }

  /**
   * A cut that peers proved, of which all blocks are here. It is written between two effects, unless neighbours brought
   * it first; then the next height begins, as after a decision. One at a time.
   */
  async adopt(cut: ProposedCut, certificate: Certificate): Promise<Adopted> {
    if (this.#closed || this.#adopting !== undefined) return 'later';
    const over = Promise.withResolvers<Adopted>();
    this.#adopting = { adopt: () => this.#adopt(cut, certificate), over };
    this.#working ??= this.#work();
    return await over.promise;
  }

  async #adopt(cut: ProposedCut, certificate: Certificate): Promise<Adopted> {
    const { height } = cut.header;
    const adopted = await this.#adoptInto(cut, certificate).catch((error): Adopted => {
      if (!isPassing(error)) throw error;
      this.#lost(error);
      return 'later';
    });
    // Unless it was final before.
    if (adopted === 'final' && height === this.state.height)
      await this.#enter(height + 1, () => lastProofIn(this.#ledger));
    return adopted;
  }

  /** The newest cut that members with more than a third of the stake report to have; -1 for none. */
  reported(): number {
    return this.#receivers.reported(this.#committee);
  }

  #committeeFor(height: number): Committee {
    const found = this.#ledger.committee(height);
    if (found === undefined) throw new Error(`the committee of cut ${height} is not known`);
    const known = this.#committee as Committee | undefined;
    return known !== undefined && equalBytes(known.setId, found.setId)
      ? known
      : new Committee(found.setId, found.members);
  }

  #self(): number {
    const { signer } = this.#with;
    if (signer === undefined) return -1;
    return this.#committee.members.findIndex(({ publicKey }) => equalBytes(publicKey, signer.publicKey));
  }

  #later(millis: number, run: () => void): void {
    this.#timers.later(millis, () => this.#closed || run());
  }

  /** Planned first, and each part for itself: without ticks nothing that was lost comes again, so an error of this node may cost one, and not all. */
  #planTick(): void {
    this.#later(tickMillis(this.#cutMillis), () => {
      this.#planTick();
      for (const part of [this.#desk, this.#blocks, this.#rollCall]) this.#attempt(() => part.tick());
      this.#attempt(() => this.#tick());
    });
  }

  #tick(): void {
    const answers = isListening(this.state) ? (peer: Peer) => this.#rollCall.answerOf(peer) : undefined;
    const company = this.#receivers.company(this.#committee, this.state.height, answers);
    this.#signing.tick(this.state, company);
    this.#feed({ type: 'tick', company });
  }

  #planBegin(earliest = nextEarliest(this.#ledger, this.#cutMillis)): void {
    const { height } = this.state;
    this.#later(beginMillis(earliest, this.#with.now(), this.#cutMillis), () => {
      if (this.state.height === height) this.#feed({ type: 'begin' });
    });
  }

  #feed(event: Event): void {
    if (this.#closed) return;
    this.#attend();
    try {
      const effects = step(this.state, event);
      this.#with.watch?.(event, effects, this.state);
      this.#queue.push(effects);
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#working ??= this.#work();
  }

  /** Checked first, because a process that was suspended may not sign or send anything. */
  #attend(): void {
    if (!this.#presence.look()) return;
    this.#feed({ type: 'away' });
    this.#signing.woke(this.state);
  }

  /** A bug, or a ledger that cannot continue: nothing more is signed. */
  #fail(error: unknown): void {
    this.#closed = true;
    this.#ledger.fail(error as Error);
  }

  async #work(): Promise<void> {
    // Not before `#working` is set: an effect that feeds the engine must find it.
    await undefined;
    try {
      while (!this.#closed) {
        const adopting = this.#adopting;
        if (adopting !== undefined) {
          const adopted = await adopting.adopt();
          this.#adopting = undefined;
          adopting.over.resolve(adopted);
        }
        const effect = this.#queue.shift();
        if (effect === undefined) break;
        this.#attend();
        const done = this.#carryOut(effect);
        if (done !== undefined) await done;
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#working = undefined;
      this.#adopting?.over.resolve('later');
      this.#adopting = undefined;
    }
  }

  #carryOut(effect: Effect): Promise<void> | undefined {
    switch (effect.do) {
      case 'build':
        return effect.height === this.state.height ? this.#build(effect) : undefined;
      case 'check':
        if (effect.proposal.height === this.state.height) this.#desk.check(effect.proposal);
        return undefined;
      case 'sign':
        this.#sign(effect);
        return undefined;
      case 'write':
        return writeUntilDone(effect.record, this.#with, this.#ending.signal);
      case 'send':
        this.#attempt(() => this.#send(effect.to, effect.message));
        return undefined;
      case 'timer': {
        const { kind, height, round } = effect;
        const millis = timeoutMillis(kind, round, this.#cutMillis);
        this.#later(millis, () => this.#feed({ type: 'timeout', kind, height, round }));
        return undefined;
      }
      case 'decide':
        return this.#commit(effect);
      case 'evidence':
        this.#attempt(() => this.#accuse(effect));
        return undefined;
      case 'serve':
        // Anybody asks for any height: a record that cannot be read is no reason to stop.
        this.#attempt(() => this.#sendTo(effect.to, servedOf(this.#ledger, effect.height, this.state)));
        return undefined;
      case 'stop':
      case 'bar':
        this.#signing.say(effect);
        return undefined;
      case 'fault':
        return this.#doubt(effect);
    }
  }

  #judged(height: number, cut: CutName, valid: boolean, reason = ''): void {
    if (!valid) this.#with.log.warn('a proposed cut is not valid', { height, cut: hexOf(cut), reason });
    const decision = this.#undone?.proof.cut === cut ? this.#undone : undefined;
    const doubted = this.#doubted.get(cut);
    if (decision !== undefined && valid) {
      this.#undone = undefined;
      this.#queue.push([decision]);
    } else if (doubted !== undefined && !valid) this.#refute(cut, doubted, reason);
    else if (decision !== undefined)
      this.#queue.push([{ do: 'fault', cut, kind: PRECOMMIT, round: decision.proof.round }]);
    this.#feed({ type: 'checked', height, cut, valid });
  }

  /** Nobody else's bytes may be the reason to stop: the blocks are dropped and fetched again, and the second verdict counts. */
  async #doubt({ cut, kind, round }: QuorumVotes & { readonly cut: CutName }): Promise<void> {
    const proposal = this.state.values.get(cut)?.proposal;
    if (proposal === undefined || this.#doubted.has(cut)) return;
    this.#doubted.set(cut, { kind, round });
    this.#with.log.warn(
      'more than two thirds of the stake stand for a cut that is not valid here: its blocks are fetched again',
      {
        height: proposal.height,
        cut: hexOf(cut),
      },
    );
    await this.#desk.doubt(proposal);
  }

  #refute(cut: CutName, { kind, round }: QuorumVotes, reason: string): void {
    const { values, rounds } = this.state;
    const { content } = (values.get(cut) as Value).proposal;
    const precommits = kind === PRECOMMIT ? rounds.get(round)?.precommits : undefined;
    const signatures = precommits && proofOf(precommits)?.votes;
    this.#closed = true;
    this.#ledger
      .refute({ cut: decodeProposedCut(content), certificate: signatures && { round, signatures }, reason })
      .catch((error) => this.#fail(error));
  }

  /** Forwarded, so that nodes with one of the two votes, or none, have the evidence too. */
  #accuse({ first, second }: Effect & { do: 'evidence' }): void {
    const { height, round, member, kind } = first;
    if (this.#forwarding.mayTellOf(member)) {
      this.#with.log.warn('a member voted twice', { height, round, member, kind });
      for (const vote of [first, second]) this.#send('all', { type: 'vote', vote });
    }
    const accused = this.#ledger.committee(height)?.members[member];
    if (accused !== undefined) this.#with.onEvidence?.(evidenceOf(accused.validatorId, first, second));
  }

  async #build({ height, round, last }: Effect & { do: 'build' }): Promise<void> {
    let proposal: Proposal;
    try {
      proposal = await this.#desk.build(height, round, last, () => this.#with.now());
    } catch (error) {
      if (!isPassing(error)) throw error;
      // Another proposes in the next round.
      this.#with.log.error('no cut is proposed', { height, round, error });
      return;
    }
    this.#feed({ type: 'built', proposal });
  }

  #sign({ message }: Effect & { do: 'sign' }): void {
    const { signer, log } = this.#with;
    if (signer === undefined) return;
    // One after the other: a log that has a precommit without the prevote before it could never send that prevote.
    this.#signed = this.#signed
      .then(() => signMessageAside(signer.privateKey, signedText(this.#ledger.chainId, message)))
      .then(
        (signature) => this.#feed({ type: 'signed', message, signature }),
        (error) => log.error('a message could not be signed', { error }),
      );
  }

  async #commit(decision: Effect & { do: 'decide' }): Promise<void> {
    const { proof, proposal } = decision;
    // Peers brought the cut before its turn came.
    if (proof.height !== this.state.height) return;
    // Before the desk checks it, which may give a verdict at once.
    this.#undone = decision;
    const cut = this.#desk.decided(proposal);
    if (cut === undefined) return;
    this.#undone = undefined;
    const { round, votes } = proof;
    const began = performance.now();
    await this.#ledger.commit(cut, {
      round,
      signatures: votes.map(({ member, signature }) => ({ member, signature })),
    });
    this.#with.onStep?.('commit', (performance.now() - began) / 1000);
    const [source] = this.#sources.get(proof.cut) ?? [];
    const wasServed = proposal.signature.length === 0;
    await this.#enter(proof.height + 1);
    if (!wasServed || source === undefined) return;
    const message: Message = { type: 'have', have: haveOf(this.state) };
    // A stranger could bring one at a time, as slowly as it likes.
    if (!this.#receivers.isAsked(source)) this.#send('some', message);
    // A neighbour that had this cut may have the next one too.
    this.#sendTo(this.#with.transport.nearest(source), message);
  }

  /** The cut before it is final, so what cannot be read now is read again: ending would bring back neither the cut nor the disk. */
  async #enter(height: number, lastOf?: () => (Event & { type: 'height' })['last']): Promise<void> {
    const read = await untilDone(
      () => ({
        committee: this.#committeeFor(height),
        earliest: nextEarliest(this.#ledger, this.#cutMillis),
        last: lastOf?.(),
      }),
      (error, isFirst) => {
        if (!isPassing(error)) throw error;
        if (isFirst) this.#with.log.error('the next cut waits for the store, which cannot be read', { height, error });
      },
      tickMillis(this.#cutMillis),
      this.#ending.signal,
    );
    if (read === undefined) return;
    const { committee, earliest, last } = read;
    this.#desk.clear();
    this.#forwarding.nextHeight(height);
    this.#doubted.clear();
    this.#undone = undefined;
    if (committee !== this.#committee) this.#receivers.forget();
    this.#committee = committee;
    this.#feed({ type: 'height', height, committee, self: this.#self(), last });
    // Proposals that came early were not measured by the clock.
    for (const { proposal } of [...this.state.rounds.values()])
      if (proposal !== undefined) this.#takeProposal(proposal);
    this.#planBegin(earliest);
  }

  #send(to: Receiver, message: Message): void {
    if (!mayLeave(this.state, message)) return;
    const bytes = encodeMessage(message);
    const request = to === 'all' ? this.#forwarding.request(this.state, message) : undefined;
    const asked = request && encodeForward(request.members, bytes);
    for (const peer of this.#receivers.of(to, this.#committee))
      this.#with.transport.send(peer, asked !== undefined && request?.peers.includes(peer) ? asked : bytes);
  }

  #sendTo(peer: Peer, message: Message): void {
    this.#with.transport.send(peer, encodeMessage(message));
  }

  #receive(peer: Peer, bytes: Bytes): void {
    // No input of a neighbour may end this node.
    if (!this.#closed) this.#attempt(() => this.#read(peer, bytes)?.());
  }

  #attempt(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#lost(error);
    }
  }

  /** What is to be done with a message. Only reading it tells that it is malformed: an error later, also in a record of the store, is this node's own. */
  #read(peer: Peer, bytes: Bytes): (() => void) | undefined {
    try {
      const block = decodeBlockMessage(bytes);
      if (block !== undefined) return () => this.#blocks.take(peer, block);
      const call = decodeRollCall(bytes);
      if (call !== undefined) return () => this.#rollCall.take(peer, call, bytes);
      const forward = decodeForward(bytes);
      if (forward !== undefined) return () => this.#takeForward(peer, forward);
      const message = decodeMessage(bytes);
      return () => this.#take(peer, message);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#drop(peer, `malformed: ${error.message}`);
      return undefined;
    }
  }

  /** A message, an answer or a tick, by an error of this node, for example of its store, or for lack of memory. What is needed comes again by anti-entropy. */
  #lost(error: unknown): void {
    const { log, steady, onLost } = this.#with;
    this.#lostMessages++;
    onLost?.();
    if (steady() - this.#lostToldAt < LOST_LOG_MILLIS) return;
    this.#lostToldAt = steady();
    log.error('messages of neighbours are lost by an error of this node', { lost: this.#lostMessages, error });
  }

  /** Strangers come from ever new addresses: what they do wrong would fill the log. */
  #drop(peer: Peer, reason: string): void {
    const { transport, log } = this.#with;
    log[transport.isKnown(peer) ? 'warn' : 'debug']('a neighbour is dropped', { peer: String(peer), reason });
    transport.drop(peer, reason);
  }

  #takeForward(peer: Peer, forward: Forward): void {
    const worth = this.#worthOf(peer, forward.message);
    // Before the engine sees it, which may begin another height.
    if (worth !== 'invalid') this.#forwarding.forward(this.state, peer, forward, worth === 'take');
    if (worth === 'take') this.#accept(peer, forward.message);
  }

  #take(peer: Peer, message: Message): void {
    if (message.type === 'have') {
      const { transport, steady } = this.#with;
      const isProven = transport.proven(peer) !== undefined;
      this.#receivers.isAt(peer, message.have.height);
      const account = transport.accountByWay(peer);
      const isKnown = transport.isKnown(peer);
      if (this.#queue.isFull || !this.#may(peer, this.#answeredStrangers)) return;
      if (!isKnown || this.#answered.take(account, steady()))
        this.#feed({ type: 'have', have: message.have, from: peer, ...(isProven && { account }) });
    } else if (this.#worthOf(peer, message) === 'take') this.#accept(peer, message);
  }

  /** Of strangers, by what they share. */
  #may(peer: Peer, share: FairShare, cost = 1): boolean {
    const { transport, steady } = this.#with;
    return transport.isKnown(peer) || share.take(transport.limitKey(peer), steady(), cost);
  }

  #worthOf(peer: Peer, message: Exclude<Message, { type: 'have' }>): Worth {
    const worth = examine(
      this.state,
      message,
      this.#check,
      (height) => this.#isSameEpoch(height),
      (signatures) => this.#may(peer, this.#checkedOfStrangers, signatures),
    );
    if (worth === 'invalid') this.#drop(peer, `an invalid signature or root in a ${message.type}`);
    return worth;
  }

  #accept(peer: Peer, message: Exclude<Message, { type: 'have' }>): void {
    if (message.type === 'vote') {
      if (message.vote.height === this.state.height) this.#receivers.cameFrom(message.vote.member, peer);
      this.#feed({ type: 'vote', vote: message.vote });
    } else if (message.type === 'proof') this.#feed({ type: 'proof', proof: message.proof });
    else if (message.type === 'finalized') {
      this.#sources.set(message.finalized.proof.cut, [peer]);
      this.#feed({ type: 'finalized', finalized: message.finalized });
    } else {
      const { proposal } = message;
      const proposer = this.#committee.proposer(proposal.height, proposal.round);
      this.#receivers.cameFrom(proposer, peer);
      // The proposer has the blocks, whoever handed its proposal on first.
      this.#sources.set(proposal.cut, [...this.#receivers.towards(proposer, this.#committee), peer]);
      this.#takeProposal(proposal);
    }
  }

  #isSameEpoch(height: number): boolean {
    const { intervalCuts } = this.#ledger;
    return epochOf(height, intervalCuts) === epochOf(this.state.height, intervalCuts);
  }

  /** A proposal whose time has not come is passed to the engine again when it has. */
  #takeProposal(proposal: Proposal): void {
    const { timestampMillis } = decodeCutHeader(proposal.content.subarray(0, CUT_HEADER_BYTES));
    const now = this.#with.now();
    const timely = isTimely(timestampMillis, now, this.#cutMillis);
    this.#feed({ type: 'proposal', proposal, timely });
    const millis = timelyIn(timestampMillis, now, this.#cutMillis);
    // If it is much too early, the round will be over by then.
    if (timely || millis > 2 * this.#cutMillis) return;
    this.#later(millis, () => {
      if (proposal.height === this.state.height) this.#takeProposal(proposal);
    });
  }
}
