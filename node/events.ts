/**
 * The stream of finalized cuts (specification: Events, /v1/events), for the public API and the mining listener alike.
 * Frames are made from the store, once each, so a replay needs no memory and survives a restart, and the only state of
 * a reader is the last height sent. A slow reader is sent cuts as fast as it reads; one that falls more than an hour
 * behind gets `resync`.
 */

import { formatAddress } from '../protocol/address.ts';
import type { CutReference } from '../protocol/api/documents.ts';
import {
  CLOSE_CODES,
  type CutFinalized,
  type EventsFrame,
  REPLAY_MILLIS,
  type ResyncReason,
} from '../protocol/api/frames.ts';
import type { NetworkName } from '../protocol/network.ts';
import { BoundedMap } from '../runtime/bounded-map.ts';
import { nativeHex } from '../runtime/native/native-hex.ts';
import type { CutRecord, FullNode } from './full-node.ts';

export const cutReference = (cut: Pick<CutRecord, 'cutId' | 'header'>): CutReference => ({
  height: cut.header.height,
  cut_id: nativeHex(cut.cutId),
  state_root: nativeHex(cut.header.stateRoot),
  validator_set_id: nativeHex(cut.header.validatorSetId),
});

/** A reward of not one atom has no output, and so nothing to announce. */
export const workRewards = (rewards: CutRecord['rewards']): CutFinalized['rewards'] =>
  rewards.flatMap(({ blockId, amount, outpoint }) =>
    outpoint === undefined
      ? []
      : [
          {
            block_id: nativeHex(blockId),
            transaction_id: nativeHex(outpoint.transactionId),
            output_index: outpoint.outputIndex,
            amount: amount.toString(),
          },
        ],
  );

export const stakeRewards = (payouts: CutRecord['stakePayouts']): string =>
  payouts.reduce((sum, payout) => sum + payout.amount, 0n).toString();

export const cutFinalized = (cut: CutRecord, network: NetworkName): CutFinalized => ({
  api_version: 1,
  cut: cutReference(cut),
  registered_work: cut.blockIds.length,
  executed_work: cut.executedBlocks,
  rewards: workRewards(cut.rewards),
  stake_rewards: stakeRewards(cut.stakePayouts),
  stake_payouts: cut.stakePayouts.map((payout) => ({
    position_id: nativeHex(payout.positionId),
    transaction_id: nativeHex(payout.outpoint.transactionId),
    output_index: payout.outpoint.outputIndex,
    reward_address: formatAddress(payout.rewardAddress, network),
    amount: payout.amount.toString(),
  })),
});

const encode = (frame: EventsFrame): Buffer => Buffer.from(JSON.stringify(frame));

export type CutFeedOptions = { readonly replayMillis?: number; readonly cachedFrames?: number };
export type CutFeedDependencies = { readonly node: Pick<FullNode, 'chain' | 'on'> };

/** Frames of cuts by height, and news of each new one. */
export class CutFeed {
  readonly #node: CutFeedDependencies['node'];
  readonly #replayMillis: number;
  readonly #frames: BoundedMap<number, Buffer>;
  readonly #readers = new Set<CutReader>();
  readonly #stop: () => void;
  #broadcasting = false;

  constructor(options: CutFeedOptions, dependencies: CutFeedDependencies) {
    this.#node = dependencies.node;
    this.#replayMillis = options.replayMillis ?? REPLAY_MILLIS;
    this.#frames = new BoundedMap(options.cachedFrames ?? 512);
    this.#stop = this.#node.on('cut', () => this.#broadcast());
  }

  get readers(): number {
    return this.#readers.size;
  }

  height(): number {
    return this.#node.chain.head().height;
  }

  checkpoint(): Buffer {
    const head = this.#node.chain.head();
    const cut: CutReference = {
      height: head.height,
      cut_id: nativeHex(head.cutId),
      state_root: nativeHex(head.stateRoot),
      validator_set_id: nativeHex(head.validatorSetId),
    };
    return encode({ type: 'checkpoint', data: { api_version: 1, finalized_height: head.height, cut } });
  }

