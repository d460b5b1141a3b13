/**
 * Incoming QUIC connections. The package shows one only after its handshake, and taking one at a time would let a
 * single packet of a stranger who never answers hold up all others until it times out: many are awaited at once.
 * Handshakes a second are bounded too, because their addresses cannot be judged before.
 */
import { type BucketRate, fullBucket, take } from '../../runtime/clients/token-bucket.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import type { NativeConnection, NativeServer } from './quic-package.ts';

/** Half-open ones at once: what must be sent every ten seconds, from any address, to keep QUIC to oneself. */
const HALF_OPEN = 256;
const HANDSHAKES: BucketRate = { perSecond: 50, burst: 256 };
const PAUSE_MILLIS = 1_000 / HANDSHAKES.perSecond;

export type Accepting = {
  readonly steady: SteadyClock;
  readonly isClosed: () => boolean;
  readonly accepted: (connection: NativeConnection) => void;
};

/** Resolves when the server is closed. */
export async function acceptConnections(server: NativeServer, accepting: Accepting): Promise<void> {
  const { steady, isClosed, accepted } = accepting;
  let bucket = fullBucket(HANDSHAKES, steady());
  const turn = async (): Promise<void> => {
    for (;;) {
      const next = take(bucket, HANDSHAKES, steady());
      if (next !== undefined) {
        bucket = next;
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MILLIS).unref());
    }
  };
  const one = async (): Promise<void> => {
    while (!isClosed()) {
      await turn();
      // A handshake that failed or timed out is of no interest.
      const connection = await server.inboundConnection().catch(() => undefined);
      if (connection === undefined) continue;
      if (isClosed()) connection.abort();
      else accepted(connection);
    }
  };
  await Promise.all(Array.from({ length: HALF_OPEN }, one));
}
