/** The time of a work block (ledger rule 41). */
import { expect, test } from 'vitest';
import { MAX_AHEAD_MILLIS, type TimestampFault, timestampFault } from '../../protocol/ledger/timestamp.ts';

const ANCHOR = 1_800_000_000_000;
const HOUR = 3_600_000;

test('after the anchor, and at most 10 s ahead of the later of clock and anchor', () => {
  const rows: [what: string, timestamp: number, now: number, fault: TimestampFault | undefined][] = [
    ['the time of the anchor', ANCHOR, ANCHOR, 'too_early'],
    ['the first good one', ANCHOR + 1, ANCHOR, undefined],
    ['the last good one, clock at the anchor', ANCHOR + MAX_AHEAD_MILLIS, ANCHOR, undefined],
    ['one more', ANCHOR + MAX_AHEAD_MILLIS + 1, ANCHOR, 'too_late'],
    ['a clock that is an hour behind the anchor', ANCHOR + 1, ANCHOR - HOUR, undefined],
    ['that clock, far ahead of the anchor too', ANCHOR + MAX_AHEAD_MILLIS + 1, ANCHOR - HOUR, 'too_late'],
    ['a clock an hour after the anchor', ANCHOR + HOUR + MAX_AHEAD_MILLIS, ANCHOR + HOUR, undefined],
    ['that clock and one more', ANCHOR + HOUR + MAX_AHEAD_MILLIS + 1, ANCHOR + HOUR, 'too_late'],
    ['long before that clock, right after the anchor', ANCHOR + 1, ANCHOR + HOUR, undefined],
  ];
  for (const [what, timestamp, nowMillis, fault] of rows)
    expect([what, timestampFault(timestamp, { anchorMillis: ANCHOR, nowMillis })]).toEqual([what, fault]);
  expect(timestampFault(ANCHOR + 60_000, { anchorMillis: ANCHOR, nowMillis: 0, aheadMillis: 60_000 })).toBeUndefined();
});
