/**
 * Members that lie. Some run the engine and lie about it (amnesia, withholding, twins); the others see every message and send what does most harm, with
 * their own key only: nobody can sign for another.
 */
import type { Message, Proposal } from '../../node/consensus/engine/effects.ts';
import { NIL, PRECOMMIT, PREVOTE, type Vote, type VoteKind } from '../../node/consensus/engine/votes.ts';
import type { Strategy } from './scenario.ts';
import { type Place, seatOf } from './sim-place.ts';
import { FORGED, signatureOf } from './world.ts';

const NOTHING = new Uint8Array(0);
const REMEMBERED = 40;
/** A liar too can send only so much: those that answer each other would never end. Hardly a run comes near. */
const MOST_ANSWERED = 5_000;

export class Liar {
  readonly number: number;
  readonly #place: Place;
  readonly #strategy: Strategy;
  readonly #heard: Message[] = [];
  /** What it did already: one outburst per height, round and occasion. */
  readonly #done = new Set<string>();
  #answered = 0;

  constructor(number: number, place: Place, strategy: Strategy) {
    this.number = number;
    this.#place = place;
    this.#strategy = strategy;
  }

  receive(message: Message): void {
    if (this.#strategy === 'silent' || ++this.#answered > MOST_ANSWERED) return;
    const { world } = this.#place;
    if (this.#heard.length < REMEMBERED) this.#heard.push(message);
    else this.#heard[world.random(REMEMBERED)] = message;
    if (this.#strategy === 'replaying') {
      if (world.chance(0.3)) this.#sendTo(world.random(this.#place.scenario.nodes), this.#any());
      return;
    }
    if (this.#strategy === 'hurrying') {
      // Where an honest member waits; other liars do not say that.
      if (message.type === 'have') this.#hurry(message.have.height, message.have.round);
      return;
    }
    if (message.type === 'vote') this.#react(message.vote.height, message.vote.round, message.vote.cut);
    else if (message.type === 'proposal')
      this.#react(message.proposal.height, message.proposal.round, message.proposal.cut);
    else if (message.type === 'have') this.#react(message.have.height, message.have.round, NIL);
  }

  #any(): Message {
    return this.#heard[this.#place.world.random(this.#heard.length)] as Message;
  }

  #react(height: number, round: number, cut: string): void {
    const { world, scenario } = this.#place;
    const { committee, seats } = seatOf(scenario, height);
    const member = seats.indexOf(this.number);
    if (member < 0) return;
    if (this.#strategy === 'deserting') {
      if (world.now >= scenario.chaosMillis || !this.#once(`${height}/${round}`)) return;
      for (const kind of [PREVOTE, PRECOMMIT] as const)
        for (let node = 0; node < scenario.nodes; node++) this.#vote(node, kind, height, round, NIL, member);
      return;
    }
    if (this.#strategy === 'junk') {
      if (world.chance(0.3)) this.#junk(height, round, member);
      return;
    }
    if (this.#once(`${height}/${round}/propose`))
      for (const ahead of [round, round + 1])
        if (committee.proposer(height, ahead) === member) this.#proposeTwo(height, ahead, cut, member);
    if (this.#strategy === 'equivocating' && this.#once(`${height}/${round}/${cut}`)) {
      for (const kind of [PREVOTE, PRECOMMIT] as const)
        for (let node = 0; node < scenario.nodes; node++) {
          if (world.chance(0.5)) this.#vote(node, kind, height, round, cut, member);
          if (world.chance(0.3)) this.#vote(node, kind, height, round, NIL, member);
          if (world.chance(0.1)) this.#vote(node, kind, height, round + 1, cut, member);
        }
    }
  }

  /** Votes in rounds that nobody has come to: a little ahead, and so far that nobody keeps it; never in the round of others. */
  #hurry(height: number, round: number): void {
    const { world, scenario } = this.#place;
    const member = seatOf(scenario, height).seats.indexOf(this.number);
    // Once the network has healed it would help others to jump.
    if (member < 0 || world.now >= scenario.chaosMillis || !this.#once(`${height}/${round}`)) return;
    const far = 1_000 + world.random(1_000_000);
    // What is kept is handed on after the healing, and would help too.
    for (const ahead of scenario.sides === undefined ? [1 + world.random(3), far] : [far])
      for (const kind of [PREVOTE, PRECOMMIT] as const)
        for (let node = 0; node < scenario.nodes; node++) this.#vote(node, kind, height, round + ahead, NIL, member);
  }

  #once(what: string): boolean {
    if (this.#done.has(what)) return false;
    this.#done.add(what);
    return true;
  }

  /** Two valid cuts, each to one half, with votes that fit. */
  #proposeTwo(height: number, round: number, heard: string, member: number): void {
    const { world, scenario } = this.#place;
    const like = this.#heard.find(
      (message) => message.type === 'proposal' && message.proposal.height === height && message.proposal.cut === heard,
    );
    const base = like?.type === 'proposal' ? like.proposal : this.#lastProposal(height);
    if (base === undefined) return;
    const model = world.cuts.get(base.cut);
    if (model === undefined) return;
    const cuts = [0, 1].map((i) => world.makeCut(height, model.parent, model.timestamp + i, true).name);
    for (let node = 0; node < scenario.nodes; node++) {
      const cut = cuts[node % 2] as string;
      const proposal: Proposal = { ...base, round, validRound: -1, cut, signature: signatureOf(this.number) };
      this.#sendTo(node, { type: 'proposal', proposal });
      for (const kind of [PREVOTE, PRECOMMIT] as const) this.#vote(node, kind, height, round, cut, member);
    }
  }

