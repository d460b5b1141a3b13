/**
 * The calls between a listener thread and the main thread, one table for each direction: both sides are made from it. A
 * `call` is answered, a `tell` is not.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { SessionRecord } from '../session/session-record.ts';
import type { Hub, ListenerControl } from './hub.ts';
import type { Packed } from './packed-members.ts';
import type { Methods, PortCalls } from './port-calls.ts';

/** The hub as it looks over a port: lists are packed, and members are named by their handles. */
export interface PortHub extends Omit<Hub, 'shares' | 'worker' | 'ended'> {
  introduce(members: Packed): void;
  left(handles: readonly number[]): void;
  shares(packed: Bytes): Promise<void>;
  worker(events: Packed): void;
  ended(records: readonly SessionRecord[]): void;
  log(level: 'error' | 'warn' | 'info' | 'debug', message: string, fields: Readonly<Record<string, unknown>>): void;
  clientFault(door: string, error: Error): void;
}

type Table<T> = { readonly [K in keyof T]: T[K] extends (...args: never[]) => Promise<unknown> ? 'call' : 'tell' };

export const HUB_CALLS: Table<PortHub> = {
  own: 'call',
  introduce: 'tell',
  left: 'tell',
  shares: 'call',
  refused: 'tell',
  block: 'tell',
  worker: 'tell',
  resume: 'call',
  ended: 'tell',
  keep: 'tell',
  fault: 'tell',
  balance: 'call',
  log: 'tell',
  clientFault: 'tell',
};

export const LISTENER_CALLS: Table<ListenerControl> = {
  listen: 'call',
  publish: 'tell',
  setReady: 'call',
  setCertificate: 'tell',
  setPool: 'tell',
  ban: 'tell',
  takeSession: 'call',
  receipts: 'tell',
  figures: 'call',
  connections: 'call',
  drain: 'call',
  close: 'call',
};

/** The far side's methods, as calls over the port. */
export function remote<T>(calls: PortCalls, table: Table<T>): T {
  const names = Object.entries(table) as [string, 'call' | 'tell'][];
  return Object.fromEntries(
    names.map(([name, kind]) => [name, (...args: unknown[]) => calls[kind](name, args)]),
  ) as unknown as T;
}

/**
 * The near side's methods that the far side may call: those of the table and no others. The target may be created
 * later.
 */
export function exposed(target: () => object, table: Readonly<Record<string, 'call' | 'tell'>>): Methods {
  return Object.fromEntries(
    Object.keys(table).map((name) => [name, (...args: never[]) => (target() as Methods)[name]?.(...args)]),
  );
}
