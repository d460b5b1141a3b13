/** /v1/events: checkpoint, one frame per cut, replay of an hour, resync; and a client that loses nothing whatever happens. */
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { checkpoint, cutFinalized } from '../../protocol/api/frames.ts';
import { SOCKETS } from '../../protocol/api/routes.ts';
import { check } from '../../protocol/api/schema.ts';
import { ApiBed } from './api-bed.ts';

const { path, subprotocol } = SOCKETS.events;
const heightOf = (frame: { data: Record<string, unknown> }): number => (frame.data.cut as { height: number }).height;

test('a new stream starts with the head and then has every cut once', async () => {
  const bed = await ApiBed.forTest();
  await bed.bed.seal(3);
  const socket = bed.socket(path, subprotocol);
  const first = await socket.next();
  expect(first.type).toBe('checkpoint');
  expect(check(checkpoint, first.data)).toBeUndefined();
  expect(heightOf(first)).toBe(3);
  await bed.bed.seal(5);
  for (let height = 4; height <= 8; height++) {
    const frame = await socket.next();
    expect(frame.type).toBe('cut_finalized');
    expect(check(cutFinalized, frame.data)).toBeUndefined();
    expect(heightOf(frame)).toBe(height);
  }
});

test('after_height replays what came after it, also after a restart of the node', async () => {
  const bed = await ApiBed.forTest();
  await bed.bed.seal(20);
  const heights = async (after: number, count: number): Promise<number[]> => {
    const socket = bed.socket(`${path}?after_height=${after}`, subprotocol);
    expect((await socket.next()).type).toBe('checkpoint');
    const found: number[] = [];
    while (found.length < count) found.push(heightOf(await socket.next()));
    socket.ws.close();
    return found;
  };
  const expected = [13, 14, 15, 16, 17, 18, 19, 20];
  expect(await heights(12, 8)).toEqual(expected);
  await bed.restart();
  expect(await heights(12, 8)).toEqual(expected);
  expect(await heights(20, 0)).toEqual([]);
});

test('a height older than an hour, or above the head, is history_unavailable and closes', async () => {
  const bed = await ApiBed.forTest();
  await bed.bed.seal(4);
  bed.bed.now += 3_600_000;
  await bed.bed.seal(2);
  for (const after of [1, 3, 99]) {
    const socket = bed.socket(`${path}?after_height=${after}`, subprotocol);
    const frame = await socket.next();
    expect(frame).toEqual({ type: 'resync_required', data: { reason: 'history_unavailable' } });
    expect((await socket.closed).code).toBe(1000);
  }
  const socket = bed.socket(`${path}?after_height=4`, subprotocol);
  await socket.until('checkpoint');
  expect(heightOf(await socket.next())).toBe(5);
});

test('streams get a notice when the node behind them was restarted', async () => {
  const bed = await ApiBed.forTest();
  const socket = bed.socket(path, subprotocol);
  await socket.until('checkpoint');
  bed.api.serve(undefined);
  expect(await socket.next()).toEqual({ type: 'resync_required', data: { reason: 'stream_restarted' } });
  await socket.closed;
  const refused = await bed.socket(path, subprotocol).refused;
  expect(refused.status).toBe(503);
  expect(JSON.parse(refused.body)).toMatchObject({ error: { code: 'not_ready' }, retry_after_millis: 1_000 });
});

test('frames of a client end the connection: binary with 1003, text too, as this socket takes none', async () => {
  const bed = await ApiBed.forTest();
  for (const data of [Buffer.of(1, 2, 3), 'hello']) {
    const socket = bed.socket(path, subprotocol);
    await socket.until('checkpoint');
    socket.ws.send(data);
    expect((await socket.closed).code).toBe(1003);
  }
});

test('the subprotocol must be named', async () => {
  const bed = await ApiBed.forTest();
  const refused = await bed.socket(path, 'svc.node-api.v1').refused;
  expect(refused.status).toBe(400);
  expect(JSON.parse(refused.body).error.code).toBe('subprotocol_required');
  const good = bed.socket(path, subprotocol);
  await good.opened();
  expect(good.ws.protocol).toBe(subprotocol);
});

test('a reader that stops reading holds no more than its socket, and has every cut when it reads again', async () => {
  const bed = await ApiBed.forTest();
  const socket = bed.socket(path, subprotocol);
  await socket.until('checkpoint');
  (socket.ws as unknown as { _socket: { pause(): void; resume(): void } })._socket.pause();
  const before = process.memoryUsage().arrayBuffers;
  await bed.bed.seal(400);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
  (socket.ws as unknown as { _socket: { resume(): void } })._socket.resume();
  for (let height = 1; height <= 400; height++) expect(heightOf(await socket.next())).toBe(height);
});

test('sockets that never answer a ping are ended', async () => {
  const bed = await ApiBed.forTest({ api: { pingMillis: 50 } });
  const raw = connect(bed.api.address.port, '127.0.0.1');
  const ended = new Promise<void>((resolve) => raw.on('close', () => resolve()));
  raw.resume();
  raw.write(
    `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n` +
      `sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: ${subprotocol}\r\n\r\n`,
  );
  await ended;
  await expect.poll(() => bed.api.sockets()).toBe(0);
});