  #lastProposal(height: number): Proposal | undefined {
    for (const message of this.#heard)
      if (message.type === 'proposal' && message.proposal.height === height) return message.proposal;
    return undefined;
  }

  #junk(height: number, round: number, member: number): void {
    const { world, scenario } = this.#place;
    const node = world.random(scenario.nodes);
    const bad = world.makeCut(height, NIL, 0, false).name;
    const kind = world.random(2) === 0 ? PREVOTE : PRECOMMIT;
    switch (world.random(7)) {
      case 0:
        this.#vote(node, kind, height, round, bad, member);
        break;
      case 1: // Far rounds and heights.
        this.#vote(node, kind, height + world.random(3), round + world.random(1_000_000), bad, member);
        break;
      case 2: // Votes in the name of others and of nobody.
        this.#sendTo(node, {
          type: 'vote',
          vote: { kind, height, round, cut: NIL, member: world.random(64), signature: FORGED },
        });
        break;
      case 3: {
        const proposal: Proposal = {
          height,
          round: round + world.random(2),
          validRound: world.random(3) - 1,
          cut: bad,
          signers: BigInt(world.random(1 << 10)),
          lastRound: world.random(4),
          content: NOTHING,
          signature: signatureOf(this.number),
        };
        this.#sendTo(node, { type: 'proposal', proposal });
        break;
      }
      case 4: // A polka that it has not got.
        this.#sendTo(node, {
          type: 'proof',
          proof: {
            kind,
            height,
            round,
            cut: bad,
            votes: [0, 1, 2, 3].map((seat) => this.#ballot(kind, height, round, bad, seat)),
          },
        });
        break;
      case 5: // It lacks everything, or is ahead of everyone.
        this.#sendTo(node, {
          type: 'have',
          have: {
            height: Math.max(1, height - 1 + world.random(3)),
            round: world.random(round + 3),
            prevotes: 0n,
            precommits: 0n,
            hasProposal: false,
            validRound: -1,
            wantPolka: world.random(3) - 1,
            wantCut: bad,
            lastRound: world.random(3),
            lastPrecommits: 0n,
          },
        });
        break;
      default:
        this.#vote(node, kind, height, round, NIL, member);
        break;
    }
  }

  #ballot(kind: VoteKind, height: number, round: number, cut: string, member: number): Vote {
    return { kind, height, round, cut, member, signature: signatureOf(this.number) };
  }

  #vote(node: number, kind: VoteKind, height: number, round: number, cut: string, member: number): void {
    this.#sendTo(node, { type: 'vote', vote: this.#ballot(kind, height, round, cut, member) });
  }

  #sendTo(node: number, message: Message): void {
    if (node === this.number) return;
    const { world, deliver } = this.#place;
    world.carry(this.number, node, message, () => deliver(message, this.number, node));
  }
}
