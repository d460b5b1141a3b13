/** The node that the explorer reads: the pool's own one through the pool, or the one that was named where the explorer is served alone. */
import { poolNode } from '../data/node.ts';

let named: string | undefined;

export const explorerNode = (): string => named ?? poolNode();

/** There is no pool around it, so nothing links to a pool's pages. */
export const isAlone = (): boolean => named !== undefined;

/** Empty reads nothing. */
export function readFrom(node: string): void {
  named = node;
}

/** Normalises an address such as http://127.0.0.1:28701; undefined if it is not valid. */
export function nodeAddress(typed: string): string | undefined {
  const text = typed.trim();
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    return undefined;
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}
