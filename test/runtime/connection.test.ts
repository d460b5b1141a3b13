/** How long an answer may take. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Connection } from '../../runtime/door/connection.ts';
import { Opened } from '../../runtime/door/opened.ts';
import { Waiting } from '../../runtime/door/waiting.ts';

const TIMES = { headMillis: 10, answerMillis: 1_000, stallMillis: 100, idleMillis: 10_000, requestMillis: 10 };

let clock = 0;

function answering(socket: { writableLength: number; bytesWritten: number }): Connection {
  const lists = {
    all: new Set<Connection>(),
    waiting: new Waiting<Connection>(),
    opened: new Opened<Connection>(),
    now: () => clock,
  };
  clock = 0;
  const connection = new Connection(socket as unknown as Socket, 'client', false, lists);
  connection.begin();
  return connection;
}

function isOver(connection: Connection, millis: number): boolean {
  clock = millis;
  return connection.isOver(TIMES);
}

test('a client that reads piece by piece does not stall, although one piece always waits', () => {
  const socket = { writableLength: 65_536, bytesWritten: 65_536 };
  const connection = answering(socket);
  for (let now = 0; now < 900; now += 90) {
    socket.bytesWritten += 65_536;
    expect(isOver(connection, now)).toBe(false);
  }
});

test('a client that takes nothing is over after the time of a stall, also in a longer answer', () => {
  const connection = answering({ writableLength: 65_536, bytesWritten: 65_536 });
  connection.mayTakeLonger(60_000);
  expect(isOver(connection, 10)).toBe(false);
  expect(isOver(connection, 110)).toBe(false);
  expect(isOver(connection, 111)).toBe(true);
});

test('a longer answer has its time, and the next one on the same connection has not', () => {
  const connection = answering({ writableLength: 0, bytesWritten: 0 });
  expect(isOver(connection, 1_001)).toBe(true);
  connection.mayTakeLonger(500);
  expect([1_500, 1_501].map((now) => isOver(connection, now))).toEqual([false, true]);
  clock = 2_000;
  connection.done({} as ServerResponse);
  connection.begin();
  expect([3_000, 3_001].map((now) => isOver(connection, now))).toEqual([false, true]);
});
