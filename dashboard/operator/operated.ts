/** A list of the operator's, read on an interval and again after everything that is done on the page. The page itself says what is wrong. */
import { useEffect, useState } from 'preact/hooks';
import { operate } from '../data/client.ts';
import { keepFresh } from '../data/pause.ts';

export const EVERY_MILLIS = 5_000;

/** `turn` rises with everything that is done. */
export function useOperated<T>(token: string, path: string, turn: number, everyMillis = EVERY_MILLIS): T | undefined {
  const [list, setList] = useState<T>();
  useEffect(() => {
    let over = false;
    const load = () =>
      operate<T>(token, path).then(
        (answer) => {
          if (!over) setList(answer);
        },
        () => undefined,
      );
    void load();
    const end = keepFresh(load, everyMillis);
    return () => {
      over = true;
      end();
    };
  }, [token, path, turn, everyMillis]);
  return list;
}
