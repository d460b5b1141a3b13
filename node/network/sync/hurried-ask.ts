/**
 * Sends a request that several peers can answer to one of them and, if it does not answer soon, to another as well. The
 * first answer counts. So a slow peer delays only a little, and is asked after the faster ones.
 */
import type { PeerName } from '../thread/host-types.ts';

export const HASTE_MILLIS = 1_500;

export type HurriedDependencies = {
  ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
  /** Another peer to ask; undefined if there is none. */
  another(asked: ReadonlySet<PeerName>): PeerName | undefined;
  answered(peer: PeerName, isLate: boolean): void;
  /** This peer did not answer. */
  failed(peer: PeerName, error: unknown): void;
};

export type Answered = { readonly peer: PeerName; readonly answer: Uint8Array };

/** Rejects when no peer answered; `failed` was called with the reasons. */
export function askHurried(
  first: PeerName,
  question: Uint8Array,
  { ask, another, answered, failed }: HurriedDependencies,
): Promise<Answered> {
  const asked = new Set<PeerName>();
  const waitedFor = new Set<PeerName>();
  const late = new Set<PeerName>();
  return new Promise((resolve, reject) => {
    let isOver = false;
    const hurry = setInterval(() => {
      for (const peer of waitedFor) if (!late.has(peer)) answered(peer, true);
      for (const peer of waitedFor) late.add(peer);
      const next = another(asked);
      if (next !== undefined) put(next);
    }, HASTE_MILLIS);
    const end = () => {
      isOver = true;
      clearInterval(hurry);
    };
    const put = (peer: PeerName) => {
      asked.add(peer);
      waitedFor.add(peer);
      ask(peer, question).then(
        (answer) => {
          waitedFor.delete(peer);
          if (isOver) return;
          end();
          answered(peer, false);
          resolve({ peer, answer });
        },
        (error: unknown) => {
          waitedFor.delete(peer);
          failed(peer, error);
          if (isOver || waitedFor.size > 0) return;
          end();
          reject(new Error('nobody answered'));
        },
      );
    };
    put(first);
  });
}
