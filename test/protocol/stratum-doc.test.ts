/**
 * docs/protocol/stratum.md against the code: its examples are the vectors', its error table is the code's, its constants
 * hold, and its minimal miner mines against a server made of the functions of protocol/stratum.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { parseAddress } from '../../protocol/address.ts';
import { type Bytes, concat, utf8 } from '../../protocol/bytes.ts';
import { NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { targetFromBytes } from '../../protocol/ledger/target.ts';
import { errorReply, STRATUM_ERRORS } from '../../protocol/stratum/errors.ts';
import { MAX_PAYLOAD_BYTES } from '../../protocol/stratum/frame.ts';
import { MAX_DEPTH, MAX_VALUES } from '../../protocol/stratum/json.ts';
import { LineSplitter, MAX_LINE_BYTES } from '../../protocol/stratum/line.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { hasPrefix } from '../../protocol/stratum/nonce.ts';
import { parseUsername } from '../../protocol/stratum/username.ts';
import { encodeError, encodeNotification, encodeResult } from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, type Request } from '../../protocol/stratum/v1-request.ts';
import { FRAME_TYPES } from '../../protocol/stratum/v2.ts';
import { powHash } from '../pow-hash.ts';
import { temporaryDirectory } from '../temporary.ts';
import { v1, v2 } from './stratum-vectors.ts';

const text = readFileSync(new URL('../../docs/protocol/stratum.md', import.meta.url), 'utf8');

function blocks(kind: string): string[] {
  const found = text.matchAll(new RegExp(`^ *\`\`\`${kind}\n([\\s\\S]*?)^ *\`\`\`$`, 'gm'));
  return [...found].map((match) => match[1] as string);
}

const exampleLines = (kind: string): string[] =>
  blocks(kind).flatMap((block) =>
    block
      .trimEnd()
      .split('\n')
      .map((line) => line.trim()),
  );

test('every example is a vector, and every message has its example', () => {
  const texts = [...v1.toServer, ...v1.toMiner];
  const frames = [...v2.toServer, ...v2.toMiner];
  const jsonLines = exampleLines('json');
  const hexLines = exampleLines('hex');
  for (const line of jsonLines) expect(texts.map((entry) => entry.text)).toContain(line);
  for (const line of hexLines) expect(frames.map((entry) => entry.hex)).toContain(line);
  for (const { name, text: wanted } of texts) if (!name.startsWith('error')) expect(jsonLines).toContain(wanted);
  for (const { name, hex } of frames) if (!name.startsWith('error')) expect(hexLines).toContain(hex);
});

test('the error table is the one of the code', () => {
  const rows = [...text.matchAll(/^ *\| (-?\d+) \| (\d+) \| `(\w+)` \| (.+) \| (kept|closed) \| (.+) \|$/gm)].map(
    ([, code, byte, name, meaning, connection, scored]) => ({
      code: Number(code),
      byte: Number(byte),
      name,
      meaning,
      connection,
      scored: scored === 'own excess only' ? 'excess' : scored,
    }),
  );
  expect(rows).toEqual(STRATUM_ERRORS);
});

test('the frame types and limits are those of the code', () => {
  for (const [name, type] of Object.entries(FRAME_TYPES)) {
    const hex = `0x${type.toString(16).padStart(2, '0')}`;
    expect(text, `${name} ${hex}`).toMatch(new RegExp(`^\\| [0-9a-fx, ]*${hex}[0-9a-fx, ]* \\| [a-z, ]*${name}`, 'm'));
  }
  const prose = text.replaceAll(/\s+/g, ' ');
  expect(prose).toContain(`at most ${MAX_LINE_BYTES.toLocaleString('en')} bytes with it`);
  expect(prose).toContain(`at most ${MAX_PAYLOAD_BYTES.toLocaleString('en')} bytes`);
  expect(prose).toContain(`nesting deeper than ${MAX_DEPTH}, more than ${MAX_VALUES} values`);
});

test('rules are numbered upwards and each number occurs once', () => {
  const numbers = [...text.matchAll(/^- \*\*S(\d+)\./gm)].map((match) => Number(match[1]));
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect(numbers.length).toBeGreaterThan(30);
  for (const [, named] of text.matchAll(/\bS(\d+)\b/g)) expect(numbers).toContain(Number(named));
  const folder = new URL('../../protocol/stratum/', import.meta.url);
  for (const file of readdirSync(folder))
    for (const [, named] of readFileSync(new URL(file, folder), 'utf8').matchAll(/\bS(\d+)\b/g))
      expect(numbers, file).toContain(Number(named));
});

type Mine = (options: {
  host: string;
  port: number;
  address: string;
  worker: string;
  wanted: number;
  pow: (network: number, epoch: number, header: Bytes) => Bytes;
  payloadOf: (address: string) => Bytes;
}) => Promise<bigint[]>;

const prefix = Uint8Array.of(0x0a, 0x01);

/** A server of one job, as small as the rules allow. */
function answer(request: Request, job: Job, pow: (nonce: Bytes) => bigint): string[] {
  switch (request.method) {
    case 'mining.subscribe': {
      const result = { session: '00'.repeat(16), noncePrefix: prefix, network: 4, server: 'test', pool: null };
      return [encodeResult(request.id, { method: request.method, result })];
    }
    case 'mining.authorize': {
      const { text: address, worker } = parseUsername(request.params.username, 'development');
      const result = encodeResult(request.id, { method: request.method, result: { address, worker } });
      return [result, encodeNotification({ method: 'mining.notify', params: job })];
    }
    case 'mining.submit': {
      const { jobId, nonce } = request.params;
      if (jobId !== job.jobId) return [encodeError(request.id, errorReply(21))];
      if (!hasPrefix(nonce, prefix)) return [encodeError(request.id, errorReply(26))];
      if (pow(nonce) > job.shareTarget) return [encodeError(request.id, errorReply(23))];
      return [encodeResult(request.id, { method: request.method, result: { work: 16n, blockId: null } })];
    }
    default:
      return [encodeError(request.id, errorReply(20))];
  }
}

