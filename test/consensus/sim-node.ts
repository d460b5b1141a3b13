/**
 * A node of the simulator: the engine with a simulated disk, clock, ledger and execution. It does what a driver must do: effects in their order, each done before the
 * next begins, writes synced. It can be killed before every effect, which loses all but what was synced, tears the batch that is being written, and
 * starts again from the log.
 */
import type {
  Company,
  Effect,
  Event,
  Finalized,
  Message,
  Proposal,
  Receiver,
  Unsigned,
} from '../../node/consensus/engine/effects.ts';
import { step } from '../../node/consensus/engine/engine.ts';
import { judgeFinalized, judgeProof, judgeProposal, judgeVote } from '../../node/consensus/engine/intake.ts';
import { lastCutOf } from '../../node/consensus/engine/last-cut.ts';
import { listenFirst } from '../../node/consensus/engine/listening.ts';
import { beginMillis, earliestMillis, isTimely, tickMillis, timeoutMillis } from '../../node/consensus/engine/pace.ts';
import { openState, recover } from '../../node/consensus/engine/recovery.ts';
import type { ConsensusState } from '../../node/consensus/engine/state.ts';
import { bitsOf, type CutName, NIL, type Vote } from '../../node/consensus/engine/votes.ts';
import { frameOf, readFrames } from '../../node/consensus/log/log-frames.ts';
import { decodeRecord, encodeRecord } from '../../node/consensus/log/log-record.ts';
import { mayLeave } from '../../node/consensus/one-signer/own-messages.ts';
import { AWAY_MILLIS } from '../../node/consensus/one-signer/presence.ts';
import { concat } from '../../protocol/bytes.ts';
import { type Habits, type Place, seatOf } from './sim-place.ts';
import { isSignedBy, type SimCut, signatureOf } from './world.ts';

const CONTENT = new Uint8Array(0);
const GENESIS = 'genesis'.padEnd(48, '.');
/** Neighbours that are told at once what a node holds. */
const SOME = 3;

export class SimNode {
  readonly number: number;
  readonly #place: Place;
  readonly #habits: Habits;
  /** Final cuts from height 1 on, as the store has them. */
  readonly chain: Finalized[] = [];
  /** Events in order, where somebody wants to replay them. */
  recorded: Event[] | undefined;
  state!: ConsensusState;
  isUp = false;
  restarts = 0;
  highestRound = 0;
  #synced: Uint8Array[] = [];
  #logHeight = 0;
  #torn: Uint8Array | undefined;
  #queue: Effect[] = [];
  #isBusy = false;
  /** Raised at every start: what was planned before it does not happen. */
  #life = 0;
  /** Until then it does not run, and all that happens to it waits. */
  #sleepsUntil = 0;
  #wasAway = false;
  #signsAt = 0;
  #turn = 0;

  constructor(number: number, place: Place, habits: Habits) {
    this.number = number;
    this.#place = place;
    this.#habits = habits;
  }

  get height(): number {
    return this.chain.length + 1;
  }

