/**
 * A limit that the library lacks: frames, of the multiplexer and of gossip. One of the multiplexer costs about 15 µs,
 * also if it has 12 bytes and opens a stream beyond all limits, so that a few hundred kilobytes a second would occupy
 * this thread.
 */
import type { Connection } from '@libp2p/interface';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { type Bucket, type BucketRate, fullBucket, take } from '../../../runtime/clients/token-bucket.ts';

/** Several times what a peer needs that asks and announces as much as it may. */
const FRAMES: BucketRate = { perSecond: 2_000, burst: 10_000 };
const MAX_HOLDERS = 1_024;

/** The member of the library's class used here. QUIC has streams of its own and no frames; their number is bounded by the protocol. */
type MuxerInside = { handleFrame?(frame: unknown): void };

export class FrameLimits {
  readonly #steady: () => number;
  /** Kept when a connection ends: a new one does not reset it. */
  readonly #rates = new BoundedMap<string, Bucket>(MAX_HOLDERS);

  constructor(steady: () => number) {
    this.#steady = steady;
  }

  /** `holder`: the peer, or the address that it shares with others. The connection ends with the first frame too many. */
  limit(connection: Connection, holder: string, flood: () => void): void {
    const { muxer } = connection as unknown as { readonly muxer?: MuxerInside };
    const handle = muxer?.handleFrame?.bind(muxer);
    if (muxer === undefined || handle === undefined) return;
    muxer.handleFrame = (frame) => {
      if (!this.take(holder)) {
        flood();
        throw new Error('too many frames');
      }
      handle(frame);
    };
  }

  /** Whether there may be so many more. */
  take(holder: string, frames = 1): boolean {
    const now = this.#steady();
    const bucket = take(this.#rates.use(holder) ?? fullBucket(FRAMES, now), FRAMES, now, frames);
    if (bucket !== undefined) this.#rates.set(holder, bucket);
    return bucket !== undefined;
  }
}
