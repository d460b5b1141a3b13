/** Session ids: the first byte names the thread, so that the main thread knows which thread has the session; the rest is random. */
import { hexSlice } from '../../runtime/native/native-hex.ts';

const SESSION_ID_BYTES = 16;

export function newSessionId(thread: number, randomBytes: (count: number) => Uint8Array): string {
  const bytes = randomBytes(SESSION_ID_BYTES);
  bytes[0] = thread;
  return hexSlice.call(bytes, 0, SESSION_ID_BYTES);
}

export const threadOf = (id: string): number => Number.parseInt(id.slice(0, 2), 16);
