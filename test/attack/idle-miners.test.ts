/**
 * Strangers that take every place of a stratum server and do nothing: miners that come still get one, and those that work keep
 * theirs.
 */
import { expect, onTestFinished, test } from 'vitest';
import { EASY, startBed } from '../bridge/bed.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { dial } from './raw-client.ts';

const CONNECTIONS = 12;

async function fullBed() {
  const clock = { millis: 0 };
  const limits = { ...EASY, connections: CONNECTIONS, connectionsPerAddress: 8 };
  const start = Date.now();
  const bed = await startBed({
    limits,
    proxies: ['127.0.0.0/8'],
    serverNow: () => start + clock.millis,
  });
  const open = async (i: number): Promise<{ client: V1Client; isOpen: () => boolean }> => {
    const client = await V1Client.open(bed.port, { from: `203.0.113.${i}` });
    let isOpen = true;
    void client.closed.then(() => {
      isOpen = false;
    });
    onTestFinished(() => client.close());
    return { client, isOpen: () => isOpen };
  };
  /** Whether one of this address is served; it stays. */
  const comes = async (i: number) => {
    const one = await open(i);
    const isIn = await Promise.race([
      one.client.login(`${addressOf(i)}.w`, 'd=4').then(() => true),
      one.client.closed.then(() => false),
    ]);
    return { ...one, isIn };
  };
  const work = async ({ client }: { client: V1Client }, from = 0n) => {
    const job = client.jobs.at(-1)!;
    expect(await client.submitCode(job.jobId, mine(job, client.prefix, from).nonce)).toBe(0);
  };
  return { ...bed, clock, comes, work };
}

test('whoever has found nothing for two minutes gives its place up, those that work do not', async () => {
  const { clock, comes, work } = await fullBed();
  const all: Awaited<ReturnType<typeof comes>>[] = [];
  for (let i = 1; i <= CONNECTIONS; i++) all.push(await comes(i));
  expect(all.every(({ isIn }) => isIn)).toBe(true);
  expect((await comes(99)).isIn).toBe(false);
  clock.millis += 110_000;
  for (const one of all.slice(0, 6)) await work(one);
  clock.millis += 20_000;
  for (let i = 50; i < 56; i++) expect((await comes(i)).isIn).toBe(true);
  expect((await comes(99)).isIn).toBe(false);
  await expect.poll(() => all.map(({ isOpen }) => isOpen())).toEqual(all.map((_, i) => i < 6));
});

test('an address with many connections that found nothing gives one to an address with few, at once', async () => {
  const { clock, comes, work } = await fullBed();
  const strangers: Awaited<ReturnType<typeof comes>>[] = [];
  for (let i = 0; i < 8; i++) strangers.push(await comes(1));
  const few = [await comes(2), await comes(3), await comes(4), await comes(5)];
  await work(few[0]!);
  clock.millis += 20_000;
  expect((await comes(6)).isIn).toBe(true);
  expect(few.map(({ isOpen }) => isOpen())).toEqual([true, true, true, true]);
  await expect.poll(() => strangers.filter(({ isOpen }) => isOpen()).length).toBe(7);
  for (let i = 7; i < 20; i++) await comes(i);
  expect(few.map(({ isOpen }) => isOpen())).toEqual([true, true, true, true]);
});

test('connections that say nothing, or do not log in, give their places up after five seconds', async () => {
  const { clock, comes, port, server } = await fullBed();
  const silent = await Promise.all(Array.from({ length: 6 }, () => dial(port)));
  const half = await Promise.all(
    Array.from({ length: 6 }, (_, i) => dial(port, `PROXY TCP4 198.51.100.${i} 127.0.0.1 1 2\r\n{"jsonrpc":`)),
  );
  onTestFinished(() => {
    for (const { socket } of [...silent, ...half]) socket.destroy();
  });
  await expect.poll(async () => (await server.connections({ text: '', most: 0 })).all).toBe(6);
  expect((await comes(1)).isIn).toBe(false);
  clock.millis += 6_000;
  for (let i = 1; i <= CONNECTIONS; i++) expect((await comes(i)).isIn).toBe(true);
  expect((await comes(99)).isIn).toBe(false);
});

test('connections to the port for WebSockets that do not ask for one give their places up too, and before miners do', async () => {
  const { clock, comes, work, wsPort } = await fullBed();
  const slow = await comes(1);
  await work(slow);
  const heads = await Promise.all(Array.from({ length: CONNECTIONS - 1 }, () => dial(wsPort, 'GET / HTTP/1.1\r\n')));
  onTestFinished(() => {
    for (const { socket } of heads) socket.destroy();
  });
  await expect.poll(async () => (await comes(99)).isIn).toBe(false);
  clock.millis += 6_000;
  for (let i = 2; i <= CONNECTIONS; i++) expect((await comes(i)).isIn).toBe(true);
  expect((await comes(99)).isIn).toBe(false);
  expect(slow.isOpen()).toBe(true);
});

test('a slow miner that has found something keeps its place for twenty minutes, whoever comes', async () => {
  const { clock, comes, work } = await fullBed();
  const slow = await comes(1);
  await work(slow);
  for (let i = 2; i <= CONNECTIONS; i++) await comes(i);
  clock.millis += 130_000;
  for (let i = 50; i < 50 + CONNECTIONS; i++) await comes(i);
  expect(slow.isOpen()).toBe(true);
  clock.millis += 1_080_000;
  // Those that were silent for so long may just be told goodbye: until they are gone there is no place to give.
  for (let i = 100; i < 100 + CONNECTIONS; i++) await expect.poll(async () => (await comes(i)).isIn).toBe(true);
  await expect.poll(slow.isOpen).toBe(false);
});

test('behind a proxy too, an address with many connections gets no place of one with few', async () => {
  const { clock, comes } = await fullBed();
  const few = [await comes(2), await comes(2), await comes(2), await comes(2)];
  for (let i = 0; i < CONNECTIONS - few.length; i++) await comes(1);
  clock.millis += 20_000;
  expect((await comes(1)).isIn).toBe(false);
  expect((await comes(3)).isIn).toBe(true);
  expect(few.map(({ isOpen }) => isOpen())).toEqual([true, true, true, true]);
});
