/** Writing the consensus log (rule 11) to a disk that may be full. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../../runtime/log/log.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import type { LogRecord } from '../engine/effects.ts';
import type { ConsensusLog } from './log-file.ts';

/** After a write that failed; nothing is signed or sent meanwhile. */
const WRITE_AGAIN_MILLIS = 1_000;

export type LogWriting = {
  readonly node: { readonly ledger: Pick<CutLedger, 'sync'> };
  readonly signer?: { readonly log: Pick<ConsensusLog, 'append'> };
  readonly log: Pick<Logger, 'error'>;
};

/**
 * A disk that is full may have room later. Until then this member is silent: nothing may be sent that is not written,
 * and a lock is useless without its blocks.
 */
export async function writeUntilDone(record: LogRecord, { node, signer, log }: LogWriting, ending: AbortSignal) {
  for (let told = false; !ending.aborted; told = true)
    try {
      if (record.proposals.length > 0) await node.ledger.sync();
      await signer?.log.append(record);
      return;
    } catch (error) {
      if (!told) log.error('the consensus log cannot be written: nothing is signed until it can', { error });
      await sleep(WRITE_AGAIN_MILLIS, undefined, { signal: ending }).catch(() => undefined);
    }
}
