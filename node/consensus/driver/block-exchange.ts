/**
 * Work blocks between neighbours (consensus rules 19 and 20): a node that accepts a block offers it, a node that lacks
 * it asks, and blocks of a proposed cut are asked for at once. Blocks that were not asked for are ignored, so no
 * neighbour can fill this node with bodies.
 */

import { ByteReader, type Bytes, ByteWriter, concat } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import { ProtocolError } from '../../../protocol/errors.ts';
import { MAX_BODY_BYTES } from '../../../protocol/ledger/body.ts';
import { blockId, HEADER_BYTES } from '../../../protocol/ledger/header.ts';
import { FairShare } from '../../../runtime/clients/fair-share.ts';
import { SureShare } from '../../../runtime/clients/sure-share.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import type { FullNode } from '../../full-node.ts';
import { nameOf } from '../../ledger/registration.ts';
import { isSendersFault } from '../../mining/candidate.ts';
import { EARLY_CODES, type EarlyBlock, EarlyBlocks } from '../../mining/early-blocks.ts';
import type { Peer } from '../engine/effects.ts';
import { MAX_KNOWN } from '../link/allowance.ts';
import { BLOCK_MESSAGE_TYPES } from '../link/message-types.ts';
import type { Transport } from '../reach/transport.ts';
import type { CutDesk } from './cut-desk.ts';

const KIBIBYTE = 1024;
/** Identifiers in one message: as many as a cut has blocks. */
const MAX_IDS = 64;
/** Pending requests to one neighbour. Each neighbour has its own limit, so none can displace requests to others. */
const MAX_ASKED = 128;
/** Strangers that offered a block, asked if nobody else sends it. */
const MAX_STRANGERS = 4;
/**
 * Bodies that wait for their turn: a hash may wait for minutes while a dataset is prepared. No known neighbour, nor all strangers together,
 * has more of them than is left for others, on all connections that it has or had; so much is sure.
 */
const MAX_LINED_UP_BYTES = 128 * 1024 * 1024;
const SURELY_LINED_UP_BYTES = 4 * MAX_BODY_BYTES;
/** The account that all strangers share. */
const STRANGERS = '';
/** A block that has not arrived after this many answer times is given up. */
const GIVEN_UP = 8;
/**
 * What those that are known share: a body is a read of the store, and so is each identifier in an offer or request. A seat costs
 * little: a few liars may have most of the 64. One alone is sent the largest cut at once.
 */
const SERVED_KIB = { all: { perSecond: 32 * 1024, burst: 144 * 1024 }, sure: { perSecond: 512, burst: 2_048 } };
const LOOKED_UP = { all: { perSecond: 8_000, burst: 32_000 }, sure: { perSecond: 64, burst: 512 } };
/** The same for strangers, of which each address has a fair part. */
const SERVED_STRANGERS_KIB = { perSecond: 4 * 1024, burst: 32 * 1024 };
const LOOKED_UP_STRANGERS = { perSecond: 2_000, burst: 4_000 };

export type BlockMessage =
  | { readonly type: 'want' | 'offer'; readonly ids: readonly Bytes[] }
  | { readonly type: 'block'; readonly header: Bytes; readonly body: Bytes };

export function encodeBlockMessage(message: BlockMessage): Uint8Array<ArrayBuffer> {
  if (message.type === 'block') return concat(Uint8Array.of(BLOCK_MESSAGE_TYPES.block), message.header, message.body);
  const writer = new ByteWriter(2 + message.ids.length * ID_BYTES).u8(BLOCK_MESSAGE_TYPES[message.type]);
  writer.u8(message.ids.length);
  for (const id of message.ids) writer.raw(id);
  return writer.done();
}

