/**
 * Reads ahead: a source is read while its consumer is busy, and the consumer gets everything read meanwhile as one
 * batch. Bounded: a source that is faster than its consumer waits. A consumer that stops early must end the source by
 * its signal.
 */
export async function* inBatches<T>(source: AsyncIterable<T>, max: number): AsyncGenerator<readonly T[]> {
  let waiting: T[] = [];
  let end: { readonly error?: unknown } | undefined;
  let isLeft = false;
  let arrived = Promise.withResolvers<void>();
  let taken = Promise.withResolvers<void>();
  const read = async () => {
    for await (const item of source) {
      waiting.push(item);
      arrived.resolve();
      while (waiting.length >= max && !isLeft) await taken.promise;
      if (isLeft) return;
    }
  };
  const finish = (how: { error?: unknown }) => {
    end = how;
    arrived.resolve();
  };
  read().then(
    () => finish({}),
    (error: unknown) => finish({ error }),
  );
  try {
    for (;;) {
      await arrived.promise;
      // One turn of the event loop, so that more of the same batch arrives.
      if (end === undefined) await new Promise<void>((resolve) => setImmediate(resolve));
      const batch = waiting;
      waiting = [];
      if (end === undefined) arrived = Promise.withResolvers();
      taken.resolve();
      taken = Promise.withResolvers();
      if (batch.length > 0) yield batch;
      else if (end !== undefined) break;
    }
  } finally {
    isLeft = true;
    taken.resolve();
  }
  if ('error' in end) throw end.error;
}
