/** Shares under any name, by strangers and by miners. */

import { workOfTarget } from '../../protocol/ledger/target.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { mine, V1Client } from '../bridge/stratum-client.ts';

export type Sent = {
  shares: number;
  hashes: bigint;
  /** By account: work that was accepted, and work whose answer never came. */
  readonly work: Map<string, bigint>;
  readonly unanswered: Map<string, bigint>;
};

const added = (sums: Map<string, bigint>, who: string, work: bigint): void =>
  void sums.set(who, (sums.get(who) ?? 0n) + work);

type Name = { readonly who: string; readonly worker: string; readonly work: number; readonly shares: number };

/** Logs in under a name and does so many shares; the work that was accepted counts. */
export async function mineAs(port: number, { who, worker, work, shares }: Name, sent: Sent): Promise<void> {
  const client = await V1Client.open(port);
  const closed = client.closed.then(() => {
    throw new Error('the pool closed the connection');
  });
  closed.catch(() => undefined);
  try {
    await Promise.race([client.login(`${who}.${worker}`, `d=${work}`), closed]);
    for (let done = 0, from = 0n; done < shares; ) {
      const job = client.jobs.at(-1) as Job;
      const { nonce, next } = mine(job, client.prefix, from);
      from = next;
      const accepted = workOfTarget(job.shareTarget);
      added(sent.unanswered, who, accepted);
      const code = await Promise.race([client.submitCode(job.jobId, nonce), closed]);
      added(sent.unanswered, who, -accepted);
      if (code !== 0) continue;
      added(sent.work, who, accepted);
      sent.hashes += accepted;
      sent.shares++;
      done++;
    }
  } finally {
    client.close();
  }
}
