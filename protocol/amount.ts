/**
 * Amounts (ledger rule 4): integer atoms, 100,000,000 to a coin. Text in coins has up to 8 decimals on input and
 * exactly 8 on output; atoms are decimal text without sign or leading zeros. No float touches an amount.
 */
import { ProtocolError } from './errors.ts';

export const ATOMS_PER_COIN = 100_000_000n;
export const MAX_SUPPLY = 200_000_000n * ATOMS_PER_COIN;

export function parseCoins(text: string): bigint {
  const match = /^(0|[1-9]\d{0,8})(?:\.(\d{1,8}))?$/.exec(text);
  if (match === null)
    throw new ProtocolError('amount_text', 'an amount is written in coins with at most 8 decimals, such as 1.25');
  const atoms = BigInt(match[1] as string) * ATOMS_PER_COIN + BigInt((match[2] ?? '').padEnd(8, '0'));
  return checkAmount(atoms);
}

export function formatCoins(atoms: bigint): string {
  const sign = atoms < 0n ? '-' : '';
  const size = atoms < 0n ? -atoms : atoms;
  return `${sign}${size / ATOMS_PER_COIN}.${(size % ATOMS_PER_COIN).toString().padStart(8, '0')}`;
}

export function parseAtoms(text: string): bigint {
  if (!/^(0|[1-9]\d{0,17})$/.test(text))
    throw new ProtocolError('amount_text', 'an amount in atoms is a decimal integer without sign or leading zeros');
  return checkAmount(BigInt(text));
}

/** No single amount can exceed everything that will ever exist. */
export function checkAmount(atoms: bigint): bigint {
  if (atoms < 0n || atoms > MAX_SUPPLY) throw new ProtocolError('amount_range', `${atoms} atoms is out of range`);
  return atoms;
}
