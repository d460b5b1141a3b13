/**
 * Messages for members without a direct connection (consensus rule 25); one through a relay is none, as the relay may hold back what it carries. Their author names those members to two of its neighbours; each checks the message like
 * any other and sends it once to the named members that it is connected to. What still does not arrive comes by anti-entropy.
 */
import { ByteReader, type Bytes, ByteWriter, equalBytes } from '../../../protocol/bytes.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { FairShare } from '../../../runtime/clients/fair-share.ts';
import { SureShare } from '../../../runtime/clients/sure-share.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Committee } from '../engine/committee.ts';
import type { Message, Peer, Proposal } from '../engine/effects.ts';
import { earlyKey } from '../engine/intake.ts';
import { seenVote } from '../engine/last-cut.ts';
import type { ConsensusState } from '../engine/state.ts';
import { hasBit, PRECOMMIT, PREVOTE, type Vote } from '../engine/votes.ts';
import { MAX_KNOWN } from '../link/allowance.ts';
import { FORWARD_TYPE } from '../link/message-types.ts';
import type { Companion, Transport } from '../reach/transport.ts';
import { decodeMessage, encodeMessage } from './messages.ts';
import { memberOf } from './receivers.ts';

/** Neighbours that are asked. */
const FORWARDERS = 2;
/** Rounds before and after the own one of which messages are forwarded: members that work are no further apart. */
const NEAR_ROUNDS = 1;
/** Messages of one author and height that are forwarded: votes and proposals of ten rounds. */
export const MOST_OF_AUTHOR = 32;
export const FORWARD_HEAD_BYTES = 9;
const KIBIBYTE = 1024;
/**
 * What is sent for all authors together: own votes wait behind it, and liars may have most of the seats. In a second as much as strangers are sent
 * at most, and surely some messages of each author.
 */
const FORWARDED_KIB = { all: { perSecond: 4 * 1024, burst: 8 * 1024 }, sure: { perSecond: 8, burst: 64 } };
/** Members of which both of two contrary votes are told to everybody: liars that lose their bonds could fill the line at every height. */
const TOLD = { perSecond: 4, burst: 16 };

type Signed = Extract<Message, { type: 'vote' | 'proposal' }>;

export type Forward = { readonly members: bigint; readonly message: Signed; readonly bytes: Bytes };

/** `u8 19 | u64 members | message`: the bit of each member that has no connection to the author. */
export const encodeForward = (members: bigint, message: Bytes): Bytes =>
  new ByteWriter(FORWARD_HEAD_BYTES + message.length).u8(FORWARD_TYPE).u64(members).raw(message).done();

/** Undefined for a message of another kind. Throws a ProtocolError for a malformed one. */
export function decodeForward(encoded: Bytes): Forward | undefined {
  if (encoded[0] !== FORWARD_TYPE) return undefined;
  const reader = new ByteReader(encoded.subarray(1));
  const members = reader.u64();
  const bytes = reader.take(reader.left);
  const message = decodeMessage(bytes);
  if (message.type !== 'vote' && message.type !== 'proposal')
    throw new ProtocolError('unsupported_kind', `a ${message.type} is not forwarded`);
  return { members, message, bytes };
}

type Author = { readonly committee: Committee; readonly member: number };

/** Who signed it. A neighbour may be a height behind or ahead: what it lacks is what others must bring it. */
function authorOf({ height, committee, last }: ConsensusState, message: Signed): Author | undefined {
  const signed = message.type === 'vote' ? message.vote : message.proposal;
  const own = signed.height === height - 1 ? last?.committee : committee;
  if (own === undefined || Math.abs(signed.height - height) > 1) return undefined;
  return { committee: own, member: 'member' in signed ? signed.member : own.proposer(signed.height, signed.round) };
}

/**
 * Whether others may need it at once: what is of the own round or of one beside it, the first round of the next height, and precommits for the cut before. Its
 * author has it sent to as many as 63, so it may choose only among few; what is further away comes by anti-entropy.
 */
function isNear({ height, round, last }: ConsensusState, message: Signed): boolean {
  const signed = message.type === 'vote' ? message.vote : message.proposal;
  if (signed.height === height) return Math.abs(signed.round - round) <= NEAR_ROUNDS;
  if (signed.height > height) return signed.round === 0;
  return message.type === 'vote' && message.vote.kind === PRECOMMIT && last?.rounds.has(signed.round) === true;
}

const nameOfMessage = (message: Signed): string => {
  const { round, cut } = message.type === 'vote' ? message.vote : message.proposal;
  return `${round} ${message.type === 'vote' ? message.vote.kind : 0} ${cut}`;
};

/** Whether this very message, whose signature was checked then, is here already. */
function isHere(state: ConsensusState, { message, bytes }: Forward): boolean {
  const held = message.type === 'vote' ? heldVote(state, message.vote) : heldProposal(state, message.proposal);
  return held !== undefined && equalBytes(encodeMessage(held), bytes);
}

