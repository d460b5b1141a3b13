/** Waiting operations that a cut may have made impossible: they would be carried by every block and executed by none (ledger rule 55). */
import type { Bytes } from '../../protocol/bytes.ts';
import type { CutEffects } from '../ledger/effects.ts';
import { nameOf } from '../ledger/registration.ts';
import type { Position } from '../ledger/staking/position.ts';
import { isActive, type Validator } from '../ledger/staking/validator.ts';
import type { Entry, Mempool } from './mempool.ts';

export function operationsToRecheck(
  { staking, header }: CutEffects,
  mempool: Mempool,
  validator: (id: Bytes) => Validator | undefined,
  intervalCuts: number,
): Entry[] {
  const touched = new Map(staking.validators.map(({ id }) => [nameOf(id), id]));
  for (const { before, after } of staking.positions) {
    const { validator: id } = (after ?? before) as Position;
    touched.set(nameOf(id), id);
  }
  const entries = [...touched.values()].flatMap((id) => {
    const record = validator(id);
    const isBondable = record !== undefined && isActive(record);
    // A bond can only fail with its validator: a popular one has thousands waiting.
    return [...mempool.about(id)].filter(({ read }) => read.operation?.name !== 'bond' || !isBondable);
  });
  // Heartbeats of an epoch are useless in the next, and one that stayed would block the next one: also if a waiting
  // block carries it.
  if ((header.height + 1) % intervalCuts === 0)
    for (const entry of mempool.list()) if (entry.read.operation?.name === 'heartbeat') entries.push(entry);
  return entries;
}