  /** Whether everything above this height can still be sent. The hour is one of the chain's own time, whatever a clock says. */
  reaches(afterHeight: number): boolean {
    const head = this.#node.chain.head();
    // Above the head nothing is promised: a reader that was told a false height elsewhere would wait for ever.
    if (afterHeight >= head.height) return afterHeight === head.height;
    if (afterHeight + 1 < this.#node.chain.historyFrom()) return false;
    const next = this.#node.chain.cut(afterHeight + 1);
    return next !== undefined && next.header.timestampMillis >= head.timestampMillis - this.#replayMillis;
  }

  frame(height: number): Buffer {
    const known = this.#frames.get(height);
    if (known !== undefined) return known;
    const cut = this.#node.chain.cut(height);
    if (cut === undefined) throw new Error(`cut ${height} is not in the store`);
    const frame = encode({ type: 'cut_finalized', data: cutFinalized(cut, this.#node.chain.network.name) });
    this.#frames.set(height, frame);
    return frame;
  }

  add(reader: CutReader): void {
    this.#readers.add(reader);
  }

  delete(reader: CutReader): void {
    this.#readers.delete(reader);
  }

  /** In slices, so that thousands of readers do not block other work. */
  #broadcast(): void {
    if (this.#broadcasting || this.#readers.size === 0) return;
    this.#broadcasting = true;
    const readers = [...this.#readers];
    const height = this.height();
    let at = 0;
    const slice = (): void => {
      for (const end = Math.min(at + 128, readers.length); at < end; at++) (readers[at] as CutReader).pump();
      if (at < readers.length) {
        setImmediate(slice);
        return;
      }
      this.#broadcasting = false;
      if (this.height() !== height) this.#broadcast();
    };
    slice();
  }

  /** The reason, if any, is sent to the readers; they can resume from the next feed. */
  close(reason?: ResyncReason): void {
    this.#stop();
    for (const reader of [...this.#readers])
      if (reason === undefined) reader.end(CLOSE_CODES.goingAway, 'the node is stopping');
      else reader.resync(reason);
  }
}

/** The part of a `ws` socket that a stream needs. */
export type StreamSocket = {
  readonly bufferedAmount: number;
  readonly readyState: number;
  send(data: Buffer, options: { binary: boolean }, sent: () => void): void;
  close(code: number, reason: string): void;
  on(event: 'close', listener: () => void): unknown;
};

/** Bytes a socket may hold unsent; a frame begun below it may exceed it by its own size. */
export const MAX_UNSENT = 64 * 1024;
const OPEN = 1;
const NEAR_CUTS = 64;

/** One reader of the feed; its only state is the last height sent. */
export class CutReader {
  readonly #feed: CutFeed;
  readonly #socket: StreamSocket;
  readonly #sent = (): void => this.pump();
  #next: number;

  /** Sends the checkpoint, then every cut above `afterHeight`, or above the head without it. */
  constructor(feed: CutFeed, socket: StreamSocket, afterHeight: number | undefined) {
    this.#feed = feed;
    this.#socket = socket;
    this.#next = (afterHeight ?? feed.height()) + 1;
    if (afterHeight !== undefined && !feed.reaches(afterHeight)) {
      this.resync('history_unavailable');
      return;
    }
    feed.add(this);
    socket.on('close', () => feed.delete(this));
    this.#send(feed.checkpoint());
    this.pump();
  }

  #send(frame: Buffer): void {
    this.#socket.send(frame, { binary: false }, this.#sent);
  }

  resync(reason: ResyncReason): void {
    this.#send(encode({ type: 'resync_required', data: { reason } }));
    this.end(CLOSE_CODES.done, reason);
  }

  pump(): void {
    if (this.#socket.readyState !== OPEN) return;
    while (this.#next <= this.#feed.height() && this.#socket.bufferedAmount < MAX_UNSENT) {
      // A reader a few cuts behind is not slow, even if a clock change put hours between two cuts.
      if (this.#feed.height() - this.#next > NEAR_CUTS && !this.#feed.reaches(this.#next - 1)) {
        this.resync('stream_lagged');
        return;
      }
      const frame = this.#feed.frame(this.#next);
      this.#next++;
      this.#send(frame);
    }
  }

  end(code: number, reason: string): void {
    this.#feed.delete(this);
    this.#socket.close(code, reason);
  }
}
