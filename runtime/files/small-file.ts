/**
 * Reads a file whose size a person decides: a config, a certificate, a token. Only a regular file is read, and only up
 * to a limit, so that a device, a pipe or an endless file cannot block a running program or fill its memory.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** More than any config file needs. */
export const SMALL_FILE_BYTES = 1 << 20;
const LEAST_BYTES = 4_096;

export const readSmallFile = (path: string, mostBytes = SMALL_FILE_BYTES): string => readSmall(path, mostBytes).text;

/** With the rights that the file had when it was read. */
export function readSmall(
  path: string,
  mostBytes = SMALL_FILE_BYTES,
): { readonly text: string; readonly mode: number } {
  // Opening a pipe that nobody writes to would wait for ever without O_NONBLOCK.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw new Error(`${path} is not a regular file`);
    const tooLong = () => new Error(`${path} has more than ${mostBytes} bytes`);
    if (stat.size > mostBytes) throw tooLong();
    // It may grow while it is read, and some file systems report no size: so one byte more than it has, or than is allowed, is asked for.
    let bytes = new Uint8Array(Math.min(Math.max(stat.size, LEAST_BYTES), mostBytes) + 1);
    let length = 0;
    for (let got = -1; got !== 0; length += got) {
      if (length > mostBytes) throw tooLong();
      if (length === bytes.length) {
        const longer = new Uint8Array(Math.min(2 * length, mostBytes) + 1);
        longer.set(bytes);
        bytes = longer;
      }
      got = readSync(file, bytes, length, bytes.length - length, null);
    }
    return { text: new TextDecoder().decode(bytes.subarray(0, length)), mode: stat.mode };
  } finally {
    closeSync(file);
  }
}
