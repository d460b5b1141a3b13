/** What a node sends by HTTP and WebSocket, and what it must not do to a program that listens: end it, hang it, fill it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { WebSocket } from 'ws';
import { developmentKey } from '../../node/genesis/development.ts';
import { followCuts } from '../../protocol/api/client-events.ts';
import { NodeSocket } from '../../runtime/node-client/node-socket.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';
import type { Lie } from './lying-node.ts';
import { fatalErrors, followNodes, httpNode, startMiningBed } from './mining-bed.ts';

const everything = (send: (path: string) => Lie['http']): Lie => ({
  http: (asked, response, truth) => send(asked.path)?.(asked, response, truth),
});

/** `count` is what the longest answer got rid of: how often a busy machine is asked says nothing. */
const endless = (count: { bytes: number }): Lie =>
  everything(() => (_asked, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    let sent = 0;
    const more = (): void => {
      if (response.destroyed) return;
      sent += 65_536;
      count.bytes = Math.max(count.bytes, sent);
      response.write(Buffer.alloc(65_536, 0x20), more);
    };
    more();
  });

const drip: Lie = everything(() => (_asked, response) => {
  response.writeHead(200, { 'content-length': '4000000' });
  const timer = setInterval(() => response.write('a'), 20);
  response.on('close', () => clearInterval(timer));
});

/** Frames that are not what they should be. One of them is sent in place of each true one. */
const FRAMES: readonly (string | Buffer)[] = [
  'not json',
  '',
  'null',
  '[]',
  '7',
  '{"type":"checkpoint"}',
  '{"type":"checkpoint","data":null}',
  '{"type":"checkpoint","data":{}}',
  '{"type":"checkpoint","data":{"cut":null,"finalized_height":1}}',
  '{"type":"checkpoint","data":{"api_version":1,"finalized_height":1,"cut":{"height":-1}}}',
  '{"type":"resync_required","data":null}',
  '{"type":"cut_finalized","data":null}',
  '{"type":"cut_finalized","data":{"cut":{"height":1e300}}}',
  `{"type":"x","data":{"a":${'['.repeat(100_000)}`,
  Buffer.from([1, 2, 3]),
  `"${'x'.repeat(5 * 1024 * 1024)}"`,
];

const ANSWERS: readonly string[] = [
  '',
  'null',
  '[]',
  '7',
  '{}',
  '"',
  '{"header_hex":7,"body_hex":{},"fees":[],"pow":null}',
  `{"header_hex":"${'00'.repeat(312)}","body_hex":"zz","fees":"1","pow":{}}`,
  `{"header_hex":"${'00'.repeat(312)}","body_hex":"00","fees":"${'9'.repeat(100_000)}","pow":{}}`,
];

test('frames that are no frames, answers that are no answers: the node is passed over until it is well again', async () => {
  const fatal = fatalErrors();
  const { bed, liar } = await startMiningBed();
  const { sets, states } = followNodes(bed, [liar.url]);
  await expect.poll(() => states.healthy && sets.length > 0).toBe(true);
  for (const frame of FRAMES) {
    liar.lie = { frame: (_text, send) => send(frame) };
    liar.dropReaders();
    const before = liar.asked.length;
    await expect.poll(() => liar.asked.length, { interval: 5 }).toBeGreaterThan(before + 2);
    await expect.poll(() => states.healthy).toBe(false);
  }
  liar.lie = {};
  await expect.poll(() => states.healthy).toBe(true);
  for (const answer of ANSWERS)
    for (const status of [200, 404]) {
      liar.lie = everything(() => (_asked, response) => response.writeHead(status).end(answer));
      const before = liar.asked.length;
      await expect.poll(() => liar.asked.length, { interval: 5 }).toBeGreaterThan(before + 2);
      await expect.poll(() => states.healthy, { interval: 5 }).toBe(false);
    }
  liar.lie = {};
  const before = sets.length;
  await bed.seal();
  await expect.poll(() => sets.length).toBeGreaterThan(before);
  await expect.poll(() => states.healthy).toBe(true);
  expect(fatal).toEqual([]);
});

