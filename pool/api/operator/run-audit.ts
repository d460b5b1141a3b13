/** Runs the thread of an audit (audit-thread.ts). It reads over connections of its own, so neither shares nor answers wait for it. */
import { Worker } from 'node:worker_threads';
import type { AuditReport } from '../../audit/audit.ts';
import type { PartName, Progress } from '../../audit/slices.ts';
import type { WalletLink } from '../../start/wallet-link.ts';

export type AuditPlace = {
  readonly databaseUrl: string;
  /** Without one the ledger is not looked at. */
  readonly node?: { readonly url: string; readonly identity: readonly string[] };
  readonly wallet?: WalletLink;
};

export type AuditMessage =
  | { readonly kind: 'progress'; readonly part: PartName; readonly done: number; readonly of: number | undefined }
  | { readonly kind: 'report'; readonly report: AuditReport };

export type RunAudit = (onProgress: Progress, signal: AbortSignal) => Promise<AuditReport>;

export const auditInThread =
  (place: AuditPlace): RunAudit =>
  (onProgress, signal) =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL('./audit-thread.ts', import.meta.url), { name: 'audit', workerData: place });
      let report: AuditReport | undefined;
      const stop = () => void worker.terminate();
      signal.addEventListener('abort', stop, { once: true });
      worker.on('message', (message: AuditMessage) => {
        if (message.kind === 'report') report = message.report;
        else onProgress(message.part, message.done, message.of);
      });
      worker.once('error', reject);
      worker.once('exit', (code) => {
        signal.removeEventListener('abort', stop);
        // Its connections are closed by now.
        if (report === undefined) reject(new Error(`the audit's thread ended with ${code}`));
        else resolve(report);
      });
    });
