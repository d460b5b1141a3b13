/**
 * Loaded before a program (NODE_OPTIONS --import) where libfaketime is not installed: `Date` is off by what the file named in SVC_TEST_CLOCK_FILE
 * says, in seconds. Threads load it too. What is not JavaScript keeps the true time.
 */
import { readFileSync } from 'node:fs';

const file = process.env.SVC_TEST_CLOCK_FILE;
const True = Date;
let readAt = Number.NEGATIVE_INFINITY;
let offset = 0;

function off() {
  if (performance.now() - readAt < 50) return offset;
  readAt = performance.now();
  try {
    offset = 1000 * Number(readFileSync(file, 'utf8'));
  } catch {
    // The file is being replaced.
  }
  return offset;
}

globalThis.Date = class Shifted extends True {
  constructor(...values) {
    if (values.length === 0) super(True.now() + off());
    else super(...values);
  }

  static now() {
    return True.now() + off();
  }
};
