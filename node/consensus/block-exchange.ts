/**
 * Work blocks between neighbours (consensus rules 19 and 20): a node that accepts a block offers it, a node that lacks
 * it asks, and blocks of a proposed cut are asked for at once. Blocks that were not asked for are ignored, so no
 * neighbour can fill this node with bodies.
 */
import { MAX_BODY_BYTES } from '../../protocol/body.ts';
import { ByteReader, type Bytes, ByteWriter, concat } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { blockId, HEADER_BYTES } from '../../protocol/header.ts';
import { ID_BYTES } from '../../protocol/identifier.ts';
import type { Logger } from '../../runtime/log.ts';
import { type Bucket, fullBucket, refill, take } from '../../runtime/token-bucket.ts';
import type { FullNode } from '../full-node.ts';
import { nameOf } from '../ledger/registration.ts';
import { EARLY_CODES, type EarlyBlock, EarlyBlocks } from '../mining/early-blocks.ts';
import type { NodeErrorCode } from '../node-error.ts';
import type { CutDesk } from './cut-desk.ts';
import type { Peer } from './effects.ts';
import type { Transport } from './transport.ts';

export const BLOCK_MESSAGE_TYPES = { want: 6, block: 7, offer: 8 } as const;
export const MAX_BLOCK_MESSAGE_BYTES = 1 + HEADER_BYTES + MAX_BODY_BYTES;
/** Identifiers in one message: as many as a cut has blocks. */
const MAX_IDS = 64;
/** Pending requests to one neighbour. Each neighbour has its own limit, so none can displace requests to others. */
const MAX_ASKED = 128;
/** Other neighbours that offered a block, asked if the first does not send it. */
const MAX_OTHERS = 4;
/** A block that has not arrived after this many answer times is given up. */
const GIVEN_UP = 8;
/**
 * Bodies sent to one neighbour: the largest cut at once, and then the rate of a busy chain. All strangers together get
 * less: each body is a read of the store.
 */
const SERVED = { perSecond: 8 * 1024 * 1024, burst: 72 * 1024 * 1024 };
const SERVED_STRANGERS = { perSecond: 4 * 1024 * 1024, burst: 32 * 1024 * 1024 };

/**
 * Identifiers in offers and requests that are looked up, each a read of the store: of one known neighbour, and of all
 * strangers together. Further ones are ignored.
 */
const LOOKED_UP = { perSecond: 2_000, burst: 16_000 };
const LOOKED_UP_STRANGERS = { perSecond: 2_000, burst: 4_000 };

/** More than any honest neighbour offers, whatever its height. */
const FAULTS: ReadonlySet<NodeErrorCode> = new Set([
  ...['pow_above_target', 'header_malformed', 'body_malformed'],
  ...['parents_root_mismatch', 'reward_root_mismatch', 'transactions_root_mismatch'],
] as NodeErrorCode[]);

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

/** Undefined where the type is none of these. */
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

type Asked = { readonly peer: Peer; readonly at: number; readonly since: number; readonly others: readonly Peer[] };

export type BlockExchangeDependencies = {
  readonly node: Pick<FullNode, 'chain' | 'submitBlock' | 'on'>;
  readonly transport: Transport;
  readonly desk: CutDesk;
  /** How long a neighbour has before another one is asked. */
  readonly askAgainMillis: number;
  readonly log: Logger;
  /** Milliseconds of a monotonic clock. */
  steady(): number;
};

export class BlockExchange {
  readonly #with: BlockExchangeDependencies;
  readonly #asked = new Map<string, Asked & { readonly id: Bytes }>();
  /** Undefined: shared by all strangers. */
  readonly #served = new Map<Peer | undefined, Bucket>();
  readonly #lookedUp = new Map<Peer | undefined, Bucket>();
  readonly #early: EarlyBlocks<Peer>;
  readonly #unsubscribe: readonly (() => void)[];
  #turn = 0;

