/**
 * Members, and workers that connected or left, for messages from a listener thread to the main thread: one byte array
 * and one list of texts per message. A byte array for each member would cost its own memory outside the heap on both
 * sides.
 */
import { ByteReader, ByteWriter } from '../../protocol/bytes.ts';
import type { WorkerEvent } from '../shares/sink.ts';
import type { Member } from './hub.ts';

export type Packed = { readonly bytes: Uint8Array<ArrayBuffer>; readonly texts: readonly string[] };

const KINDS = ['joined', 'left'] as const;
const MEMBER_BYTES = 4 + 1 + 13 + 1 + 49;
const EVENT_BYTES = 1 + 1 + 49 + 8;

export function packMembers(members: readonly Member[]): Packed {
  const writer = new ByteWriter(MEMBER_BYTES * members.length);
  const texts: string[] = [];
  for (const { handle, owner, service, account, worker, tag, agent } of members) {
    writer.u32(handle).short(owner).short(account);
    texts.push(service, worker, tag, agent);
  }
  return { bytes: writer.done(), texts };
}

export function unpackMembers({ bytes, texts }: Packed): Member[] {
  const reader = new ByteReader(bytes);
  let at = 0;
  const word = (): string => texts[at++] as string;
  const members: Member[] = [];
  while (reader.left > 0)
    members.push({
      handle: reader.u32(),
      owner: reader.short(),
      account: reader.short(),
      service: word(),
      worker: word(),
      tag: word(),
      agent: word(),
    });
  return members;
}

export function packEvents(events: readonly WorkerEvent[]): Packed {
  const writer = new ByteWriter(EVENT_BYTES * events.length);
  const texts: string[] = [];
  for (const { kind, service, account, worker, agent, connection, atMillis } of events) {
    writer.u8(KINDS.indexOf(kind)).short(account).height(Math.floor(atMillis));
    texts.push(service, worker, agent, connection);
  }
  return { bytes: writer.done(), texts };
}

export function unpackEvents({ bytes, texts }: Packed): WorkerEvent[] {
  const reader = new ByteReader(bytes);
  let at = 0;
  const word = (): string => texts[at++] as string;
  const events: WorkerEvent[] = [];
  while (reader.left > 0)
    events.push({
      kind: KINDS[reader.u8()] as WorkerEvent['kind'],
      account: reader.short(),
      atMillis: reader.height(),
      service: word(),
      worker: word(),
      agent: word(),
      connection: word(),
    });
  return events;
}
