/**
 * The thread that reads the journal, sums it up and builds the trees: a slice of ten thousand miners takes a second. It
 * asks for the slice's work in the books before it builds a sheet, and waits until the sheet is stored: one sheet is in
 * memory at a time. Orders are processed one after another.
 */
import { once } from 'node:events';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { receiptSheet } from '../../protocol/books/receipt.ts';
import { ByteReader } from '../../protocol/bytes.ts';
import { useNativeSha384 } from '../../runtime/native/native-sha384.ts';
import { readJournal } from '../journal/journal.ts';
import type { SheetAnswer, SheetMessage, SheetOrder } from './run-sheets.ts';
import { pagesOf } from './sheet-pages.ts';
import { JournalTally, type SliceLeaves, type SliceRange } from './tally.ts';

async function run(
  { directory, bootId, ranges, doubled, leftOut, last }: SheetOrder,
  port: MessagePort,
): Promise<void> {
  const send = async (message: SheetMessage): Promise<SheetAnswer> => {
    port.postMessage(message);
    const [answer] = await once(port, 'message');
    return answer as SheetAnswer;
  };
  const tally = new JournalTally(ranges, doubled, leftOut);
  const after = (ranges[0] as SliceRange).after;
  for await (const entries of readJournal(directory, bootId, after))
    for (const { sequence, record } of entries) if (sequence <= last) tally.take(sequence, record);
  for (const made of tally.leaves()) {
    const { service, slice } = made;
    const booked = await send({ kind: 'ask', service, slice });
    if (booked === 'stop') break;
    if (booked === 'skip' || booked === 'go') continue;
    if ((await send(sheetOf(made, readBooked(booked)))) === 'stop') break;
  }
  const { holed, unheld, belated } = tally;
  port.postMessage({ kind: 'end', holed, unheld, belated } satisfies SheetMessage);
}

function sheetOf({ service, slice, span, leaves }: SliceLeaves, booked: ReadonlyMap<string, bigint>): SheetMessage {
  // Signed anyway: a receipt states the accepted work, even if the books have lost some of it. The receipt maker logs
  // an error.
  const less = leaves.filter(({ account, accountWork }) => (booked.get(textOf(account)) ?? 0n) < accountWork).length;
  const sheet = receiptSheet(leaves);
  const made = {
    service,
    slice,
    span,
    root: sheet.root,
    count: leaves.length,
    pages: pagesOf(sheet),
    entries: shared(sheet.entries),
    offsets: offsetsOf(sheet.entries),
  };
  return { kind: 'sheet', sheet: made, less };
}

const textOf = (account: Uint8Array): string => Buffer.from(account).toString('latin1');

function readBooked(bytes: Uint8Array): Map<string, bigint> {
  const reader = new ByteReader(bytes);
  const booked = new Map<string, bigint>();
  while (reader.left > 0) booked.set(textOf(reader.take(ADDRESS_PAYLOAD_BYTES)), reader.u128());
  return booked;
}

function shared(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(new SharedArrayBuffer(parts.reduce((sum, part) => sum + part.length, 0)));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function offsetsOf(parts: readonly Uint8Array[]): Uint32Array {
  const offsets = new Uint32Array(new SharedArrayBuffer(4 * (parts.length + 1)));
  for (const [i, part] of parts.entries()) offsets[i + 1] = (offsets[i] as number) + part.length;
  return offsets;
}

useNativeSha384();
const orders = parentPort as MessagePort;
for (;;) {
  const [order] = await once(orders, 'message');
  await run(order as SheetOrder, orders);
}