/** Undefined where the type is none of these. Throws a ProtocolError for a malformed one. */
export function decodeBlockMessage(bytes: Bytes): BlockMessage | undefined {
  const reader = new ByteReader(bytes);
  const type = reader.u8();
  if (type === BLOCK_MESSAGE_TYPES.block)
    return { type: 'block', header: reader.take(HEADER_BYTES), body: reader.take(reader.left) };
  if (type !== BLOCK_MESSAGE_TYPES.want && type !== BLOCK_MESSAGE_TYPES.offer) return undefined;
  const count = reader.u8();
  if (count < 1 || count > MAX_IDS) throw new ProtocolError('out_of_range', 'a message names 1 to 64 blocks');
  const ids = Array.from({ length: count }, () => reader.take(ID_BYTES));
  reader.end();
  return { type: type === BLOCK_MESSAGE_TYPES.want ? 'want' : 'offer', ids };
}

type Question = { readonly to: Peer | undefined; readonly at: number };
const NO_QUESTION: Question = { to: undefined, at: Number.NEGATIVE_INFINITY };

/**
 * A block that is asked for. One neighbour at a time, each once, those that are known before strangers: an offer can only add
 * its sender to those that may be asked.
 */
type WantedBlock = {
  readonly id: Bytes;
  /** When it was wanted first, or by a proposed cut last. */
  since: number;
  /** By a proposed cut: then all that are known are asked before a stranger is. */
  isNamed: boolean;
  /** Who was asked last, and which known neighbour was. */
  last: Question;
  lastKnown: Question;
  readonly asked: Set<Peer>;
  readonly offers: Set<Peer>;
  /** A body came and is looked at. If it is a wrong one, the block is wanted again, and who was asked is not forgotten. */
  isAnswered: boolean;
};

/** `account`: where its body is counted. */
type LinedUp = EarlyBlock<Peer> & { readonly account: string };

type Shared = Readonly<Record<'servedKiB' | 'lookedUp', Pick<SureShare, 'has' | 'take'>>>;

export type BlockExchangeDependencies = {
  readonly node: Pick<FullNode, 'chain' | 'submitBlock' | 'on'>;
  readonly transport: Transport;
  readonly desk: CutDesk;
  /** How long a neighbour has before another one is asked. */
  readonly askAgainMillis: number;
  readonly log: Logger;
  /** Milliseconds of a monotonic clock. */
  readonly steady: SteadyClock;
};

export class BlockExchange {
  readonly #with: BlockExchangeDependencies;
  readonly #wanted = new Map<string, WantedBlock>();
  /** By neighbour, those that it offered or was asked for: counting them must not cost more the more others offer. */
  readonly #ofPeer = new Map<Peer, Set<WantedBlock>>();
  /** Blocks of one neighbour whose work is checked, one after the other. */
  readonly #lines = new Map<Peer, LinedUp[]>();
  /** Bytes by account. */
  readonly #linedUp = new Map<string, number>();
  readonly #known: Shared;
  readonly #strangers: Shared;
  readonly #early: EarlyBlocks<Peer>;
  readonly #unsubscribe: readonly (() => void)[];
  #turn = 0;

