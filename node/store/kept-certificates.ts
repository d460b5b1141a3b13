/**
 * Decides which certificates a node keeps (ledger rule 31): those of the last hour; of older cuts every 96th, for as
 * long as stake can be slashed; and for ever that of each epoch's last cut. A certificate proves every earlier cut
 * through the chain of cuts. A pruned node keeps none of the 96th, an archive keeps all.
 */
import { PRUNED_KEEPS, type StorageMode } from './storage-mode.ts';

export const CERTIFICATES_KEPT = PRUNED_KEEPS;
export const CERTIFICATE_STEP = 96;
const EPOCHS_OF_STEPS = 10;

/** Whether a cut ends a step: its certificate is kept longer, and snapshots are made of its state. */
export const endsStep = (height: number): boolean => (height + 1) % CERTIFICATE_STEP === 0;

/** The cuts whose certificates are not needed any more once the cut of this height has its own. */
export function certificatesToDrop(height: number, intervalCuts: number, mode: StorageMode = 'full'): number[] {
  if (mode === 'archive') return [];
  const endsEpoch = (cut: number): boolean => (cut + 1) % intervalCuts === 0;
  const recent = height - CERTIFICATES_KEPT;
  // Also for a pruned node: it may have been a full one before.
  const stepped = height - Math.max(CERTIFICATES_KEPT, EPOCHS_OF_STEPS * intervalCuts);
  const drop = new Set<number>();
  if (recent >= 0 && !endsEpoch(recent) && (mode === 'pruned' || !endsStep(recent))) drop.add(recent);
  if (stepped >= 0 && !endsEpoch(stepped)) drop.add(stepped);
  return [...drop];
}
