/**
 * Short files share a worker: what one leaves running, all that follow pay for. One left millions of queued lines behind, of which every turn of the event loop worked on one, and a file with many
 * turns took sixty times as long.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';

/** What is being closed takes some turns. */
const TURNS = 500;
/** Short files leave three at most; one left a thousand that were set again every 5 ms, and a worker had a quarter less for all files after it. */
const TIMERS = 300;

const left = (kind: string): number => process.getActiveResourcesInfo().filter((each) => each === kind).length;
const isBusy = (): boolean => left('Immediate') > 0;

export const expectNothingLeft = (): void =>
  afterAll(async () => {
    for (let turn = 0; turn < TURNS && (isBusy() || left('Timeout') > TIMERS); turn++) await sleep(1);
    expect(isBusy(), 'this file has ended, and something of it still works in every turn of the event loop').toBe(
      false,
    );
    expect(left('Timeout'), 'timers that run on after this file has ended').toBeLessThanOrEqual(TIMERS);
  });
