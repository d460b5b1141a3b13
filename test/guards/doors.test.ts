/**
 * One listener for all HTTP and WebSocket doors (runtime/door/): nobody else opens one, takes an upgrade, or leaves a socket
 * half closed. The few places that may are named here, each with its reason; a reason that is needed no more is found too.
 */
import { expect, test } from 'vitest';
import { FILES, isCode, read, SOURCES, topFolder, withoutComments } from './project-files.ts';

type Rule = { readonly pattern: RegExp; readonly exceptions?: Readonly<Record<string, string>> };

const RULES: Readonly<Record<string, Rule>> = {
  'node:http is used for its types only': {
    pattern: /^import (?!type\b)[^;]*?\bfrom 'node:(?:http|https|http2)'/gm,
    exceptions: {
      'runtime/node-client/http-fetch.ts': 'a client: it accepts no connections',
      'pool/webhooks/webhook-target.ts': 'a client: it accepts no connections',
    },
  },
  'no other server is opened': {
    pattern: /\bcreate(?:Secure|Tls|Http|Net)?Server\(/g,
    exceptions: {
      'bridge/connection/listener.ts': 'stratum over TLS is not HTTP; it destroys what it refuses',
      'bridge/connection/tcp-server.ts': 'stratum over TCP is not HTTP; the listener destroys what it refuses',
      'node/reports/control-socket.ts': 'a socket of the own user in the data directory; nothing that is sent is read',
      'node/consensus/reach/overlay-listeners.ts':
        'frames between validators are not HTTP; a socket that is refused is destroyed',
      'runtime/doctor/machine.ts': 'looks whether a port is free and serves nobody',
      'runtime/free-port.ts': 'holds a port for a moment and serves nobody',
    },
  },
  'no upgrade and no broken request is handled': {
    pattern: /\.(?:on|once|addListener|prependListener)\(\s*'(?:upgrade|clientError|checkContinue)'/g,
    exceptions: { 'miner/client/transport-node.ts': 'a client: its own connection to a pool is upgraded' },
  },
  'no other WebSocket server is made': { pattern: /\bWebSocketServer\b/g },
  'no socket is ended without being destroyed': {
    pattern: /socket\.end\(|\ballowHalfOpen\b/gi,
    exceptions: {
      'bridge/connection/peers.ts': 'the goodbye of a conversation; the desk destroys the socket after three seconds',
    },
  },
  'no text becomes a URL unchecked': {
    pattern: /^(?!.*URL\.canParse).*\bnew URL\((?!['"`]\.|[^()]*import\.meta)/gm,
    exceptions: {
      'pool/start/open-shared.ts': 'an option of the operator, read before anything listens',
      'pool/database/migrate.ts': 'the name of a file of this project',
    },
  },
};

const guarded = [...SOURCES, ...FILES.filter((path) => topFolder(path) === 'stack' && isCode(path))].filter(
  // The page serves nobody.
  (path) => !path.startsWith('runtime/door/') && topFolder(path) !== 'dashboard',
);

test.each(Object.entries(RULES))('%s', (_name, { pattern, exceptions = {} }) => {
  const found = guarded.filter((path) => withoutComments(read(path)).match(pattern) !== null);
  expect(found.filter((path) => !(path in exceptions))).toEqual([]);
  // An exception that nobody needs any more would let the next one through.
  expect(Object.keys(exceptions).filter((path) => !found.includes(path))).toEqual([]);
});

test('the rules find what they are for', () => {
  const wrong: Readonly<Record<string, string>> = {
    'node:http is used for its types only': "import { createServer, type Server } from 'node:http';",
    'no other server is opened': 'const server = createServer((socket) => serve(socket));',
    'no upgrade and no broken request is handled': "server.on('upgrade', (request) => {});",
    'no other WebSocket server is made': 'new WebSocketServer({ noServer: true })',
    'no socket is ended without being destroyed': "this.#socket.end('HTTP/1.1 404')",
    'no text becomes a URL unchecked': "const url = new URL(request.url ?? '/', 'http://localhost');",
  };
  for (const [name, { pattern }] of Object.entries(RULES)) expect(wrong[name]?.match(pattern), name).not.toBeNull();
});
