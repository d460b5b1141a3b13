/**
 * States after cuts that end a step of 96: a snapshot contains its own and the previous one, whose work rate gives the
 * targets of the 96 anchors in between. The last two are kept, a few kB each.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { BatchOp } from './batch.ts';
import { CERTIFICATE_STEP, endsStep } from './kept-certificates.ts';
import { KEYS } from './keys.ts';

export function steppedStateOperations(height: number, stateBytes: Bytes): BatchOp[] {
  if (!endsStep(height)) return [];
  const operations: BatchOp[] = [{ type: 'put', key: KEYS.steppedState(height), value: stateBytes }];
  const old = height - 2 * CERTIFICATE_STEP;
  if (old >= 0) operations.push({ type: 'del', key: KEYS.steppedState(old) });
  return operations;
}