async function withServer(
  job: Job,
  pow: (nonce: Bytes) => bigint,
  use: (port: number) => Promise<void>,
): Promise<void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const lines = new LineSplitter();
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) =>
      lines.push(chunk, (line) => {
        const request = decodeRequest(line);
        if (request.kind === 'invalid') throw new Error(request.reason);
        socket.write(utf8(`${answer(request, job, pow).join('\n')}\n`));
        return true;
      }),
    );
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const bound = server.address();
  try {
    if (bound === null || typeof bound === 'string') throw new Error('no port');
    await use(bound.port);
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((closed) => server.close(closed));
  }
}

test('the minimal miner mines, and refuses a job that pays somebody else', async () => {
  const file = join(temporaryDirectory(), 'minimal.mjs');
  writeFileSync(file, blocks('js')[0] as string);
  const { mine } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as { mine: Mine };
  const sample = v2.toMiner.find(({ name }) => name === 'job of a bridge')!.value;
  const granted = v2.toMiner.find(({ name }) => name === 'authorized')!.value;
  if (sample.type !== 'job' || granted.type !== 'authorized') throw new Error('not the vectors expected');
  const { job } = sample;
  const hash = (header: Bytes) => powHash(0, Uint8Array.from(header));
  const judge = (nonce: Bytes) => targetFromBytes(hash(concat(job.header.subarray(0, NONCE_OFFSET), nonce)));
  const options = {
    host: '127.0.0.1',
    address: granted.authorized.address,
    worker: 'minimal',
    wanted: 2,
    pow: (_network: number, _epoch: number, header: Bytes) => hash(header),
    payloadOf: (address: string) => parseAddress(address).payload,
  };
  await withServer(job, judge, async (port) => {
    expect(await mine({ ...options, port })).toEqual([16n, 16n]);
  });
  const stolen = { ...job, extranonce: concat(job.extranonce, Uint8Array.of(0)) };
  await withServer(stolen, judge, async (port) => {
    await expect(mine({ ...options, port })).rejects.toThrow('job refused');
  });
});