test('a height that is too large is believed until the next cut, and no longer', async () => {
  const { bed, liar } = await startMiningBed();
  let lies = 0;
  liar.lie = {
    frame: (text, send) => {
      lies++;
      send(
        text.replace(/"finalized_height":0,"cut":{"height":0/, '"finalized_height":7000000,"cut":{"height":7000000'),
      );
    },
  };
  const { upstream, sets } = followNodes(bed, [liar.url]);
  await expect.poll(() => lies > 0 && upstream.figures()[0]?.height).toBe(7_000_000);
  liar.lie = {};
  await bed.seal();
  await expect.poll(() => sets.at(-1)?.templates[0]?.anchorHeight).toBe(1);
});

test('an answer without an end is cut off, a slow one is not waited for, and another node serves meanwhile', async () => {
  const { bed, url, liar } = await startMiningBed();
  const { sets } = followNodes(bed, [liar.url, url], 300);
  await expect.poll(() => sets.at(-1)?.node).toBe(liar.url);
  const count = { bytes: 0 };
  liar.lie = endless(count);
  await expect.poll(() => sets.at(-1)?.node).toBe(url);
  const { bytes } = count;
  expect(bytes).toBeLessThan(64 * 1024 * 1024);
  liar.lie = {};
  await expect.poll(() => sets.at(-1)?.node).toBe(liar.url);
  liar.lie = drip;
  await expect.poll(() => sets.at(-1)?.node).toBe(url);
});

test('no redirect is followed, and one is no verdict on a block', async () => {
  let asked = 0;
  const elsewhere = createServer((_, response) => {
    asked++;
    response.end('{"status":"accepted"}');
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void elsewhere.close());
  const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`;
  const { bed, liar } = await startMiningBed();
  const node = httpNode(liar.url);
  const { header, body } = bed.make(developmentKey('alice').address);
  for (const status of [301, 302, 303, 307, 308]) {
    liar.lie = everything(() => (_asked, response) => response.writeHead(status, { location }).end());
    await expect(node.template(0)).rejects.toThrow(String(status));
    await expect(node.submit(header, body)).rejects.toThrow(String(status));
  }
  liar.lie = {
    upgrade: (_request, socket) =>
      void socket.end(`HTTP/1.1 302 Found\r\nlocation: ${location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`),
  };
  const { states } = followNodes(bed, [liar.url]);
  await sleep(300);
  expect(states.healthy).toBe(false);
  expect(asked).toBe(0);
});

test('a reader that is sent more than it takes gives the connection up, holds little, and resumes where it was', async () => {
  const { bed, liar } = await startMiningBed();
  const padding = 'x'.repeat(256 * 1024);
  const [seen, closed] = [new Set<WebSocket>(), new Set<WebSocket>()];
  liar.lie = {
    frame: (text, send, socket) => {
      if (!seen.has(socket)) socket.on('close', () => closed.add(socket));
      seen.add(socket);
      send(text.replace('"data":{', `"data":{"padding":"${padding}",`));
    },
  };
  const over = new AbortController();
  onTestFinished(() => over.abort());
  let lost = 0;
  const stream = followCuts(
    { baseUrl: liar.url, afterHeight: 0, signal: over.signal, maxQueuedText: 1024 * 1024, onLost: () => lost++ },
    { ...nodeTransport(), sleep: () => sleep(10) },
  );
  await bed.seal(40);
  const heights: number[] = [];
  for await (const item of stream) {
    if (item.type === 'cut_finalized') heights.push(item.data.cut.height);
    if (heights.length === 40) break;
    // The reader is busy until the connection is given up, and hears of that when it reads on.
    if (lost < 3) await expect.poll(() => closed.size).toBeGreaterThan(lost);
  }
  expect(heights).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  expect(lost).toBeGreaterThan(2);
});

test('a connection that has gone quiet, or never gets through its handshake, is given up', async () => {
  const { liar } = await startMiningBed();
  const closed = (open: () => NodeSocket) => new Promise<void>((resolve) => open().on('close', () => resolve()));
  const url = `${liar.url.replace('http', 'ws')}/v1/events`;
  const open = (quietMillis = 100) => new NodeSocket(url, ['svc.node-events.v1'], quietMillis);
  // Reads nothing, so it answers no ping; a peer that does answer is kept.
  liar.lie = { socket: (socket) => socket.pause() };
  await closed(() => open());
  liar.lie = { upgrade: (_request, socket) => void socket.write('HTTP/1.1 101 Swi') };
  await closed(() => open());
  liar.lie = { socket: () => undefined };
  const kept = open(2_000);
  let answers = 0;
  kept.on('pong', () => answers++);
  await expect.poll(() => answers).toBeGreaterThanOrEqual(2);
  expect(kept.readyState).toBe(kept.OPEN);
  kept.terminate();
});

test.each([
  ['pings', (socket: WebSocket) => socket.ping(Buffer.alloc(125))],
  ['pongs', (socket: WebSocket) => socket.pong()],
  ['empty messages', (socket: WebSocket) => socket.send('')],
])('%s without end are not listened to without end', async (_, strike) => {
  const { liar } = await startMiningBed();
  liar.lie = {
    socket: (socket) => {
      socket.pause();
      const flood = (): void => {
        if (socket.readyState !== socket.OPEN) return;
        for (let i = 0; i < 200; i++) strike(socket);
        setImmediate(flood);
      };
      flood();
    },
  };
  const socket = new NodeSocket(`${liar.url.replace('http', 'ws')}/v1/events`, ['svc.node-events.v1']);
  let most = 0;
  const see = (): void => {
    most = Math.max(most, socket.bufferedAmount);
  };
  socket.on('ping', see).on('pong', see).on('message', see);
  await new Promise<void>((resolve) => socket.on('close', () => resolve()));
  expect(most).toBeLessThan(128 * 1024);
});
