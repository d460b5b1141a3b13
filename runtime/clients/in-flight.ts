/** Concurrent requests for the same thing share one result: something that clients can request by the thousand is made once at a time. */
export function sharedInFlight<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () => {
    making ??= make().finally(() => {
      making = undefined;
    });
    return making;
  };
}
