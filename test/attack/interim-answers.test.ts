/** Whom programs ask by HTTP may answer without end: in interim answers, headers, a body, or a byte at a time. It costs a bounded number of bytes, and the time of the call. */
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { publicPool } from '../../pool/audit/public-reads.ts';
import { createWalletClient } from '../../pool/payout/wallet-client.ts';
import { plainFetch } from '../../runtime/node-client/http-fetch.ts';
import { temporaryDirectory } from '../temporary.ts';

const BEGINS = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
const big = 'x'.repeat(60_000);
const ENDLESS = {
  'interim answers': ['', 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n'.repeat(1_000)],
  headers: ['HTTP/1.1 200 OK\r\n', `x: ${'y'.repeat(1_000)}\r\n`.repeat(10)],
  'a body': [BEGINS, `${big.length.toString(16)}\r\n${big}\r\n`],
  'a packed body': [
    BEGINS.replace('\r\n\r\n', '\r\ncontent-encoding: gzip\r\n\r\n'),
    `${big.length.toString(16)}\r\n${big}\r\n`,
  ],
  'chunks of a byte': [BEGINS, '1\r\nx\r\n'.repeat(5_000)],
} as const;
/** More than the largest answer that is read, and what is under way in buffers of the system. */
const MOST_BYTES = 32 * 1024 * 1024;

/** A server that goes on as long as it is heard: resolves with the bytes it was rid of when the client left. */
async function endless([first, again]: readonly [string, string], everyMillis = 0) {
  const left = Promise.withResolvers<number>();
  const server = createServer((socket) => {
    let sent = first.length;
    // A write inside the callback of one that failed fails at once, and calls it again.
    const more = (error?: Error | null): void => {
      if (error != null || socket.destroyed) return;
      sent += again.length;
      socket.write(again, everyMillis === 0 ? more : (error) => setTimeout(more, everyMillis, error));
    };
    socket.on('error', () => undefined).on('close', () => left.resolve(sent));
    socket.once('data', () => socket.write(first, more));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, left: left.promise };
}

/** Far more time than any of these needs: none of them may end by it. */
const LONG_MILLIS = 600_000;

function walletAt(url: string, timeoutMillis: number) {
  const tokenFile = join(temporaryDirectory(), 'token');
  writeFileSync(tokenFile, 'secret', { mode: 0o600 });
  return createWalletClient({ url, tokenFile, timeoutMillis });
}

const CALLERS: Readonly<Record<string, (url: string, timeoutMillis: number) => Promise<unknown>>> = {
  'any program': async (url, timeoutMillis) =>
    (await plainFetch(url, { method: 'GET', headers: {}, signal: AbortSignal.timeout(timeoutMillis) })).arrayBuffer(),
  'the public audit': (url, answerMillis) =>
    publicPool(url, { answerMillis, totalMillis: LONG_MILLIS, waitMillis: 1 })('terms'),
  'the payouts of a pool': async (url, timeoutMillis) => {
    const answer = await walletAt(url, timeoutMillis).status();
    if (answer.kind !== 'ok') throw new Error(answer.reason);
  },
};

const cases = Object.keys(CALLERS).flatMap((who) => Object.keys(ENDLESS).map((what) => [who, what] as const));

test.each(cases)('%s leaves who sends %s without end, long before its time is over', async (who, what) => {
  const { url, left } = await endless(ENDLESS[what as keyof typeof ENDLESS]);
  await expect(CALLERS[who]?.(url, LONG_MILLIS)).rejects.toThrow();
  expect(await left).toBeLessThan(MOST_BYTES);
});

test.each(Object.keys(CALLERS))('%s leaves who sends a byte now and then when its time is over', async (who) => {
  const { url, left } = await endless([BEGINS, '1\r\nx\r\n'], 20);
  await expect(CALLERS[who]?.(url, 300)).rejects.toThrow();
  expect(await left).toBeLessThan(10_000);
});
