/** No header is ever given twice, whatever bridge, thread, connection, draw, cut or block; no body is used for two blocks. */
import { expect, test } from 'vitest';
import { LocalSessionShelf } from '../../bridge/session/session-shelf.ts';
import { toHex } from '../../protocol/bytes.ts';
import { bodyId } from '../../protocol/ledger/body.ts';
import { count } from '../level.ts';
import { type Bed, EASY, startBed } from './bed.ts';
import { addressOf, mine, V1Client } from './stratum-client.ts';
import { TemplateSource } from './template-source.ts';

test.each([1, 2])('100 connections on %i bridges', async (bridges) => {
  const source = () => {
    const made = new TemplateSource();
    made.transactions = [[new Uint8Array(40).fill(1)], [new Uint8Array(40).fill(2), new Uint8Array(50).fill(3)]];
    return made;
  };
  const beds: Bed[] = [];
  for (let i = 0; i < bridges; i++) beds.push(await startBed({ threads: 2, sources: [source()], blockWork: 6n }));
  const connections = 100;
  // One address and worker for all: only the extranonce may tell them apart.
  const clients = await Promise.all(
    Array.from({ length: connections }, (_, i) => V1Client.open((beds[i % bridges] as Bed).port)),
  );
  await Promise.all(clients.map((client) => client.login(`${addressOf(1)}.same`)));
  const cuts = count({ quick: 1, full: 2, deep: 20 });
  for (let cut = 0; cut < cuts; cut++) {
    await Promise.all(
      clients.map(async (client) => {
        const job = client.jobs.at(-1)!;
        await client.submitCode(job.jobId, mine(job, client.prefix).nonce);
      }),
    );
    const seen = clients.map(({ jobs }) => jobs.length);
    for (const { source: from } of beds) from.cut();
    await Promise.all(
      clients.map((client, i) => client.until(() => (client.jobs.length > seen[i]! ? true : undefined))),
    );
  }
  const headers = clients.flatMap(({ jobs }) => jobs.map(({ header }) => toHex(header)));
  expect(new Set(headers).size).toBe(headers.length);
  expect(headers.length).toBeGreaterThan(connections * cuts);
  const blocks = beds.flatMap(({ source: from }) => from.submitted);
  expect(blocks.length).toBeGreaterThan(10);
  expect(new Set(blocks.map(({ body }) => toHex(bodyId(body)))).size).toBe(blocks.length);
  for (const client of clients) client.close();
});

test('a session that moves to another server and back goes on, under an extranonce of its own each time', async () => {
  const shelf = new LocalSessionShelf(EASY, Date.now);
  const shelved = new Set<string>();
  const sessions = {
    put: async (record: Parameters<typeof shelf.put>[0]) => {
      const place = await shelf.put(record);
      shelved.add(record.id);
      return place;
    },
    take: (id: string) => shelf.take(id),
  };
  const [a, b] = [await startBed({ sessions }), await startBed({ sessions })];
  const extranonces: string[] = [];
  let session: string | null = null;
  let last: V1Client | undefined;
  for (const { port, sink } of [a, b, a, b]) {
    const client = await V1Client.open(port);
    await client.login(`${addressOf(1)}.a`, '', session);
    const job = client.jobs[0]!;
    extranonces.push(toHex(job.extranonce));
    expect(job.clean).toBe(true);
    expect(sink.owned.at(-1)?.worker).toBe('a');
    if (last !== undefined) {
      expect(client.session).toBe(last.session);
      expect(client.prefix).toEqual(last.prefix);
    }
    expect(await client.submitCode(job.jobId, mine(job, client.prefix).nonce)).toBe(0);
    session = client.session;
    shelved.clear();
    client.close();
    await expect.poll(() => shelved.has(client.session)).toBe(true);
    last = client;
  }
  expect(new Set(extranonces).size).toBe(4);
  const again = await V1Client.open(a.port);
  await again.login(`${addressOf(1)}.a`, '', session);
  expect(await again.ask({ method: 'mining.stats' })).toMatchObject({ result: { accepted: 4, work: 16n } });
  again.close();
});
