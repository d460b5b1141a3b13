/** What the measured transports have in common: ends that send and take whole messages. */
import type { Bytes } from '../../../protocol/bytes.ts';

export type Line = {
  /** Ends that are ready. */
  ends(): number;
  /** To one end, or to all. A block may not delay a vote. */
  send(bytes: Bytes, kind: 'vote' | 'block', end?: number): void;
  close(): Promise<void>;
};

export type Take = (bytes: Bytes) => void;

/** Kind (one byte), moment of sending in microseconds (eight bytes), then filling. */
export function stamped(kind: 'vote' | 'block', bytes: number): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(bytes);
  message[0] = kind === 'vote' ? 1 : 2;
  new DataView(message.buffer).setFloat64(1, performance.timeOrigin + performance.now());
  return message;
}

export const kindOf = (message: Bytes): 'vote' | 'block' => (message[0] === 1 ? 'vote' : 'block');

export const ageOf = (message: Bytes): number =>
  performance.timeOrigin +
  performance.now() -
  new DataView(message.buffer, message.byteOffset, message.byteLength).getFloat64(1);
