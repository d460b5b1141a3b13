/**
 * Sends a request that several peers can answer to one of them and, if it does not answer soon, to another as well. The
 * first answer that counts is taken. So a slow peer delays only a little, and is asked after the faster ones; and who
 * answers quickly with nothing does not take the place of a slow peer that has what was asked for.
 */
import type { PeerName } from '../thread/host-types.ts';

export const HASTE_MILLIS = 1_500;

/**
 * What an answer brings. Undefined, or an error: it does not count, and others are waited for. They are asked too while
 * it is read, because that may take questions of its own.
 */
export type ReadAnswer<T> = (peer: PeerName, answer: Uint8Array) => Promise<T | undefined> | T | undefined;

export type HurriedDependencies<T> = {
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  /** Another peer to ask; undefined if there is none. */
  another(except: ReadonlySet<PeerName>): PeerName | undefined;
  answered(peer: PeerName, isLate: boolean): void;
  read: ReadAnswer<T>;
  /** This peer did not answer, or its answer is an error. */
  failed(peer: PeerName, error: unknown): void;
};

/** Undefined when no answer counted. */
export function askHurried<T>(
  first: PeerName,
  question: Uint8Array,
  { ask, another, answered, read, failed }: HurriedDependencies<T>,
): Promise<T | undefined> {
  const asked = new Set<PeerName>();
  const waitedFor = new Set<PeerName>();
  const late = new Set<PeerName>();
  return new Promise((resolve) => {
    let isOver = false;
    const hurry = setInterval(() => {
      for (const peer of waitedFor) if (!late.has(peer)) answered(peer, true);
      for (const peer of waitedFor) late.add(peer);
      // One that has answered may have more by now.
      const next = another(waitedFor);
      if (next !== undefined) put(next);
    }, HASTE_MILLIS);
    const end = (found?: T) => {
      isOver = true;
      clearInterval(hurry);
      resolve(found);
    };
    const get = async (peer: PeerName): Promise<void> => {
      const answer = await ask(peer, question);
      if (isOver) return;
      answered(peer, false);
      late.add(peer);
      const found = await read(peer, answer);
      if (found !== undefined && !isOver) end(found);
    };
    const put = (peer: PeerName) => {
      asked.add(peer);
      waitedFor.add(peer);
      late.delete(peer);
      get(peer)
        .catch((error: unknown) => failed(peer, error))
        .finally(() => {
          waitedFor.delete(peer);
          if (isOver || waitedFor.size > 0) return;
          const next = another(asked);
          if (next === undefined) end();
          else put(next);
        });
    };
    put(first);
  });
}
