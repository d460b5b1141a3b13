/**
 * Sends a request that several peers can answer to one of them and, as long as nobody answers, to others as well, each
 * time to more of them. The first answer that counts is taken. So slow peers delay only a little, also a crowd of them,
 * and are asked after the faster ones; and who answers quickly with nothing does not take the place of a slow peer that
 * has what was asked for.
 */
import type { PeerName } from '../thread/host-types.ts';

export const HASTE_MILLIS = 1_500;
/** Peers that are asked beside the others at one time: an answer may be long. */
export const MAX_AT_ONCE = 4;

/**
 * What an answer brings. Undefined, or an error: it does not count, and others are waited for. They are asked too while
 * it is read, because that may take questions of its own.
 */
export type ReadAnswer<T> = (peer: PeerName, answer: Uint8Array) => Promise<T | undefined> | T | undefined;

export type HurriedDependencies<T> = {
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  /** Another peer to ask; undefined if there is none. `inTurn`: whoever waits longest, whatever else it did. */
  another(except: ReadonlySet<PeerName>, inTurn: boolean): PeerName | undefined;
  /** It does not answer soon. */
  late(peer: PeerName): void;
  read: ReadAnswer<T>;
  /** This peer did not answer, or its answer is an error. */
  failed(peer: PeerName, error: unknown): void;
};

/** Undefined when no answer counted. */
export function askHurried<T>(
  first: PeerName,
  question: Uint8Array,
  { ask, another, late, read, failed }: HurriedDependencies<T>,
): Promise<T | undefined> {
  const asked = new Set<PeerName>();
  const waitedFor = new Set<PeerName>();
  /** Of those: they have answered, or are known to be late. */
  const judged = new Set<PeerName>();
  let width = 1;
  return new Promise((resolve) => {
    let isOver = false;
    const hurry = setInterval(() => {
      for (const peer of waitedFor) if (!judged.has(peer)) late(peer);
      for (const peer of waitedFor) judged.add(peer);
      for (let i = 0; i < width; i++) {
        // One that has answered may have more by now. A good name alone does not keep the others from their turn.
        const next = another(waitedFor, i % 2 === 1);
        if (next === undefined) return;
        put(next);
      }
      width = Math.min(MAX_AT_ONCE, 2 * width);
    }, HASTE_MILLIS);
    const end = (found?: T) => {
      isOver = true;
      clearInterval(hurry);
      resolve(found);
    };
    const get = async (peer: PeerName): Promise<void> => {
      const answer = await ask(peer, question);
      if (isOver) return;
      judged.add(peer);
      const found = await read(peer, answer);
      if (found !== undefined && !isOver) end(found);
    };
    const put = (peer: PeerName) => {
      asked.add(peer);
      waitedFor.add(peer);
      judged.delete(peer);
      get(peer)
        .catch((error: unknown) => failed(peer, error))
        .finally(() => {
          waitedFor.delete(peer);
          if (isOver || waitedFor.size > 0) return;
          const next = another(asked, false);
          if (next === undefined) end();
          else put(next);
        });
    };
    put(first);
  });
}
