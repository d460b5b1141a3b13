/**
 * Frames of the write-ahead log (consensus rule 12): `u32 mark | u32 length | u32 crc32 | u64 sequence | bytes`, the
 * checksum over sequence and bytes. One frame is one synced batch. So a crash leaves complete frames and at most one
 * torn frame at the end, whose message was never sent. A complete frame after a torn one means that synced bytes were
 * lost: such a log is damaged, and must not be used for signing.
 */
import { crc32 } from 'node:zlib';
import type { Bytes } from '../../../protocol/bytes.ts';

const MARK = 0x4c57_5653;
export const FRAME_HEAD_BYTES = 20;

export function frameOf(sequence: number, bytes: Bytes): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(FRAME_HEAD_BYTES + bytes.length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, MARK, true);
  view.setUint32(4, bytes.length, true);
  view.setBigUint64(12, BigInt(sequence), true);
  frame.set(bytes, FRAME_HEAD_BYTES);
  view.setUint32(8, crc32(frame.subarray(12)), true);
  return frame;
}

export type Frames = {
  readonly payloads: readonly Bytes[];
  /** Where the complete frames end: the rest is torn. */
  readonly goodBytes: number;
  /** A complete frame follows a torn one. */
  readonly isDamaged: boolean;
};

/** Sequences count 0, 1, 2, ...: a missing frame in the middle is detected. */
export function readFrames(bytes: Bytes): Frames {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const payloads: Bytes[] = [];
  let at = 0;
  for (;;) {
    const end = frameEnd(bytes, view, at);
    if (end === undefined || view.getBigUint64(at + 12, true) !== BigInt(payloads.length)) break;
    payloads.push(bytes.subarray(at + FRAME_HEAD_BYTES, end));
    at = end;
  }
  let isDamaged = false;
  for (let next = at; next < bytes.length && !isDamaged; next++) isDamaged = frameEnd(bytes, view, next) !== undefined;
  return { payloads, goodBytes: at, isDamaged };
}

function frameEnd(bytes: Bytes, view: DataView, at: number): number | undefined {
  if (bytes.length - at < FRAME_HEAD_BYTES || view.getUint32(at, true) !== MARK) return undefined;
  const end = at + FRAME_HEAD_BYTES + view.getUint32(at + 4, true);
  if (end > bytes.length || crc32(bytes.subarray(at + 12, end)) !== view.getUint32(at + 8, true)) return undefined;
  return end;
}
