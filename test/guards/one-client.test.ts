/** Programs ask others by one HTTP client, with bounds on all that an answer can be (runtime/node-client/http-fetch.ts); the global fetch has none. */
import { expect, test } from 'vitest';
import { FILES, isCode, read } from './project-files.ts';

/** Programs. Pages, and modules that pages load, have no other client than the browser's, which the browser bounds. */
const PROGRAMS = /^(bridge|kernels|miner|node|pool|protocol|proxy|runtime|stack|wallet)\//;
const OF_PAGES = [
  // Loads files beside it; in programs these are files of the disk.
  'kernels/cpu/module.ts',
  'kernels/gpu/sources.ts',
  'miner/browser/page-books.ts',
  // Programs take the transport of runtime/node-client/node-transport.ts, which replaces it.
  'runtime/node-client/api-client.ts',
];

/** A call of a fetch that is no method, in a file that gives the name to nothing else. */
const CALLS = /(?<![.#\w])fetch\(|\bglobalThis\.fetch\b|= fetch\b/;
const GIVEN = /\bconst \{[^}]*\bfetch\b[^}]*\} =|\(fetch: Fetch\b/;
const COMMENTS = /\/\*[\s\S]*?\*\/|\/\/.*/g;

test('only pages use the global fetch', () => {
  const users = FILES.filter((path) => PROGRAMS.test(path) && isCode(path)).filter((path) => {
    const code = read(path).replace(COMMENTS, '');
    return CALLS.test(code) && !GIVEN.test(code);
  });
  expect(users).toEqual(OF_PAGES);
});

test('no program takes the client of pages', () => {
  const takers = FILES.filter(
    (path) => PROGRAMS.test(path) && isCode(path) && /apiClientDependencies/.test(read(path)),
  );
  expect(takers).toEqual([
    // With a fetch that is handed in.
    'miner/books/pool-books.ts',
    'runtime/node-client/api-client.ts',
    'runtime/node-client/node-transport.ts',
  ]);
});
