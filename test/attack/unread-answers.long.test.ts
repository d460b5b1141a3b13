/** What a proxy or a stranger puts in the place of a pool's answers is unread for the public audit, and never a lie of the pool (books rule 30). */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { auditPublic } from '../../pool/audit/public.ts';
import { publicPool } from '../../pool/audit/public-reads.ts';
import { formatAddress } from '../../protocol/address.ts';
import { isUnread } from '../../protocol/books/pool-silence.ts';
import { account } from '../pool/books-bed.ts';

const ADDRESS = formatAddress(account('pool'), 'development');
const FROM = { from_slice: 0, slice_cuts: 10, window_thousandths: 8000, fee_ppm: 10_000 };
const TERMS = { network: 'development', address: ADDRESS, height: 0, terms: { pplns: [FROM], solo: [FROM] } };
const EMPTY = { payments: [], commitments: [], slices: [] };
const LIMITS = { answerMillis: 600_000, totalMillis: 600_000, waitMillis: 1 };
/** A ledger on which nothing has happened: an honest pool that has nothing holds. */
const NODE = { addressChanges: async () => ({ changes: [], indexed_height: 0 }) } as never;

/** An honest pool, of which a part is answered by somebody else. */
async function served(part: string, status: number, body: string) {
  const server = createServer((request, response) => {
    const path = (request.url ?? '').replace('/api/v1/', '');
    const isOther = path.startsWith(part);
    // Without a length: a body that is cut short ends like a whole one.
    response.useChunkedEncodingByDefault = false;
    response.writeHead(isOther ? status : 200, { connection: 'close' });
    response.end(isOther ? body : JSON.stringify(path === 'terms' ? TERMS : EMPTY));
  });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return publicPool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, LIMITS);
}

test.each([
  ['no content', 204, ''],
  ['a part of the content', 206, JSON.stringify({ payments: [] })],
  ['a refusal of a filter in between', 403, '<html>Forbidden</html>'],
  ['nothing at that place', 404, '{}'],
  ['a request that came too slowly', 408, ''],
  ['a page of a filter in between', 200, '<html>Are you a robot?</html>'],
  ['a body that is cut short', 200, JSON.stringify(EMPTY).slice(0, 20)],
])('%s is unread: an audit says that a part could not be checked', async (_, status, body) => {
  const pool = await served('payments', status, body);
  await pool('terms');
  expect(isUnread(await pool('payments').catch((error: unknown) => error))).toBe(true);
  const { verdict, findings } = await auditPublic({ pool, node: NODE });
  expect([verdict, findings]).toEqual(['unchecked', []]);
});