function heldVote({ height, rounds, last, early }: ConsensusState, vote: Vote): Message | undefined {
  const kept = rounds.get(vote.round);
  const tally = vote.kind === PREVOTE ? kept?.prevotes : kept?.precommits;
  const before = vote.height === last?.height ? seenVote(last, vote) : undefined;
  const held =
    vote.height === height ? tally?.votes[vote.member] : vote.height > height ? early.get(earlyKey(vote)) : before;
  return held && { type: 'vote', vote: held };
}

function heldProposal(state: ConsensusState, { height, round }: Proposal): Message | undefined {
  const held = height === state.height ? state.rounds.get(round)?.proposal : state.earlyProposals.get(round);
  return held && { type: 'proposal', proposal: held };
}

type ForwardingTransport = Pick<Transport, 'accountOf' | 'company' | 'proven' | 'nearest' | 'send'>;

export class Forwarding {
  readonly #transport: ForwardingTransport;
  readonly #steady: SteadyClock;
  readonly #forwardedKiB: SureShare;
  readonly #told: FairShare;
  /** By height and author, the messages: those of the next height come before it begins. */
  readonly #forwarded = new Map<number, Map<number, Set<string>>>();
  #turn = 0;

  constructor(transport: ForwardingTransport, steady: SteadyClock) {
    this.#transport = transport;
    this.#steady = steady;
    this.#forwardedKiB = new SureShare(FORWARDED_KIB, MAX_KNOWN, steady());
    this.#told = new FairShare(TOLD, steady());
  }

  /** The neighbours to ask to forward an own message, and for whom; undefined if it needs no forwarding. */
  request(state: ConsensusState, message: Message): { members: bigint; peers: readonly Peer[] } | undefined {
    if (message.type !== 'vote' && message.type !== 'proposal') return undefined;
    const { committee, self } = state;
    const author = authorOf(state, message);
    if (self < 0 || author?.committee !== committee || author.member !== self) return undefined;
    const direct = this.#connected(committee, ({ isRelayed }) => isRelayed !== true);
    let members = 0n;
    for (let member = 0; member < committee.size; member++)
      if (member !== self && !direct.has(member)) members |= 1n << BigInt(member);
    if (members === 0n) return undefined;
    direct.delete(self);
    const neighbours = [...direct.values()];
    const count = Math.min(FORWARDERS, neighbours.length);
    this.#turn += count;
    const peers = Array.from({ length: count }, (_, i) => neighbours[(this.#turn + i) % neighbours.length] as Peer);
    return { members, peers };
  }

  /**
   * A message whose signature is right goes to the named members, once to each. Only its author may ask for that, on a connection on which it proved its key, and
   * not too often. It need not be new: otherwise anybody who hands it on before its author does would keep it from those members.
   */
  forward(state: ConsensusState, from: Peer, asked: Forward, isNew: boolean): void {
    const { members, message, bytes } = asked;
    const author = authorOf(state, message);
    const key = author?.committee.members[author.member]?.publicKey;
    const proven = this.#transport.proven(from)?.key;
    if (author === undefined || key === undefined || proven === undefined || !equalBytes(key, proven)) return;
    if (!isNear(state, message) || (!isNew && !isHere(state, asked))) return;
    const { height } = message.type === 'vote' ? message.vote : message.proposal;
    const ofHeight = this.#forwarded.get(height) ?? new Map<number, Set<string>>();
    this.#forwarded.set(height, ofHeight);
    const forwarded = ofHeight.get(author.member) ?? new Set();
    ofHeight.set(author.member, forwarded);
    const name = nameOfMessage(message);
    if (forwarded.has(name) || forwarded.size >= MOST_OF_AUTHOR) return;
    forwarded.add(name);
    const [account, cost] = [this.#transport.accountOf(from), bytes.length / KIBIBYTE];
    for (const [member, peer] of this.#connected(author.committee)) {
      if (member === author.member || !hasBit(members, member)) continue;
      if (!this.#forwardedKiB.take(account, this.#steady(), cost)) return;
      this.#transport.send(peer, bytes);
    }
  }

  /** Whether the two votes of this member are sent to all now: others saw them too, and one such pair is enough to slash it. */
  mayTellOf(member: number): boolean {
    return this.#told.take(String(member), this.#steady());
  }

  nextHeight(height: number): void {
    for (const before of this.#forwarded.keys()) if (before < height - 1) this.#forwarded.delete(before);
  }

  /** Members by a direct connection, or else their newest one. */
  #connected(committee: Committee, counts: (companion: Companion) => boolean = () => true): Map<number, Peer> {
    const found = new Map<number, Peer>();
    for (const { peers, key } of this.#transport.company().filter(counts)) {
      const member = memberOf(committee, key) ?? -1;
      const peer = peers.at(-1);
      if (member >= 0 && peer !== undefined) found.set(member, this.#transport.nearest(peer));
    }
    return found;
  }
}
