/**
 * A listener in a thread of its own, seen from the main thread: starts it, passes the hub's calls both ways over its port,
 * and knows which member each handle names.
 */
import { Worker } from 'node:worker_threads';
import type { Verifier } from '../../kernels/verifier.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { clientFaults } from '../../runtime/client-fault.ts';
import type { Logger } from '../../runtime/log.ts';
import { RuntimeError } from '../../runtime/runtime-error.ts';
import type { DeskOptions } from '../connection/desk.ts';
import type { ListenerOptions } from '../connection/listener.ts';
import type { Fault } from '../session/ban-score.ts';
import type { SessionRecord } from '../session/session-record.ts';
import { unpackShares } from '../shares/share-batch.ts';
import type { RefusedShare, WorkerEvent } from '../shares/sink.ts';
import type {
  BoundAddress,
  Candidate,
  CertificatePem,
  Hub,
  ListenerControl,
  ListenerFigures,
  Member,
  Publication,
} from './hub.ts';
import { PortCalls } from './port-calls.ts';

export type ListenerThreadOptions = { readonly desk: DeskOptions; readonly listener: ListenerOptions };

export type ListenerThreadDependencies = {
  readonly hub: Hub;
  readonly verifier: Verifier;
  readonly log: Logger;
  /** The thread is gone without having been asked to. */
  readonly onExit: (reason: string) => void;
};

/**
 * What a listener makes lives either for one message or for a connection, so a small nursery is enough; V8's own would take
 * more memory than ten thousand connections do.
 */
const YOUNG_GENERATION_MB = 8;

export function startListenerThread(
  options: ListenerThreadOptions,
  { hub, verifier, log, onExit }: ListenerThreadDependencies,
): ListenerControl {
  const ticket = verifier.share();
  const worker = new Worker(new URL('./listener-thread.ts', import.meta.url), {
    name: `stratum-${options.desk.thread}`,
    workerData: { options, ticket },
    transferList: [...ticket.transfer] as never,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  const members = new Map<number, Member>();
  const memberOf = (handle: number): Member => {
    const member = members.get(handle);
    if (member === undefined) throw new Error(`no member has the handle ${handle}`);
    return member;
  };
  const calls = new PortCalls(
    worker,
    {
      own: (list: readonly Member[]) => {
        for (const member of list) members.set(member.handle, member);
        return hub.own(list);
      },
      rejoin: (member: Member) => void members.set(member.handle, member),
      left: (handles: readonly number[]) => {
        for (const handle of handles) members.delete(handle);
      },
      shares: (packed: Bytes) => hub.shares(unpackShares(packed, memberOf)),
      refused: (shares: readonly RefusedShare[]) => hub.refused(shares),
      block: (candidate: Candidate) => hub.block(candidate),
      worker: (events: readonly WorkerEvent[]) => hub.worker(events),
      resume: (id: string, thread: number) => hub.resume(id, thread),
      ended: (record: SessionRecord) => hub.ended(record),
      fault: (address: string, fault: Fault) => hub.fault(address, fault),
      balance: (service: string, account: Bytes) => hub.balance(service, account),
      log: (level: 'error' | 'warn' | 'info' | 'debug', message: string, fields: Readonly<Record<string, unknown>>) =>
        log[level](message, fields),
      clientFault: (door: string, error: Error) => clientFaults.report(door, error, log),
    },
    (name, error) => log.error('what a listener thread told failed', { name, error }),
  );
  let isClosing = false;
  let reason = 'exited';
  worker.on('error', (error) => {
    reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  });
  const gone = new Promise<void>((resolve) => {
    worker.on('exit', () => {
      calls.close();
      resolve();
      if (!isClosing) onExit(reason);
    });
  });
  return {
    listen: () =>
      calls.call<readonly BoundAddress[]>('listen', []).catch((error: Error) => {
        throw new RuntimeError('listen_failed', error.message);
      }),
    publish: (publication: Publication) => calls.tell('publish', [publication]),
    setReady: (ready) => calls.tell('setReady', [ready]),
    setCertificate: (certificate: CertificatePem) => calls.tell('setCertificate', [certificate]),
    ban: (key, untilMillis) => calls.tell('ban', [key, untilMillis]),
    takeSession: (id) => calls.call<SessionRecord | null>('takeSession', [id]).catch(() => null),
    receipts: (delivery) => calls.tell('receipts', [delivery]),
    figures: () => calls.call<ListenerFigures>('figures', []),
    drain: () => calls.call<void>('drain', []).catch(() => {}),
    close: async () => {
      isClosing = true;
      await calls.call<void>('close', []).catch(() => {});
      await worker.terminate();
      await gone;
    },
  };
}
