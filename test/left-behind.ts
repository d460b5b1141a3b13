/**
 * Short files share a worker: what one leaves running, all that follow pay for. One left millions of queued lines behind, of which every turn of the event loop worked on one, and a file with many
 * turns took sixty times as long.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';

/** What is being closed takes some turns. */
const TURNS = 500;

const isBusy = (): boolean => process.getActiveResourcesInfo().includes('Immediate');

afterAll(async () => {
  for (let turn = 0; turn < TURNS && isBusy(); turn++) await sleep(1);
  expect(isBusy(), 'this file has ended, and something of it still works in every turn of the event loop').toBe(false);
});
