/** Connections per address: exact for every address, whatever others connect from, on all threads together. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { ConnectionCount, connectionCountMemory } from '../../bridge/connection/connection-count.ts';
import { seed } from '../level.ts';
import { randomOf } from '../random.ts';

const ipv4 = (i: number): string => `${1 + (i >> 24)}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

test('nobody is locked out by the addresses of others: the count of each is its own', () => {
  const memory = connectionCountMemory(65_536);
  const counts = new ConnectionCount(memory, connectionCountMemory(65_536));
  // As many addresses as there may be connections. A victim of two others would be counted with theirs.
  for (let i = 0; i < 60_000; i++) counts.add(ipv4(i * 7919), 1);
  let wrong = 0;
  for (let i = 0; i < 60_000; i++) if (counts.of(ipv4(i * 7919)) !== 1) wrong++;
  for (let i = 0; i < 20_000; i++) if (counts.of(`2001:db8:${i.toString(16)}:0::/64`) !== 0) wrong++;
  expect(wrong).toBe(0);
});

test('random arrivals and departures on two threads: the counts are those of a plain map, and a dead thread is given back', () => {
  const memory = connectionCountMemory(256);
  const owns = [connectionCountMemory(256), connectionCountMemory(256)];
  const threads = owns.map((own) => new ConnectionCount(memory, own));
  const draw = randomOf(seed);
  const open: { thread: number; key: string }[] = [];
  const working: { thread: number; key: string }[] = [];
  const check = () => {
    const [first] = threads as [ConnectionCount, ConnectionCount];
    expect(first.all).toBe(open.length);
    for (let i = 0; i < 40; i++) {
      expect(first.of(ipv4(i))).toBe(open.filter(({ key }) => key === ipv4(i)).length);
      expect(first.works(ipv4(i))).toBe(working.some(({ key }) => key === ipv4(i)));
    }
  };
  for (let step = 0; step < 4_000; step++) {
    const [thread, key] = [draw(2), ipv4(draw(40))];
    const counts = threads[thread] as ConnectionCount;
    if (draw(3) > 0 && open.length < 200) {
      open.push({ thread, key });
      counts.add(key, 1);
      if (draw(2) === 0) {
        working.push({ thread, key });
        counts.addWorking(key, 1);
      }
    } else if (open.length > 0) {
      const [gone] = open.splice(draw(open.length), 1) as [{ thread: number; key: string }];
      threads[gone.thread]?.add(gone.key, -1);
      const at = working.findIndex((one) => one.key === gone.key && one.thread === gone.thread);
      if (at >= 0) {
        working.splice(at, 1);
        threads[gone.thread]?.addWorking(gone.key, -1);
      }
    }
    if (step % 500 === 0) check();
  }
  new ConnectionCount(memory, owns[1]).giveBackAll();
  for (const list of [open, working])
    for (let i = list.length - 1; i >= 0; i--) if (list[i]?.thread === 1) list.splice(i, 1);
  check();
  new ConnectionCount(memory, owns[0]).giveBackAll();
  expect(threads[0]?.all).toBe(0);
  expect(new BigInt64Array(memory, 24).every((word) => word === 0n)).toBe(true);
});

test('threads that count at the same moment lose nothing', async () => {
  const memory = connectionCountMemory(64);
  const program = `const { workerData: { url, memory, own, from } } = require('node:worker_threads');
    import(url).then(({ ConnectionCount }) => {
      const counts = new ConnectionCount(memory, own);
      for (let i = 0; i < 5000; i++) { counts.add('a' + (i % 3), 1); if (i % 5 !== from) counts.add('a' + (i % 3), -1); }
    });`;
  const url = new URL('../../bridge/connection/connection-count.ts', import.meta.url).href;
  const workers = [0, 1].map(
    (from) => new Worker(program, { eval: true, workerData: { url, memory, own: connectionCountMemory(64), from } }),
  );
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
  const counts = new ConnectionCount(memory);
  expect(counts.all).toBe(2_000);
  expect(['a0', 'a1', 'a2'].reduce((sum, key) => sum + counts.of(key), 0)).toBe(2_000);
});
