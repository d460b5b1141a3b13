/**
 * Hooks into the library's gossip: every message that a peer sends or announces, also a known one, is seen here first,
 * and the library gets only those that may come: it remembers each for two minutes, whatever becomes of it. And adds
 * missing limits: of the frames of a peer, of what it decides for how long, and of the messages that it requests, which
 * are sent in one frame.
 */
import { createHash } from 'node:crypto';
import type { GossipSub } from '@libp2p/gossipsub';
import type { PeerId } from '@libp2p/interface';

/** Far more than any message has: a block has at most 304 short identifiers. */
export const GOSSIP_FRAME_BYTES = 1_024 * 1_024;
/** Lists of one frame that the library reads: an honest peer sends one of each kind for a topic. */
const MAX_LISTS = 16;
export const GOSSIP_LISTS = {
  maxSubscriptions: MAX_LISTS,
  maxControlMessages: MAX_LISTS,
  maxMessages: 5_000,
  maxIhaveMessageIDs: 5_000,
  maxIwantMessageIDs: 5_000,
  maxIdontwantMessageIDs: 512,
  maxPeerInfos: MAX_LISTS,
};
/** How long a peer may want no messages, in seconds. The library remembers it for so long, also when the peer has left. */
const MAX_BACKOFF = 60;
/** Messages that one peer gets at once when it asks for them: 32 of the largest fit into a frame. The others are offered again a second later. */
const MAX_GIVEN = 32;

export const messageId = (topic: string, data: Uint8Array): Uint8Array =>
  createHash('sha256').update(topic).update(data).digest().subarray(0, 20);

export const keyOf = (id: Uint8Array): string => Buffer.from(id).toString('latin1');

type Listed = { messageIDs?: Uint8Array[] };
type Rpc = {
  messages?: { readonly topic?: string; readonly data?: Uint8Array }[];
  readonly control?: { readonly ihave?: Listed[]; readonly iwant?: Listed[]; readonly prune?: { backoff?: number }[] };
};
type Frame = { readonly byteLength: number };
/** The members of the library's class used here; its public interface has fewer. */
export type GossipInside = {
  handleReceivedRpc(from: PeerId, rpc: Rpc): Promise<void>;
  pipePeerReadStream(from: PeerId, frames: AsyncIterable<Frame>): Promise<void>;
  readonly seenCache: { readonly size: number; readonly entries: Map<string, unknown> };
  readonly msgIdToStrFn: (id: Uint8Array) => string;
  readonly streamsInbound: ReadonlyMap<string, unknown>;
  readonly streamsOutbound: ReadonlyMap<string, unknown>;
};

export const insideOf = (gossip: GossipSub): GossipInside => gossip as unknown as GossipInside;

/** The library sends the message again, though it has seen it. */
export function forgetSeen(gossip: GossipSub, id: Uint8Array): void {
  const { seenCache, msgIdToStrFn } = insideOf(gossip);
  seenCache.entries.delete(msgIdToStrFn(id));
}

export type GossipScreen = {
  /** Whether the library gets the message. Asked before its name is computed. */
  mayCome(peer: PeerId, data: Uint8Array): boolean;
  /** `data`: the message itself, and not only its name. */
  heard(peer: PeerId, id: Uint8Array, data?: Uint8Array): void;
};

/** Limits what a peer gets at once to the frame size it can read, and what is remembered of its words. */
export function limitGiven(gossip: GossipSub): void {
  before(gossip, (_, { control }) => {
    shorten(control?.iwant);
    for (const prune of control?.prune ?? []) prune.backoff = Math.min(MAX_BACKOFF, prune.backoff ?? MAX_BACKOFF);
  });
}

/** `may`: whether a frame of so many bytes may come. Gossip of the peer ends with the first that may not. */
export function limitFrames(gossip: GossipSub, may: (peer: PeerId, bytes: number) => boolean): void {
  const inside = insideOf(gossip);
  const read = inside.pipePeerReadStream.bind(gossip);
  inside.pipePeerReadStream = (from, frames) =>
    read(
      from,
      admitted(frames, (bytes) => may(from, bytes)),
    );
}

async function* admitted(frames: AsyncIterable<Frame>, may: (bytes: number) => boolean): AsyncGenerator<Frame> {
  for await (const frame of frames) {
    if (!may(frame.byteLength)) return;
    yield frame;
  }
}

export function screen(gossip: GossipSub, { mayCome, heard }: GossipScreen): void {
  before(gossip, (from, rpc) => {
    rpc.messages = (rpc.messages ?? []).flatMap(({ topic, data: seen }) => {
      if (topic === undefined || seen === undefined || !mayCome(from, seen)) return [];
      // Its own bytes, and nothing else of it: what is kept must not keep the whole frame, and what is passed on has no more than was judged.
      const data = new Uint8Array(seen);
      heard(from, messageId(topic, data), data);
      return [{ topic, data }];
    });
    for (const { messageIDs } of rpc.control?.ihave ?? []) for (const id of messageIDs ?? []) heard(from, id);
  });
}

function before(gossip: GossipSub, look: (from: PeerId, rpc: Rpc) => void): void {
  const inside = insideOf(gossip);
  const handle = inside.handleReceivedRpc.bind(gossip);
  inside.handleReceivedRpc = async (from, rpc) => {
    look(from, rpc);
    await handle(from, rpc);
  };
}

/** All lists together. */
function shorten(lists: Listed[] | undefined): void {
  let room = MAX_GIVEN;
  for (const list of lists ?? []) {
    const ids = (list.messageIDs ?? []).slice(0, room);
    room -= ids.length;
    list.messageIDs = ids;
  }
}