  get #tip(): CutName {
    return this.chain.at(-1)?.proof.cut ?? GENESIS;
  }

  get #clock(): number {
    return this.#place.world.now + 10_000_000 + (this.#place.scenario.clocks[this.number] as number);
  }

  start(): void {
    const { world, scenario, rules } = this.#place;
    this.#life++;
    this.isUp = true;
    this.#queue = [];
    this.#isBusy = false;
    this.#sleepsUntil = 0;
    this.#wasAway = false;
    const { payloads, isDamaged } = readFrames(concat(...this.#synced, this.#torn ?? CONTENT));
    if (isDamaged) world.fail(`node ${this.number}: the log is damaged`);
    const isTorn = this.#torn !== undefined && this.#torn.length > 0;
    const recovered = recover(payloads.map(decodeRecord));
    const { height } = this;
    const { committee, seats } = seatOf(scenario, height);
    const proof = this.chain.at(-1)?.proof;
    const last = proof && lastCutOf(proof, seatOf(scenario, height - 1).committee);
    this.state = openState(height, committee, seats.indexOf(this.number), last, recovered, rules);
    // A liar does not care what was signed with its key.
    if (this.#habits.isHonest) listenFirst(this.state, isTorn ? -1 : (recovered?.height ?? -1));
    this.#planBegin();
    this.#planTick();
  }

  crash(): void {
    if (!this.isUp) return;
    this.isUp = false;
    this.#life++;
    this.restarts++;
    this.#place.world.after(1 + this.#place.world.random(3_000), () => this.start());
  }

  /** It is suspended, and finds out when it runs again, as a driver does. */
  nap(millis: number): void {
    if (!this.isUp) return;
    this.#sleepsUntil = this.#place.world.now + millis;
    this.#wasAway ||= millis > AWAY_MILLIS;
  }

  #later(millis: number, run: () => void): void {
    const life = this.#life;
    this.#place.world.after(millis, () => this.#awake(() => this.#life === life && run()));
  }

  #awake(run: () => void): void {
    const { world } = this.#place;
    if (world.now >= this.#sleepsUntil) run();
    else world.after(this.#sleepsUntil - world.now, () => this.#awake(run));
  }

  #planTick(): void {
    this.#later(tickMillis() - 50 + this.#place.world.random(100), () => {
      this.#feed({ type: 'tick', company: this.#company() });
      this.#planTick();
    });
  }

  #company(): Company {
    const { scenario, reaches } = this.#place;
    const { seats } = seatOf(scenario, this.height);
    const members = [...seats.keys()].filter((seat) => reaches(this.number, seats[seat] as number));
    return { members, named: 0 };
  }

  #planBegin(): void {
    this.#later(beginMillis(this.#earliest(), this.#clock), () => this.#feed({ type: 'begin' }));
  }

  /** Rule 3. */
  #earliest(): number {
    const { scenario, world } = this.#place;
    const number = (this.height - 1) % scenario.epochCuts;
    const timeOf = (height: number) => {
      const cut = this.chain[height - 1]?.proof.cut;
      return cut === undefined ? 0 : (world.cuts.get(cut) as SimCut).timestamp;
    };
    return earliestMillis(timeOf(this.height - 1), timeOf(this.height - number), number);
  }

  #feed(event: Event): void {
    // Whoever was feeding it when it crashed may not have noticed.
    if (!this.isUp) return;
    if (this.#wasAway) {
      this.#wasAway = false;
      this.#feed({ type: 'away' });
    }
    this.recorded?.push(event);
    this.#queue.push(...step(this.state, event));
    if (this.#habits.forgets) Object.assign(this.state, { lockedRound: -1, locked: NIL, validRound: -1, valid: NIL });
    if (this.state.round > this.highestRound) this.highestRound = this.state.round;
    this.#work();
  }

  #work(): void {
    const { world, scenario } = this.#place;
    while (!this.#isBusy) {
      const effect = this.#queue.shift();
      if (effect === undefined) return;
      if (this.#mayCrash && world.chance(scenario.crashes)) {
        if (effect.do === 'write') this.#tear(effect);
        this.crash();
        return;
      }
      const life = this.#life;
      this.#carryOut(effect);
      if (this.#life !== life) return;
    }
  }

  get #mayCrash(): boolean {
    return this.#habits.isHonest && this.#place.world.now < this.#place.scenario.chaosMillis;
  }

  #write({ record }: Effect & { do: 'write' }): void {
    if (record.height !== this.#logHeight) {
      this.#synced = [];
      this.#logHeight = record.height;
    }
    this.#torn = undefined;
    this.#synced.push(frameOf(this.#synced.length, encodeRecord(record)));
  }

  /** A batch that was not synced: the disk may hold a part of it. A new height's file is there only once its first batch is. */
  #tear({ record }: Effect & { do: 'write' }): void {
    if (record.height !== this.#logHeight) return;
    const frame = frameOf(this.#synced.length, encodeRecord(record));
    this.#torn = frame.subarray(0, this.#place.world.random(frame.length));
  }

  #carryOut(effect: Effect): void {
    const { world, scenario } = this.#place;
    switch (effect.do) {
      case 'build':
        this.#later(world.random(scenario.executionMillis), () => this.#build(effect));
        break;
      case 'check':
        this.#later(1 + world.random(scenario.executionMillis), () => this.#check(effect.proposal));
        break;
      case 'sign':
        // One after the other.
        this.#signsAt = Math.max(this.#signsAt, world.now + world.random(4));
        this.#later(this.#signsAt - world.now, () => this.#sign(effect.message));
        break;
      case 'write':
        this.#write(effect);
        if (scenario.diskMillis === 0) break;
        this.#isBusy = true;
        this.#later(world.random(scenario.diskMillis), () => {
          this.#isBusy = false;
          this.#work();
        });
        break;
      case 'send':
        this.#send(effect.to, effect.message);
        break;
      case 'timer': {
        const { kind, height, round } = effect;
        this.#later(timeoutMillis(kind, round), () => this.#feed({ type: 'timeout', kind, height, round }));
        break;
      }
      case 'decide':
        this.#commit(effect.proof, effect.proposal);
        break;
      case 'evidence': {
        const seat = seatOf(scenario, effect.first.height).seats[effect.first.member] as number;
        if (!scenario.liars.has(seat)) world.fail(`evidence: node ${seat} is honest`);
        break;
      }
      case 'serve': {
        const finalized = this.chain[effect.height - 1];
        if (finalized !== undefined) this.#send({ peer: effect.to }, { type: 'finalized', finalized });
        break;
      }
      case 'stop':
        if (this.#habits.isHonest) world.fail(`node ${this.number} stopped: ${effect.reason}`);
        break;
      case 'fault':
        if (this.#habits.isHonest) world.fail(`node ${this.number}: more than two thirds for an invalid cut`);
        break;
    }
  }

  #build({ height, round, last }: Effect & { do: 'build' }): void {
    const { world } = this.#place;
    const timestamp = Math.max(this.#earliest(), this.#clock);
    const cut = world.makeCut(height, this.#tip, timestamp, true);
    this.#feed({
      type: 'built',
      proposal: {
        height,
        round,
        validRound: -1,
        cut: cut.name,
        signers: last === undefined ? 0n : bitsOf(last.votes),
        lastRound: last?.round ?? 0,
        content: CONTENT,
        signature: CONTENT,
      },
    });
  }

  #check({ height, cut }: Proposal): void {
    if (height !== this.height) return;
    const known = this.#place.world.cuts.get(cut);
    const valid =
      known?.valid === true &&
      known.height === height &&
      known.parent === this.#tip &&
      known.timestamp >= this.#earliest();
    this.#feed({ type: 'checked', height, cut, valid });
  }

  #sign(message: Unsigned): void {
    this.#feed({ type: 'signed', message, signature: signatureOf(this.number) });
  }

  #commit(proof: Finalized['proof'], proposal: Proposal): void {
    const { scenario, checks } = this.#place;
    const { height } = this;
    const { committee, seats } = seatOf(scenario, height);
    if (this.#habits.isHonest) checks.decided(this.number, proof, committee, seats, this.#tip);
    this.chain.push({ proof, proposal: { ...proposal, signature: CONTENT } });
    const next = seatOf(scenario, height + 1);
    const self = next.seats.indexOf(this.number);
    this.#planBegin();
    this.#feed({ type: 'height', height: height + 1, committee: next.committee, self });
  }

  #send(to: Receiver, message: Message): void {
    const { world, deliver } = this.#place;
    if (this.#habits.isHonest) {
      if (!mayLeave(this.state, message)) return;
      this.#note(message);
    }
    for (const node of this.#receivers(to)) {
      if (node === this.number) continue;
      const sent = this.#habits.alters === undefined ? message : this.#habits.alters(message, node);
      if (sent !== undefined) world.carry(this.number, node, sent, () => deliver(sent, this.number, node));
    }
  }

  #receivers(to: Receiver): readonly number[] {
    const { nodes } = this.#place.scenario;
    if (to === 'all') return [...Array(nodes).keys()];
    if (to === 'some') {
      this.#turn += SOME;
      return Array.from({ length: SOME }, (_, i) => (this.number + 1 + ((this.#turn + i) % (nodes - 1))) % nodes);
    }
    if ('peer' in to) return [to.peer as number];
    return [seatOf(this.#place.scenario, this.height).seats[to.member] as number];
  }

  #note(message: Message): void {
    const { scenario, checks } = this.#place;
    if (message.type === 'vote') {
      const { vote } = message;
      if (seatOf(scenario, vote.height).seats[vote.member] === this.number) checks.sent(this.number, { vote });
    } else if (message.type === 'proposal') {
      const { proposal } = message;
      if (isSignedBy(this.number, proposal)) checks.sent(this.number, { proposal });
    }
  }

  /** What came over the network: judged, its signatures checked, and handed to the engine. */
  receive(message: Message, from: number): void {
    this.#awake(() => this.#receive(message, from));
  }

  #receive(message: Message, from: number): void {
    if (!this.isUp) return;
    const { scenario } = this.#place;
    const { state } = this;
    if (message.type === 'have') {
      this.#feed({ type: 'have', have: message.have, from });
      return;
    }
    if (message.type === 'vote') {
      const { vote } = message;
      const intake = judgeVote(state, vote);
      if (intake !== 'wanted' && intake !== 'contrary' && intake !== 'own') return;
      if (this.#isKnownSeat(vote)) this.#feed({ type: 'vote', vote });
      return;
    }
    const { seats, committee } = seatOf(scenario, state.height);
    if (message.type === 'proposal') {
      const { proposal } = message;
      if (judgeProposal(state, proposal) !== 'wanted' || !this.#isSameEpoch(proposal.height)) return;
      if (isSignedBy(seats[committee.proposer(proposal.height, proposal.round)], proposal))
        this.#takeProposal(proposal);
      return;
    }
    const proof = message.type === 'proof' ? message.proof : message.finalized.proof;
    const intake = message.type === 'proof' ? judgeProof(state, proof) : judgeFinalized(state, message.finalized);
    if (intake !== 'wanted') return;
    if (!proof.votes.every((vote) => isSignedBy(seats[vote.member], vote))) return;
    this.#feed(
      message.type === 'proof' ? { type: 'proof', proof } : { type: 'finalized', finalized: message.finalized },
    );
  }

  #takeProposal(proposal: Proposal): void {
    const timestamp = this.#place.world.cuts.get(proposal.cut)?.timestamp ?? 0;
    const timely = isTimely(timestamp, this.#clock);
    this.#feed({ type: 'proposal', proposal, timely });
    // One from a clock that is a little ahead is looked at again.
    if (!timely && isTimely(timestamp, this.#clock + 5_000))
      this.#later(timestamp - this.#clock - 900, () => this.#feed({ type: 'proposal', proposal, timely: true }));
  }

  #isSameEpoch(height: number): boolean {
    const { scenario } = this.#place;
    return seatOf(scenario, height).committee === seatOf(scenario, this.state.height).committee;
  }

  #isKnownSeat(vote: Vote): boolean {
    const { scenario } = this.#place;
    if (vote.height > this.state.height && !this.#isSameEpoch(vote.height)) return false;
    return isSignedBy(seatOf(scenario, vote.height).seats[vote.member], vote);
  }
}
