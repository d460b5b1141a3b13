/** Asks for the same thing while it is being made get the same answer: what strangers can ask for in thousands is made once at a time. */
export function sharedInFlight<T>(make: () => Promise<T>): () => Promise<T> {
  let making: Promise<T> | undefined;
  return () => {
    making ??= make().finally(() => {
      making = undefined;
    });
    return making;
  };
}
