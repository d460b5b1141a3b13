/** A document of a node's public API, read once and again on an interval; the last good answer stays. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { nodeCall } from './node.ts';
import { keepFresh } from './pause.ts';

export type NodeLoaded<T> = { readonly data: T | undefined; readonly error: Error | undefined };

/** A path of a request, and its body if it is a POST. */
export type NodeRequest = { readonly path: string; readonly body?: object };

export const EVERY_MILLIS = 15_000;
/** An address that is being typed is not asked for letter by letter. */
const SETTLE_MILLIS = 300;

/** `node` empty or `request` undefined reads nothing. */
export function useNodeDocument<T>(
  node: string,
  request: NodeRequest | undefined,
  { everyMillis = EVERY_MILLIS, settleMillis = SETTLE_MILLIS } = {},
): NodeLoaded<T> {
  const [data, setData] = useState<T>();
  const [error, setError] = useState<Error>();
  const asked = request === undefined || node === '' ? undefined : JSON.stringify([node, request.path, request.body]);
  const latest = useRef(request);
  latest.current = request;
  useEffect(() => {
    setData(undefined);
    setError(undefined);
    if (asked === undefined) return;
    let over = false;
    const load = async (): Promise<void> => {
      try {
        const { path, body } = latest.current as NodeRequest;
        const answer = await nodeCall<T>(node, path, body);
        if (over) return;
        setData(answer);
        setError(undefined);
      } catch (problem) {
        if (!over) setError(problem as Error);
      }
    };
    const first = setTimeout(load, settleMillis);
    const end = keepFresh(() => void load(), everyMillis);
    return () => {
      over = true;
      clearTimeout(first);
      end();
    };
  }, [asked]);
  return { data, error };
}
