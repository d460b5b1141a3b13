/**
 * Frames that cost a client nothing: pings that it does not read the answers of, pongs that nobody asked for, messages in pieces of one byte. They
 * are answered or kept only in small numbers; a connection that sends more is ended, at every door with WebSockets.
 */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DoorName, Doors, type Figures, UPGRADES } from './doors-fixture.ts';
import { dial, type RawClient } from './raw-client.ts';

let doors: Doors;
beforeAll(async () => {
  doors = await Doors.open();
});
afterAll(() => doors.close());

const LIVE = UPGRADES.api?.replace('/v1/events', '/v1/ws').replace('svc.node-events.v1', 'svc.node-api.v1') as string;
const DOORS: readonly (readonly [string, DoorName, string])[] = [
  ...Object.entries(UPGRADES).map(([name, text]) => [name, name as DoorName, text] as const),
  ['api, live', 'api', LIVE],
];
const MEBIBYTE = 1 << 20;

/** A frame of a client, with a mask of zeros. `first` is its first byte. */
const frame = (first: number, payload: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([first, 0x80 | payload.length, 0, 0, 0, 0]), payload]);

async function opened(door: DoorName, upgrade: string): Promise<RawClient> {
  const client = await dial(doors.ports[door], upgrade);
  await client.answered;
  expect(client.text).toMatch(/^HTTP\/1\.1 101 /);
  return client;
}

/** Writes until the other side has ended the connection, or all is written. */
async function flood({ socket, gone }: RawClient, bytes: Buffer, times: number): Promise<'ended' | 'taken'> {
  for (let i = 0; i < times; i++) {
    if (socket.destroyed) return 'ended';
    if (!socket.write(bytes)) await Promise.race([once(socket, 'drain').catch(() => undefined), gone]);
  }
  return socket.destroyed ? 'ended' : 'taken';
}

test.each(DOORS)(
  '%s: pings that are never read the answers of end the connection and leave nothing',
  async (_, door, upgrade) => {
    const before = await doors.figures(true);
    const client = await opened(door, upgrade);
    client.socket.pause();
    const pings = Buffer.concat(Array.from({ length: 500 }, () => frame(0x89, new Uint8Array(125))));
    expect(await flood(client, pings, 600)).toBe('ended');
    // The door is rid of the connection some time after the client noticed that it ended.
    const faults: Figures[] = [];
    const more = async () => {
      const after = await doors.figures(true);
      if (after.errors.length > 0 || after.faults > 0) faults.push(after);
      return after.heap - before.heap;
    };
    await expect.poll(more, { interval: 200 }).toBeLessThan(8 * MEBIBYTE);
    expect(faults).toEqual([]);
  },
);

test.each(DOORS)('%s: pongs that nobody asked for end the connection', async (_, door, upgrade) => {
  const client = await opened(door, upgrade);
  expect(
    await flood(client, Buffer.concat(Array.from({ length: 5_000 }, () => frame(0x8a, new Uint8Array(0)))), 600),
  ).toBe('ended');
});

test.each(DOORS)('%s: a message in pieces of one byte ends the connection', async (_, door, upgrade) => {
  const client = await opened(door, upgrade);
  client.socket.write(frame(0x01, Buffer.from('{')));
  client.socket.write(Buffer.concat(Array.from({ length: 900 }, () => frame(0x00, Buffer.from(' ')))));
  await client.ended;
  // 1008, the policy of this door, and not the end of a client that answers no pings.
  expect(client.text).toContain('\x88\x02\x03\xf0');
});

test.each(DOORS)('%s: a ping now and then is answered', async (_, door, upgrade) => {
  const client = await opened(door, upgrade);
  client.socket.write(frame(0x89, Buffer.from('are you there')));
  await expect.poll(() => client.text.includes('\x8a\x0dare you there')).toBe(true);
  client.socket.destroy();
});

/** Each of them ends the connection with a close frame of this code (RFC 6455, 5). */
const BROKEN: readonly (readonly [string, Buffer, number])[] = [
  ['a ping of 126 bytes', Buffer.concat([Buffer.from([0x89, 0xfe, 0, 126, 0, 0, 0, 0]), Buffer.alloc(126)]), 1002],
  ['a ping in pieces', frame(0x09, Buffer.from('a')), 1002],
  ['a frame without a mask', Buffer.from([0x81, 1, 0x20]), 1002],
  ['a compressed frame', frame(0xc1, Buffer.from('a')), 1002],
  ['a kind of frame that there is none of', frame(0x83, Buffer.from('a')), 1002],
  ['a continuation of nothing', frame(0x80, Buffer.from('a')), 1002],
  ['a length of 2^63', Buffer.from([0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 1009],
  ['a length of 2^40', Buffer.from([0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 1009],
  ['a close with a code that nobody may send', frame(0x88, Buffer.from([0x03, 0xed])), 1002],
  ['text that is not UTF-8', frame(0x81, Buffer.from([0xff])), 1007],
];

test.each(DOORS)('%s: broken frames end with their code; compression is not agreed to', async (_, door, upgrade) => {
  for (const [name, bytes, code] of BROKEN) {
    const offer = upgrade.replace(
      '\r\n\r\n',
      '\r\nsec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n\r\n',
    );
    const client = await opened(door, offer);
    expect(client.text.toLowerCase()).not.toContain('sec-websocket-extensions');
    client.socket.write(bytes);
    await client.ended;
    const close = Buffer.from(client.text, 'latin1');
    const at = close.lastIndexOf(Buffer.from([0x88]));
    expect(close.readUInt16BE(at + 2), name).toBe(code);
    client.socket.destroy();
  }
  await doors.expectServed();
  expect(await doors.figures()).toMatchObject({ errors: [], faults: 0 });
});