  constructor(dependencies: BlockExchangeDependencies) {
    this.#with = dependencies;
    const { node, transport, steady } = dependencies;
    const now = steady();
    this.#known = {
      servedKiB: new SureShare(SERVED_KIB, MAX_KNOWN, now),
      lookedUp: new SureShare(LOOKED_UP, MAX_KNOWN, now),
    };
    this.#strangers = {
      servedKiB: new FairShare(SERVED_STRANGERS_KIB, now),
      lookedUp: new FairShare(LOOKED_UP_STRANGERS, now),
    };
    this.#early = new EarlyBlocks({
      isKnown: (id) => node.chain.block(id) !== undefined,
      headHeight: () => node.chain.head().height,
      senderOf: (peer) =>
        transport.isKnown(peer)
          ? { name: transport.accountOf(peer), isStranger: false }
          : { name: transport.limitKey(peer), isStranger: true },
    });
    this.#unsubscribe = [
      node.on('block', ({ id }) => {
        this.#giveUp(this.#wanted.get(nameOf(id)));
        this.#offer(transport.peers(), [id]);
        this.#again(this.#early.arrived(id));
      }),
      node.on('cut', ({ registered }) => {
        this.#again(this.#early.cut(registered.map(({ id }) => id)));
        // Blocks not in this cut may not have reached its proposer: an offer can be lost, or refused for the moment.
        this.#offerWaiting(transport.peers());
      }),
    ];
  }

  /** Neighbours of which blocks are remembered. */
  get neighbours(): number {
    return this.#ofPeer.size;
  }

  close(): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
  }

  joined(peer: Peer): void {
    this.#offerWaiting([peer]);
  }

  #offerWaiting(peers: readonly Peer[]): void {
    const ids = [...this.#with.node.chain.waitingBlocks()].map(({ id }) => id).slice(0, MAX_ASKED);
    for (let at = 0; at < ids.length; at += MAX_IDS) this.#offer(peers, ids.slice(at, at + MAX_IDS));
  }

  left(peer: Peer): void {
    const own = [...(this.#ofPeer.get(peer) ?? [])];
    this.#ofPeer.delete(peer);
    for (const wanted of own) {
      wanted.offers.delete(peer);
      if (wanted.last.to === peer) wanted.last = NO_QUESTION;
      if (wanted.lastKnown.to === peer) wanted.lastKnown = NO_QUESTION;
    }
    this.#askNext(own);
  }

  /** A block that a neighbour did not send in time is requested from another that offered it. */
  tick(): void {
    const { steady, askAgainMillis } = this.#with;
    const now = steady();
    for (const wanted of this.#wanted.values())
      if (now - wanted.since > GIVEN_UP * askAgainMillis) this.#giveUp(wanted);
    this.#askNext([...this.#wanted.values()]);
  }

  #offer(peers: readonly Peer[], ids: readonly Bytes[]): void {
    for (const peer of peers) this.#with.transport.send(peer, encodeBlockMessage({ type: 'offer', ids }));
  }

  /**
   * Requests the blocks of a proposed cut: of `first`, which brought it, then of the others that are known in turn. Strangers
   * come after all of those, and only if they sent the cut or offered the block.
   */
  want(ids: readonly Bytes[], ...first: readonly Peer[]): void {
    const { transport } = this.#with;
    const [known, there] = [transport.known(), transport.peers()];
    const others = known.length > 0 ? known : there;
    const turn = this.#turn++ % Math.max(1, others.length);
    // One that has left is never asked: it must not count as one that still can be.
    const sources = [...first.filter((peer) => there.includes(peer)), ...others.slice(turn), ...others.slice(0, turn)];
    const wanted = ids.map((id) => this.#wantedOf(id));
    for (const block of wanted) Object.assign(block, { isAnswered: false, isNamed: true, since: this.#with.steady() });
    // All that could be asked were asked: those that are known may have it by now.
    for (const { asked, offers } of wanted)
      if (![...sources, ...offers].some((peer) => !asked.has(peer))) for (const peer of others) asked.delete(peer);
    this.#askNext(wanted, sources);
  }

  take(peer: Peer, message: BlockMessage): void {
    if (message.type === 'block') this.#receive(peer, message.header, message.body);
    else if (!this.#mayLookUp(peer, message.ids.length)) return;
    else if (message.type === 'want') this.#serve(peer, message.ids);
    else {
      const unknown = message.ids.filter((id) => this.#with.node.chain.block(id) === undefined);
      this.#offered(peer, unknown);
    }
  }

  #mayLookUp(peer: Peer, count: number): boolean {
    const { lookedUp, name } = this.#sharedBy(peer);
    return lookedUp.take(name, this.#with.steady(), count);
  }

  /** Counted for a known neighbour, not for its connections: another one is no other part. */
  #sharedBy(peer: Peer): Shared & { readonly name: string } {
    const { transport } = this.#with;
    if (!transport.isKnown(peer)) return { ...this.#strangers, name: transport.limitKey(peer) };
    return { ...this.#known, name: transport.accountOf(peer) };
  }

  #wantedOf(id: Bytes): WantedBlock {
    const known = this.#wanted.get(nameOf(id));
    if (known !== undefined) return known;
    const wanted = {
      id,
      since: this.#with.steady(),
      last: NO_QUESTION,
      lastKnown: NO_QUESTION,
      asked: new Set<Peer>(),
      offers: new Set<Peer>(),
      isAnswered: false,
      isNamed: false,
    };
    this.#wanted.set(nameOf(id), wanted);
    return wanted;
  }

  #giveUp(wanted: WantedBlock | undefined): void {
    if (wanted === undefined) return;
    this.#wanted.delete(nameOf(wanted.id));
    for (const peer of [...wanted.asked, ...wanted.offers]) {
      const own = this.#ofPeer.get(peer);
      own?.delete(wanted);
      // The parents of a block are noted when it was looked at; its sender may have left by then.
      if (own?.size === 0) this.#ofPeer.delete(peer);
    }
  }

  #noted(peer: Peer, wanted: WantedBlock): void {
    const own = this.#ofPeer.get(peer);
    if (own === undefined) this.#ofPeer.set(peer, new Set([wanted]));
    else own.add(wanted);
  }

  #offered(peer: Peer, ids: readonly Bytes[]): void {
    const { transport } = this.#with;
    let room = MAX_ASKED - (this.#ofPeer.get(peer)?.size ?? 0) - (this.#lines.get(peer)?.length ?? 0);
    const wanted: WantedBlock[] = [];
    for (const id of ids) {
      const found = this.#wanted.get(nameOf(id));
      if (found?.asked.has(peer) || found?.offers.has(peer)) continue;
      if (room-- <= 0) break;
      const block = found ?? this.#wantedOf(id);
      wanted.push(block);
      const { offers } = block;
      const isCrowded = () => [...offers].filter((other) => !transport.isKnown(other)).length >= MAX_STRANGERS;
      if (!transport.isKnown(peer) && isCrowded()) continue;
      offers.add(peer);
      this.#noted(peer, block);
    }
    this.#askNext(wanted);
  }

  /** Asks the next neighbour for each block, unless an answer is awaited: a known neighbour waits only for another one. */
  #askNext(blocks: readonly WantedBlock[], sources: readonly Peer[] = []): void {
    const { transport, steady, askAgainMillis } = this.#with;
    const now = steady();
    const there = new Set(transport.peers());
    const questions = new Map<Peer, Bytes[]>();
    for (const wanted of blocks) {
      const { id, asked, offers } = wanted;
      // Looked at first, because most that is offered waits for an answer, and hundreds may offer the same.
      if (wanted.isAnswered || now - wanted.lastKnown.at < askAgainMillis) continue;
      const open = (peer: Peer) => there.has(peer) && !asked.has(peer);
      const [known, stranger] = this.#firstOf([...sources, ...offers], open);
      const peer = known ?? (wanted.isNamed && sources.length === 0 ? undefined : stranger);
      if (peer === undefined || (known === undefined && now - wanted.last.at < askAgainMillis)) continue;
      asked.add(peer);
      offers.delete(peer);
      this.#noted(peer, wanted);
      wanted.last = { to: peer, at: now };
      if (known !== undefined) wanted.lastKnown = wanted.last;
      const question = questions.get(peer);
      if (question === undefined) questions.set(peer, [id]);
      else question.push(id);
    }
    for (const [peer, ids] of questions)
      for (let at = 0; at < ids.length; at += MAX_IDS)
        transport.send(peer, encodeBlockMessage({ type: 'want', ids: ids.slice(at, at + MAX_IDS) }));
  }

  /** The first that is known, or else the first stranger: a direct connection before a circuit, which comes last, as the direct one may be dead, and not known to be. */
  #firstOf(
    all: readonly Peer[],
    isOpen: (peer: Peer) => boolean,
  ): readonly [known: Peer | undefined, stranger?: Peer | undefined] {
    const { transport } = this.#with;
    let stranger: Peer | undefined;
    for (const way of [(peer: Peer) => transport.nearest(peer), (peer: Peer) => peer])
      for (const each of all) {
        const peer = way(each);
        if (!isOpen(peer)) continue;
        if (transport.isKnown(peer)) return [peer];
        stranger ??= peer;
      }
    return [undefined, stranger];
  }

  #serve(peer: Peer, ids: readonly Bytes[]): void {
    const { node, transport, steady } = this.#with;
    const { servedKiB, name } = this.#sharedBy(peer);
    for (const id of ids) {
      const now = steady();
      // Before the body is read.
      if (!servedKiB.has(name, now, MAX_BODY_BYTES / KIBIBYTE)) return;
      const header = node.chain.block(id)?.header;
      const body = header && node.chain.blockBody(id);
      if (header === undefined || body === undefined) continue;
      servedKiB.take(name, now, body.length / KIBIBYTE);
      transport.send(peer, encodeBlockMessage({ type: 'block', header, body }));
    }
  }

  #receive(peer: Peer, header: Bytes, body: Bytes): void {
    const { desk } = this.#with;
    const id = blockId(header);
    const wanted = this.#wanted.get(nameOf(id));
    if (wanted === undefined || wanted.isAnswered || !wanted.asked.has(peer)) return;
    if (desk.names(id)) {
      Object.assign(wanted, { isAnswered: true, last: NO_QUESTION, lastKnown: NO_QUESTION });
      desk.arrived({ id, header, body, from: peer });
      return;
    }
    this.#giveUp(wanted);
    this.#submit({ from: peer, header, body });
  }

  #again(blocks: readonly EarlyBlock<Peer>[]): void {
    for (const block of blocks) this.#submit(block);
  }

  /** In its sender's line: a hash is computed for the first block without work, not for all that came with it. */
  #submit(block: EarlyBlock<Peer>): void {
    const { from, body } = block;
    const { transport } = this.#with;
    const account = transport.isKnown(from) ? transport.accountOf(from) : STRANGERS;
    const all = [...this.#linedUp.values()].reduce((sum, bytes) => sum + bytes, 0);
    const own = (this.#linedUp.get(account) ?? 0) + body.length;
    if (own > Math.max(SURELY_LINED_UP_BYTES, MAX_LINED_UP_BYTES - all)) return;
    const entry = { ...block, account };
    this.#count(entry, body.length);
    const line = this.#lines.get(from);
    if (line === undefined) this.#submitAll(from, [entry]).catch((error) => this.#fail(error));
    else line.push(entry);
  }

  async #submitAll(from: Peer, line: LinedUp[]): Promise<void> {
    this.#lines.set(from, line);
    try {
      for (let isFalse = false; line.length > 0 && !isFalse; ) {
        const [first] = line as [LinedUp];
        isFalse = await this.#isFalse(first);
        line.shift();
        this.#count(first, -first.body.length);
      }
    } finally {
      this.#lines.delete(from);
      for (const left of line) this.#count(left, -left.body.length);
    }
  }

  #count({ account }: LinedUp, bytes: number): void {
    const held = (this.#linedUp.get(account) ?? 0) + bytes;
    if (held > 0) this.#linedUp.set(account, held);
    else this.#linedUp.delete(account);
  }

  /** Whether its sender is to blame. */
  async #isFalse(block: EarlyBlock<Peer>): Promise<boolean> {
    const { node, transport } = this.#with;
    const { from, header, body } = block;
    const outcome = await node.submitBlock(header, body, 'relayed');
    if (outcome.status !== 'refused') return false;
    const { code } = outcome.error;
    if (isSendersFault(code)) transport.drop(from, code);
    const missing = EARLY_CODES.has(code) ? this.#early.keep({ from, header, body }) : undefined;
    if (missing !== undefined) this.#offered(from, missing);
    return isSendersFault(code);
  }

  #fail(error: unknown): void {
    this.#with.log.error('a block of a neighbour could not be looked at', { error });
  }
}
