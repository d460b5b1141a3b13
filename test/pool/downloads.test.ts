/** Files that the pool hands out: with their checksums, from any byte on, few at a time. */
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { request as ask, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Downloads } from '../../pool/api/public/downloads.ts';
import { WEB_LIMITS } from '../../pool/api/web.ts';
import { temporaryDirectory } from '../temporary.ts';
import { webBed } from './web-bed.ts';

const NAME = 'svc-miner-1.0.0-linux-x64.tar.gz';
// More than the kernel takes for a client that does not read.
const CONTENTS = Buffer.alloc(24 * 1024 * 1024, 'miner');
const FEW = CONTENTS.subarray(0, 100_000);

async function pool(contents = FEW): Promise<{ url: string; directory: string; downloads: Downloads }> {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, NAME), contents);
  writeFileSync(join(directory, '.secret'), 'not served');
  writeFileSync(join(directory, 'with space'), 'not served');
  const downloads = await Downloads.open(directory);
  onTestFinished(() => downloads.close());
  // On a busy machine who does not read would be ended meanwhile, and its places be free.
  const limits = { ...WEB_LIMITS, stallMillis: Number.POSITIVE_INFINITY, answerMillis: Number.POSITIVE_INFINITY };
  const port = await webBed([], { live: () => undefined, downloads }, { limits });
  return { url: `http://127.0.0.1:${port}/downloads/`, directory, downloads };
}

/** A download that begins, and of which nothing is read. */
const unread = (url: string) =>
  new Promise<IncomingMessage>((answered, failed) => {
    ask(url + NAME, { agent: false }, answered)
      .on('error', failed)
      .end();
  });

test('a file is served whole with the checksum that was told, also after the file was removed', async () => {
  const { url, directory, downloads } = await pool();
  expect(downloads.list).toEqual([{ name: NAME, bytes: FEW.length, sha256: hash('sha256', FEW, 'hex') }]);
  rmSync(join(directory, NAME));
  const answer = await fetch(url + NAME);
  expect(answer.headers.get('content-length')).toBe(String(FEW.length));
  expect(Buffer.from(await answer.arrayBuffer()).equals(FEW)).toBe(true);
});

test('a download that broke off goes on where it was, unless the file is another one', async () => {
  const { url, downloads } = await pool();
  const etag = `"${downloads.list[0]?.sha256}"`;
  const from = async (range: string, ifRange = etag) => fetch(url + NAME, { headers: { range, 'if-range': ifRange } });
  const rest = await from(`bytes=${FEW.length - 3}-`);
  expect([rest.status, rest.headers.get('content-range'), await rest.text()]).toEqual([
    206,
    `bytes ${FEW.length - 3}-${FEW.length - 1}/${FEW.length}`,
    FEW.subarray(-3).toString(),
  ]);
  expect((await from(`bytes=${FEW.length}-`)).status).toBe(416);
  for (const range of ['bytes=0-0,2-3', 'bytes=-5', 'bytes=5-2', 'pages=1-']) {
    const whole = await fetch(url + NAME, { method: 'HEAD', headers: { range } });
    expect([range, whole.status, whole.headers.get('content-length')]).toEqual([range, 200, String(FEW.length)]);
  }
  const other = await fetch(url + NAME, { method: 'HEAD', headers: { range: 'bytes=5-', 'if-range': '"other"' } });
  expect(other.status).toBe(200);
});

test('a file that is written over in its place is not served under the checksum of before, nor the end of one under way', async () => {
  const { url, directory } = await pool(CONTENTS);
  const under = await unread(url);
  writeFileSync(join(directory, NAME), Buffer.alloc(CONTENTS.length, 'other'));
  expect((await fetch(url + NAME)).status).toBe(503);
  let bytes = 0;
  under.on('data', (piece: Buffer) => {
    bytes += piece.length;
  });
  // It breaks off with an error.
  await once(under, 'close').catch(() => undefined);
  expect(bytes).toBeLessThan(CONTENTS.length);
});

test('nothing outside of the list is served', async () => {
  const { url } = await pool();
  for (const name of ['.secret', 'with%20space', '..%2f..%2fetc%2fpasswd', '%2e%2e/', 'absent.gz', '__proto__'])
    expect([name, (await fetch(url + name, { redirect: 'manual' })).status]).toEqual([name, 404]);
});

test('a client that does not read has four downloads at a time, and gets its places back', async () => {
  const { url } = await pool(CONTENTS);
  const answers = [await unread(url), await unread(url), await unread(url), await unread(url)];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200]);
  const fifth = await fetch(url + NAME);
  expect([fifth.status, fifth.headers.get('retry-after')]).toEqual([429, '1']);
  for (const answer of answers) answer.destroy();
  await expect.poll(async () => (await fetch(url + NAME)).status).toBe(200);
});

test('downloads that one connection asks for at once count one by one, also after the first has ended', async () => {
  const { url, downloads } = await pool(CONTENTS);
  const begun = vi.spyOn(downloads, 'read');
  const { port, pathname } = new URL(url);
  const get = (range: string) => `GET ${pathname}${NAME} HTTP/1.1\r\nhost: x\r\n${range}\r\n`;
  const socket = connect(Number(port), '127.0.0.1');
  const held: IncomingMessage[] = [];
  onTestFinished(() => {
    socket.destroy();
    for (const answer of held) answer.destroy();
  });
  socket.write(get(`range: bytes=${CONTENTS.length - 1}-\r\n`) + get('') + get(''));
  // The first answer is one byte; then nothing is read any more.
  await once(socket, 'data');
  socket.pause();
  await expect.poll(() => begun.mock.calls.length).toBe(3);
  const hold = async () => {
    const answer = await unread(url);
    held.push(answer);
    return answer.statusCode;
  };
  // Two of the four places are left, once that of the first download is free.
  expect(await hold()).toBe(200);
  await expect.poll(hold).toBe(200);
  expect(await hold()).toBe(429);
});

test('a folder that cannot be read is refused with its name', async () => {
  await expect(Downloads.open('/nonexistent/folder')).rejects.toMatchObject({ code: 'downloads' });
});
