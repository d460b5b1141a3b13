/** What a follower logs of its place in the chain. */
import { expect, test } from 'vitest';
import { SyncWatch } from '../../node/reports/sync-watch.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';

test('a node says once that it is synced, and once that it no longer is', () => {
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), close: () => undefined, flush: () => undefined };
  const log = createLogger('node', { filter: readLevelFilter('info'), format: 'text' }, { sink, now: () => 0 });
  let [synced, height] = [false, 3];
  const peers = () => ({ synced, bestPeerHeight: 9, behindBy: 9 - height, peers: 2, ...NO_UPDATE });
  const watch = new SyncWatch({ sync: () => ({ synced, height, peers: peers() }), log });
  const look = (now: boolean, at: number): number => {
    [synced, height] = [now, at];
    watch.look();
    return lines.length;
  };
  expect([look(false, 3), look(false, 8)]).toEqual([0, 0]);
  expect([look(true, 9), look(true, 9)]).toEqual([1, 1]);
  expect([look(false, 5), look(false, 5)]).toEqual([2, 2]);
  expect(look(true, 9)).toBe(3);
  expect(lines[0]).toMatch(/INFO .*synced height=9 peers=2/);
  expect(lines[1]).toMatch(/WARN .*no longer synced height=5 behind_by=4 peers=2/);
});

const NO_UPDATE = { updateAnnounced: false, updateRequired: false };
