/**
 * The frames of svc-mining-v2 (docs/protocol/stratum.md, S14): `u16 payload length | u8 type | payload`. Splits a byte
 * stream into frames and holds at most one unfinished frame. Also detects the wire form by the first bytes (S2).
 */
import type { Bytes } from '../bytes.ts';
import { ProtocolError } from '../errors.ts';

export const MAX_PAYLOAD_BYTES = 4096;
export const FRAME_HEADER_BYTES = 3;
/** `SVC2`, sent once by the client of a v2 stream before its first frame. Not sent on a WebSocket. */
export const V2_MAGIC: Bytes = Uint8Array.of(0x53, 0x56, 0x43, 0x32);

export type WireForm = 'tls' | 'v1' | 'v2' | 'more' | 'unknown';

/** The wire form of a connection, from the bytes so far; 'more' when more are needed. */
export function sniff(first: Bytes): WireForm {
  if (first.length === 0) return 'more';
  if (first[0] === 0x16) return 'tls';
  if (first[0] === 0x7b) return 'v1';
  for (let i = 0; i < V2_MAGIC.length; i++) {
    if (i === first.length) return 'more';
    if (first[i] !== V2_MAGIC[i]) return 'unknown';
  }
  return 'v2';
}

function payloadLength(low: number, high: number): number {
  const length = low | (high << 8);
  if (length > MAX_PAYLOAD_BYTES)
    throw new ProtocolError('too_long', `a payload has at most ${MAX_PAYLOAD_BYTES} bytes, this one ${length}`);
  return length;
}

export interface RawFrame {
  type: number;
  payload: Bytes;
}

/** One frame that is all of `bytes`, as a WebSocket message is. The payload is a view. */
export function readFrame(bytes: Bytes): RawFrame {
  if (bytes.length < FRAME_HEADER_BYTES) throw new ProtocolError('truncated', 'a frame has a header of 3 bytes');
  const length = payloadLength(bytes[0] as number, bytes[1] as number);
  const left = bytes.length - FRAME_HEADER_BYTES - length;
  if (left < 0) throw new ProtocolError('truncated', `${-left} bytes of the frame are missing`);
  if (left > 0) throw new ProtocolError('trailing_bytes', `${left} bytes follow the frame`);
  return { type: bytes[2] as number, payload: bytes.subarray(FRAME_HEADER_BYTES) };
}

export class FrameSplitter {
  #held: Uint8Array | null = null;
  #length = 0;

  /** Bytes of an unfinished frame. */
  get held(): number {
    return this.#length;
  }

  /**
   * Passes each complete frame to `take`; the payload is valid only during the call. `take` returns false to stop: the
   * rest of the chunk is dropped. Throws too_long; the connection must then be closed.
   */
  push(chunk: Bytes, take: (type: number, payload: Bytes) => boolean): void {
    let from = 0;
    while (from < chunk.length) {
      if (this.#length > 0) {
        from = this.#fill(chunk, from);
        const held = this.#held as Uint8Array;
        if (this.#length < FRAME_HEADER_BYTES) return;
        const whole = FRAME_HEADER_BYTES + this.#payload(held, 0);
        if (this.#length < whole) continue;
        this.clear();
        if (!take(held[2] as number, held.subarray(FRAME_HEADER_BYTES, whole))) return;
        continue;
      }
      const left = chunk.length - from;
      const whole = left < 2 ? Number.POSITIVE_INFINITY : FRAME_HEADER_BYTES + this.#payload(chunk, from);
      if (left < whole) {
        this.#held = new Uint8Array(Number.isFinite(whole) ? whole : FRAME_HEADER_BYTES);
        this.#held.set(chunk.subarray(from));
        this.#length = left;
        return;
      }
      const payload = chunk.subarray(from + FRAME_HEADER_BYTES, from + whole);
      const type = chunk[from + 2] as number;
      from += whole;
      if (!take(type, payload)) return;
    }
  }

  clear(): void {
    this.#held = null;
    this.#length = 0;
  }

  #payload(bytes: Bytes, at: number): number {
    try {
      return payloadLength(bytes[at] as number, bytes[at + 1] as number);
    } catch (error) {
      this.clear();
      throw error;
    }
  }

  /** Moves the missing bytes of the held frame from the chunk; returns the position after them. */
  #fill(chunk: Bytes, from: number): number {
    let held = this.#held as Uint8Array;
    let whole = FRAME_HEADER_BYTES;
    if (this.#length >= 2) whole += this.#payload(held, 0);
    if (held.length < whole) {
      held = new Uint8Array(whole);
      held.set((this.#held as Uint8Array).subarray(0, this.#length));
      this.#held = held;
    }
    const count = Math.min(whole - this.#length, chunk.length - from);
    held.set(chunk.subarray(from, from + count), this.#length);
    this.#length += count;
    return from + count;
  }
}
