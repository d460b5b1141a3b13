/** Random bytes in small pieces, many of them from one system call: a login needs 16, and one call each took 10 % of a login. */
import { randomFillSync } from 'node:crypto';

const ROOM = 4_096;

/** Gives at most 4,096 bytes at a time; no byte is given twice. */
export function randomPieces(): (count: number) => Uint8Array<ArrayBuffer> {
  const room = new Uint8Array(ROOM);
  let used = ROOM;
  return (count) => {
    if (count > ROOM) throw new RangeError(`${count} bytes asked for, at most ${ROOM} are given`);
    if (used + count > ROOM) {
      randomFillSync(room);
      used = 0;
    }
    used += count;
    return room.slice(used - count, used);
  };
}
