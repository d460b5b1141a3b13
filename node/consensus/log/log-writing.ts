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
export const writeUntilDone = (record: LogRecord, { node, signer, log }: LogWriting, ending: AbortSignal) =>
  untilDone(
    async () => {
      if (record.proposals.length > 0) await node.ledger.sync();
      await signer?.log.append(record);
    },
    (error, isFirst) => {
      if (isFirst) log.error('the consensus log cannot be written: nothing is signed until it can', { error });
    },
    WRITE_AGAIN_MILLIS,
    ending,
  );

/** What this node's disk does not do now it may do later. Undefined at the end of the node. `failed` may throw: then it is not tried again. */
export async function untilDone<T>(
  attempt: () => T | Promise<T>,
  failed: (error: unknown, isFirst: boolean) => void,
  againMillis: number,
  ending: AbortSignal,
): Promise<T | undefined> {
  for (let isFirst = true; !ending.aborted; isFirst = false)
    try {
      return await attempt();
    } catch (error) {
      failed(error, isFirst);
      await sleep(againMillis, undefined, { signal: ending }).catch(() => undefined);
    }
  return undefined;
}
