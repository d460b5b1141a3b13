/** Interprets the text of the search field as a place in the explorer. */
import type { ExplorerKind } from '../router.ts';

const HEIGHT = /^\d{1,10}$/;
const IDENTIFIER = /^[0-9a-f]{96}$/;
/** bech32m with the prefix of a network. */
const ADDRESS = /^[a-z]{1,16}1[02-9ac-hj-np-z]{20,}$/;

export type Found = { readonly kind: ExplorerKind; readonly id: string };

/** Undefined if it cannot be any identifier. An identifier may be of several kinds: `find` tries each. */
export function whatIs(typed: string): Found | undefined {
  const text = typed.trim();
  const height = text.replace(/^#/, '').replaceAll(/[,.'’_\s]/g, '');
  if (HEIGHT.test(height)) return { kind: 'cut', id: String(Number(height)) };
  const lower = text.toLowerCase();
  if (IDENTIFIER.test(lower)) return { kind: 'find', id: lower };
  return ADDRESS.test(lower) ? { kind: 'address', id: lower } : undefined;
}

/** In this order an identifier is asked for: blocks and transactions are what people have. */
export const KINDS_OF_IDENTIFIER = [
  ['block', (id: string) => `blocks/${id}`],
  ['transaction', (id: string) => `transactions/${id}/status`],
  ['validator', (id: string) => `staking/validators/${id}`],
] as const;
