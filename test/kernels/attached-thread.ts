/** A thread of test/kernels/verifier.long.test.ts: attaches to a verifier and hashes what it gets. */
import { parentPort } from 'node:worker_threads';
import type { KernelError } from '../../kernels/kernel-error.ts';
import { attachVerifier, type Verifier, type VerifierTicket } from '../../kernels/verifier.ts';

export type ToThread =
  | { readonly ticket: VerifierTicket }
  | { readonly hash: { epoch: number; headers: Uint8Array<ArrayBuffer>[] } }
  | { readonly prepare: number };
export type FromThread = { readonly hashes?: Uint8Array<ArrayBuffer>[]; readonly code?: string };

let verifier: Verifier | undefined;

parentPort?.on('message', async (message: ToThread) => {
  if ('ticket' in message) {
    verifier = attachVerifier(message.ticket);
    return;
  }
  try {
    if ('prepare' in message) {
      await verifier?.prepare(message.prepare);
      parentPort?.postMessage({});
    } else {
      const hashes = await verifier?.hashMany(message.hash.epoch, message.hash.headers);
      parentPort?.postMessage({ hashes });
    }
  } catch (error) {
    parentPort?.postMessage({ code: (error as KernelError).code });
  }
});
