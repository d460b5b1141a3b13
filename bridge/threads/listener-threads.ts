/**
 * A listener in a thread of its own, seen from the main thread: starts it, passes the hub's calls both ways over its port,
 * and knows which member each handle names.
 */
import { Worker } from 'node:worker_threads';
import type { Verifier } from '../../kernels/verifier.ts';
import { clientFaults } from '../../runtime/clients/client-fault.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { RuntimeError } from '../../runtime/runtime-error.ts';
import type { DeskOptions } from '../connection/desk-options.ts';
import type { ListenerOptions } from '../connection/listener.ts';
import { unpackShares } from '../shares/share-batch.ts';
import { exposed, HUB_CALLS, LISTENER_CALLS, type PortHub, remote } from './calls.ts';
import type { ConnectionList, ConnectionSearch, Hub, ListenerControl, ListenerFigures, Member } from './hub.ts';
import { unpackEvents, unpackMembers } from './packed-members.ts';
import { PortCalls } from './port-calls.ts';

export type ListenerThreadOptions = { readonly desk: DeskOptions; readonly listener: ListenerOptions };

export type ListenerThreadDependencies = {
  readonly hub: Hub;
  readonly verifier: Verifier;
  readonly log: Logger;
  /** The thread has ended unexpectedly. */
  readonly onExit: (reason: string) => void;
};

/**
 * Objects of a listener live either for one message or for a whole connection, so a small young generation is enough;
 * V8's default would take more memory than ten thousand connections.
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
  /** The methods that differ from the hub's: members are named by handles, and only this side has the log. */
  const ofThread: Pick<PortHub, Exclude<keyof PortHub, keyof Hub> | 'shares' | 'worker' | 'ended'> = {
    introduce: (packed) => {
      for (const member of unpackMembers(packed)) members.set(member.handle, member);
    },
    left: (handles) => {
      for (const handle of handles) members.delete(handle);
    },
    shares: (packed) => hub.shares(unpackShares(packed, memberOf)),
    worker: (packed) => hub.worker(unpackEvents(packed)),
    ended: (records) => {
      for (const record of records) hub.ended(record);
    },
    log: (level, message, fields) => log[level](message, fields),
    clientFault: (door, error) => clientFaults.report(door, error, log),
  };
  const calls = new PortCalls(worker, { ...exposed(() => hub, HUB_CALLS), ...ofThread }, (name, error) =>
    log.error('a call from a listener thread failed', { name, error }),
  );
  const listener = remote<ListenerControl>(calls, LISTENER_CALLS);
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
    ...listener,
    listen: () =>
      listener.listen().catch((error: Error) => {
        throw new RuntimeError('listen_failed', error.message);
      }),
    // A thread that has died has no logins and no sessions, and nothing to drain.
    setReady: (ready) => listener.setReady(ready).catch(() => {}),
    takeSession: (id) => listener.takeSession(id).catch(() => null),
    drain: () => listener.drain().catch(() => {}),
    close: async () => {
      isClosing = true;
      await listener.close().catch(() => {});
      await worker.terminate();
      await gone;
    },
  };
}

/** Of the listeners that live: one that dies does not answer. */
async function answersOf<T>(
  listeners: Iterable<ListenerControl>,
  ask: (listener: ListenerControl) => Promise<T>,
): Promise<T[]> {
  const asked = await Promise.allSettled([...listeners].map(ask));
  return asked.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

export const figuresOf = (listeners: Iterable<ListenerControl>): Promise<ListenerFigures[]> =>
  answersOf(listeners, (listener) => listener.figures());

export async function connectionsOf(
  listeners: Iterable<ListenerControl>,
  search: ConnectionSearch,
): Promise<ConnectionList> {
  const lists = await answersOf(listeners, (listener) => listener.connections(search));
  const sum = (of: (list: ConnectionList) => number) => lists.reduce((total, list) => total + of(list), 0);
  const rows = lists.flatMap((list) => list.rows).sort((a, b) => a.ageMillis - b.ageMillis);
  return { all: sum(({ all }) => all), found: sum(({ found }) => found), rows: rows.slice(0, search.most) };
}
