/**
 * A limit that the library lacks: frames, of the multiplexer and of gossip. One of the multiplexer costs about 15 µs,
 * also if it has 12 bytes and opens a stream beyond all limits, so that a few hundred kilobytes a second would occupy
 * this thread. Streams, also those of QUIC, and words about what is spoken in them count as frames.
 */
import type { Connection, Stream, StreamMuxer } from '@libp2p/interface';
import { Buckets } from '../../../runtime/clients/buckets.ts';
import type { BucketRate } from '../../../runtime/clients/token-bucket.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { PeerName } from './host-types.ts';

/** Of one address: several times what a peer needs that asks and announces as much as it may. */
const FRAMES: BucketRate = { perSecond: 2_000, burst: 10_000 };
/** Of one peer: as many as three at one address have each. */
const PART: BucketRate = { perSecond: FRAMES.perSecond / 3, burst: FRAMES.burst / 3 };
const MAX_HOLDERS = 1_024;
/** A stream of QUIC costs about 0.4 ms to open and end, most of it in threads of the package. */
const FRAMES_OF_A_STREAM = 8;
/** Words about the protocol of one stream: two are usual, and five where gossip of several versions is proposed. */
const MAX_WORDS = 16;
/** The answer to a word goes all the way to the socket. */
const FRAMES_OF_A_WORD = 2;

/** With the member of the library's class used here, which QUIC lacks. */
type MuxerInside = StreamMuxer & { handleFrame?(frame: unknown): void };

export class FrameLimits {
  readonly #steady: SteadyClock;
  /** Kept when a connection ends: a new one does not reset it. */
  readonly #rates = new Buckets(FRAMES, MAX_HOLDERS);
  readonly #parts = new Buckets(PART, MAX_HOLDERS);

  constructor(steady: SteadyClock) {
    this.#steady = steady;
  }

  /** `holder`: the peer, or the address that it shares with others. The connection ends with the first frame too many. */
  limit(connection: Connection, holder: string, flood: () => void): void {
    const { muxer } = connection as unknown as { readonly muxer?: MuxerInside };
    if (muxer === undefined) return;
    const peer = `${connection.remotePeer}`;
    const count = (frames = 1) => {
      if (this.take(peer, holder, frames)) return;
      flood();
      throw new Error('too many frames');
    };
    const handle = muxer.handleFrame?.bind(muxer);
    if (handle !== undefined)
      muxer.handleFrame = (frame) => {
        count();
        handle(frame);
      };
    const countWord = (words: number) => count(words > MAX_WORDS ? Number.POSITIVE_INFINITY : FRAMES_OF_A_WORD);
    for (const stream of muxer.streams) countWords(stream, countWord);
    muxer.addEventListener('stream', ({ detail }) => {
      countWords(detail, countWord);
      // Yamux has frames that open one.
      if (handle === undefined && !this.take(peer, holder, FRAMES_OF_A_STREAM)) flood();
    });
  }

  /** Whether there may be so many more. Where the address has had too many, only those are to blame that had more than their part. */
  take(peer: PeerName, holder: string, frames = 1): boolean {
    const now = this.#steady();
    const [isPart, isRoom] = [this.#parts.take(peer, now, frames), this.#rates.take(holder, now, frames)];
    return isPart || isRoom;
  }
}

/** Each word of the other side about the protocol has an answer. */
function countWords(stream: Stream, count: (words: number) => void): void {
  const send = stream.send.bind(stream);
  let words = 0;
  stream.send = (data) => {
    if (stream.protocol === '') count(++words);
    return send(data);
  };
}
