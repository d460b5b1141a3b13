/** The README of each folder names its rooms and where to start reading (docs/architecture.md, Rooms). */
import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { FILES, read } from './project-files.ts';

const FOLDERS = [
  'protocol',
  'runtime',
  'kernels',
  'node',
  'wallet',
  'bridge',
  'pool',
  'miner',
  'proxy',
  'dashboard',
  'stack',
  'scripts',
];

/** Rooms that are fuller than others. Each has one idea that its files share. */
const FULL: Record<string, number> = {
  'bridge/connection': 23,
  'bridge/session': 25,
  'dashboard/view': 22,
  'kernels/gpu': 24,
  'miner/client': 23,
  'node/api': 25,
  'pool/audit': 28,
  'pool/books': 22,
  'pool/database/migrations': Number.POSITIVE_INFINITY,
  'protocol/api': 21,
};

const ROW = /^\| (?:\(here\)|\[`([^`]+)\/`\]\(\1\/\)) \| [^|]+ \| \[`[^`]+`\]\(([^)]+)\) \|$/gm;

const contents = (room: string): string[] =>
  FILES.filter((path) => posix.dirname(path) === room && !path.endsWith('/README.md'));

const rowsOf = (folder: string): { room: string; start: string }[] =>
  [...read(`${folder}/README.md`).matchAll(ROW)].map(([, room, start = '']) => ({
    room: room === undefined ? folder : `${folder}/${room}`,
    start: `${folder}/${start}`,
  }));

test('every room has a row, and every row names a room and a file in it', () => {
  for (const folder of FOLDERS) {
    const rooms = new Set(
      FILES.filter((path) => path.startsWith(`${folder}/`) && !path.endsWith('/README.md')).map(posix.dirname),
    );
    const rows = rowsOf(folder);
    expect(rows.map(({ room }) => room).sort(), folder).toEqual([...rooms].sort());
    for (const { room, start } of rows) {
      expect(FILES, `${folder}/README.md`).toContain(start);
      expect(posix.dirname(start)).toBe(room);
    }
  }
});

test('a room holds at most 18 files, or is named as a full one with as many as it has', () => {
  const rooms = FOLDERS.flatMap((folder) => rowsOf(folder).map(({ room }) => room));
  const crowded = rooms.filter((room) => contents(room).length > (FULL[room] ?? 18));
  expect(crowded).toEqual([]);
  const roomier = Object.keys(FULL).filter((room) => contents(room).length <= 18);
  expect(roomier).toEqual([]);
});