  constructor(dependencies: BlockExchangeDependencies) {
    this.#with = dependencies;
    const { node, transport } = dependencies;
    this.#early = new EarlyBlocks({
      isKnown: (id) => node.chain.block(id) !== undefined,
      headHeight: () => node.chain.head().height,
      senderOf: (peer) =>
        transport.known().includes(peer)
          ? { name: String(peer), isStranger: false }
          : { name: transport.placeOf(peer), isStranger: true },
    });
    this.#unsubscribe = [
      node.on('block', ({ id }) => {
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
    this.#served.delete(peer);
    this.#lookedUp.delete(peer);
    for (const [name, asked] of this.#asked) if (asked.peer === peer) this.#askNext(name, asked);
  }

  /** A block that a neighbour did not send in time is requested from another that offered it. */
  tick(): void {
    const { steady, askAgainMillis } = this.#with;
    const now = steady();
    for (const [name, asked] of this.#asked) {
      if (now - asked.at < askAgainMillis) continue;
      if (now - asked.since > GIVEN_UP * askAgainMillis) this.#asked.delete(name);
      else if (asked.others.length > 0) this.#askNext(name, asked);
    }
  }

  #askNext(name: string, { id, since, others: [next, ...others] }: Asked & { readonly id: Bytes }): void {
    const { transport, steady } = this.#with;
    this.#asked.delete(name);
    if (next === undefined) return;
    this.#asked.set(name, { id, peer: next, at: steady(), since, others });
    transport.send(next, encodeBlockMessage({ type: 'want', ids: [id] }));
  }

  #offer(peers: readonly Peer[], ids: readonly Bytes[]): void {
    for (const peer of peers) this.#with.transport.send(peer, encodeBlockMessage({ type: 'offer', ids }));
  }

  /** Requests the blocks of a proposed cut, from another neighbour each time. `first` is the one that sent it. */
  want(ids: readonly Bytes[], first: Peer | undefined): void {
    const { transport } = this.#with;
    const peers = transport.peers();
    if (peers.length === 0) return;
    const isThere = first !== undefined && peers.includes(first);
    const known = transport.known();
    const others = known.length > 0 ? known : peers;
    this.#turn++;
    const peer = isThere && this.#turn % 2 === 1 ? first : (others[this.#turn % others.length] as Peer);
    this.#ask(peer, ids);
  }

  /** True if the message was one of these. Throws a ProtocolError. */
  take(peer: Peer, bytes: Bytes): boolean {
    const message = decodeBlockMessage(bytes);
    if (message === undefined) return false;
    if (message.type === 'block') this.#receive(peer, message.header, message.body).catch((error) => this.#fail(error));
    else if (!this.#mayLookUp(peer, message.ids.length)) return true;
    else if (message.type === 'want') this.#serve(peer, message.ids);
    else {
      const unknown = message.ids.filter((id) => this.#with.node.chain.block(id) === undefined);
      this.#ask(peer, unknown, MAX_ASKED - this.#askedOf(peer));
    }
    return true;
  }

  #mayLookUp(peer: Peer, count: number): boolean {
    const { transport, steady } = this.#with;
    const isKnown = transport.known().includes(peer);
    const of = isKnown ? peer : undefined;
    const rate = isKnown ? LOOKED_UP : LOOKED_UP_STRANGERS;
    const now = steady();
    const bucket = take(this.#lookedUp.get(of) ?? fullBucket(rate, now), rate, now, count);
    if (bucket !== undefined) this.#lookedUp.set(of, bucket);
    return bucket !== undefined;
  }

  #askedOf(peer: Peer): number {
    let count = 0;
    for (const asked of this.#asked.values()) if (asked.peer === peer) count++;
    return count;
  }

  #ask(peer: Peer, ids: readonly Bytes[], room = MAX_IDS): void {
    const { transport, steady, askAgainMillis } = this.#with;
    const now = steady();
    const open: Bytes[] = [];
    for (const id of ids) {
      const name = nameOf(id);
      const asked = this.#asked.get(name);
      if (asked === undefined || now - asked.at >= askAgainMillis) {
        if (open.length >= room) break;
        this.#asked.set(name, { id, peer, at: now, since: asked?.since ?? now, others: asked?.others ?? [] });
        open.push(id);
      } else if (asked.peer !== peer && asked.others.length < MAX_OTHERS && !asked.others.includes(peer))
        this.#asked.set(name, { ...asked, others: [...asked.others, peer] });
    }
    if (open.length > 0) transport.send(peer, encodeBlockMessage({ type: 'want', ids: open }));
  }

  #serve(peer: Peer, ids: readonly Bytes[]): void {
    const { node, transport, steady } = this.#with;
    const isKnown = transport.known().includes(peer);
    const [of, rate] = isKnown ? [peer, SERVED] : [undefined, SERVED_STRANGERS];
    for (const id of ids) {
      const now = steady();
      const bucket = refill(this.#served.get(of) ?? fullBucket(rate, now), rate, now);
      // Charged before the body is read; the last one may exceed the remaining allowance.
      if (bucket.tokens <= 0) return;
      const header = node.chain.block(id)?.header;
      const body = header && node.chain.blockBody(id);
      if (header === undefined || body === undefined) continue;
      this.#served.set(of, { ...bucket, tokens: bucket.tokens - body.length });
      transport.send(peer, encodeBlockMessage({ type: 'block', header, body }));
    }
  }

  async #receive(peer: Peer, header: Bytes, body: Bytes): Promise<void> {
    const { desk } = this.#with;
    const id = blockId(header);
    if (this.#asked.get(nameOf(id))?.peer !== peer) return;
    this.#asked.delete(nameOf(id));
    if (desk.names(id)) {
      desk.arrived({ id, header, body, from: peer });
      return;
    }
    await this.#submit({ from: peer, header, body });
  }

  #again(blocks: readonly EarlyBlock<Peer>[]): void {
    for (const block of blocks) this.#submit(block).catch((error) => this.#fail(error));
  }

  async #submit(block: EarlyBlock<Peer>): Promise<void> {
    const { node, transport } = this.#with;
    const { from, header, body } = block;
    const outcome = await node.submitBlock(header, body, 'relayed');
    if (outcome.status !== 'refused') return;
    const { code } = outcome.error;
    if (FAULTS.has(code)) transport.drop(from, code);
    const missing = EARLY_CODES.has(code) ? this.#early.keep(block) : undefined;
    if (missing !== undefined) this.#ask(from, missing, MAX_ASKED - this.#askedOf(from));
  }

  #fail(error: unknown): void {
    this.#with.log.error('a block of a neighbour could not be looked at', { error });
  }
}
