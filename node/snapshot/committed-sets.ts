/** The five committed sets in the order of the state, and how many entries of each make a piece: what comes beside an entry counts, a public key of 2 kB or the record of a validator. */
import { KEY_LAYOUT, OUTPUT_LAYOUT } from '../ledger/output-set.ts';
import { POSITION_LAYOUT } from '../ledger/staking/position.ts';
import { USED_KEY_LAYOUT, VALIDATOR_LAYOUT } from '../ledger/staking/validator.ts';
import type { EntryLayout } from '../ledger/trie.ts';

export const SET_NAMES = ['outputs', 'keys', 'validators', 'positions', 'usedKeys'] as const;
export type SetName = (typeof SET_NAMES)[number];

export const SETS: Readonly<Record<SetName, { readonly layout: EntryLayout; readonly pieceEntries: number }>> = {
  outputs: { layout: OUTPUT_LAYOUT, pieceEntries: 8_192 },
  keys: { layout: KEY_LAYOUT, pieceEntries: 1_024 },
  validators: { layout: VALIDATOR_LAYOUT, pieceEntries: 64 },
  positions: { layout: POSITION_LAYOUT, pieceEntries: 8_192 },
  usedKeys: { layout: USED_KEY_LAYOUT, pieceEntries: 8_192 },
};
