/** A miner's webhook over the real API and books: set by a signature, filled by events of the database, sent to a real receiver. */
import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import type { NotificationsDocument } from '../../pool/api/documents.ts';
import { FIRST_TRIES, MinerWebhooks } from '../../pool/webhooks/miner-webhooks.ts';
import { queueNews, ROOM } from '../../pool/webhooks/news-queue.ts';
import { SIGNATURE_HEADER } from '../../pool/webhooks/notice-request.ts';
import { formatAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { type AddressProofRequest, addressProofMessage } from '../../protocol/transactions/address-proof.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { key, keyed, openPoolApiBed, type PoolApiBed } from './api-bed.ts';

let bed: PoolApiBed;
beforeAll(async () => {
  bed = await openPoolApiBed({ minerWebhooks: 'private' });
});
afterAll(() => bed.close());

const address = formatAddress(keyed, 'development');
const post = async (path: string, body: object) => {
  const response = await fetch(`http://127.0.0.1:${bed.web.address.port}/p/api/v1/miners/${address}/webhook${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as { secret: string } & AddressProofRequest };
};
const proofOf = (request: AddressProofRequest) => ({
  version: 1,
  address,
  challenge: request.challenge,
  public_key: toHex(rawPublicKey(key)),
  signature: toHex(signMessage(key, addressProofMessage(request))),
});
const signed = async (url: string, events?: readonly string[], channel?: string) => {
  const wish = { url, ...(events === undefined ? {} : { events }), ...(channel === undefined ? {} : { channel }) };
  const { body: request } = await post('/request', wish);
  return { ...wish, request, proof: proofOf(request) };
};
const state = async () => {
  const response = await fetch(`http://127.0.0.1:${bed.web.address.port}/p/api/v1/miners/${address}/notifications`);
  return ((await response.json()) as NotificationsDocument).webhook;
};

type Body = { id: number; kind: string; address: string; data: Record<string, unknown>; dropped: number };
type Got = { readonly body: Body; readonly text: string; readonly signature: string };

async function receiver(statusOf: (n: number) => number) {
  const got: Got[] = [];
  let n = 0;
  const server = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString();
    const status = statusOf(n++);
    if (status < 300) got.push({ body: JSON.parse(text), text, signature: String(request.headers[SIGNATURE_HEADER]) });
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { got, asked: () => n, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?rig=1` };
}

function sender(): void {
  const webhooks = new MinerWebhooks(
    { reach: 'private', pollMillis: 20, restMillis: 0, hostRestMillis: 0 },
    { sql: bed.books.sql, log: quietLog, now: Date.now, wall: Date.now },
  );
  onTestFinished(() => webhooks.close());
}

/** The sender begins with what happens after its first look: it has looked when its position is there. */
const looked = () =>
  until(async () => (await bed.books.sql`select 1 from settings where name = 'miner_news_through'`).length > 0);

test('the key of the address sets it; its own news come in order, signed, repeated after a failure', async () => {
  // The second request is refused: it comes again.
  const { got, url, asked } = await receiver((n) => (n === 1 ? 500 : 204));
  expect((await post('/request', { url: 'gopher://example.org/' })).status).toBe(400);
  const wish = await signed(url);
  expect(wish.request.purpose).toBe(`webhook ${url} at the pool "test pool"`);
  expect((await post('', { ...wish, url: `${url}0` })).status).toBe(403);
  const stranger = {
    ...wish.proof,
    signature: wish.proof.signature.replace(/^../, (start) => (start === '00' ? '01' : '00')),
  };
  expect((await post('', { ...wish, proof: stranger })).status).toBe(403);
  const { status, body } = await post('', wish);
  expect(status).toBe(200);
  expect(body.secret).toMatch(/^[0-9a-f]{64}$/);
  expect((await post('', wish)).status).toBe(409);
  sender();
  await looked();
  const tell = (kind: string, data: object) =>
    bed.books.sql`select tell(${kind}, ${bed.books.sql.json(data as never)})`;
  await tell('block_found', { block_id: 'ab', finder: 'somebody else', worker: 'x' });
  await tell('block_found', { block_id: 'cd', finder: address, worker: 'x' });
  const recipients = [
    { address: 'somebody else', amount: '7' },
    { address, amount: '5' },
  ];
  await tell('payout_final', { payout_id: 'p', transaction_id: 'ef', recipients });
  await tell('worker_silent', { address, worker: 'x', service: 'pplns' });
  await until(() => got.length >= 4);
  // Payments overtake blocks that wait, and both overtake workers.
  expect(got[0]?.body.kind).toBe('webhook_set');
  expect(got[3]?.body.kind).toBe('worker_silent');
  expect(asked()).toBe(5);
  const dataOf = (kind: string) => got.find(({ body }) => body.kind === kind)?.body;
  expect(dataOf('block_found')).toMatchObject({ address, data: { block_id: 'cd', worker: 'x' }, dropped: 0 });
  expect(dataOf('payout_final')?.data).toEqual({ payout_id: 'p', transaction_id: 'ef', amount: '5' });
  for (const { text, signature } of got) {
    const [, at, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) as RegExpExecArray;
    expect(mac).toBe(createHmac('sha256', body.secret).update(`${at}.${text}`).digest('hex'));
    expect(text).not.toContain('somebody else');
  }
  await until(async () => (await state()).state === 'working' && (await state()).last_success_millis !== null);
  // Other events than those that were signed.
  const chosen = await signed(url, ['payments']);
  expect((await post('', { ...chosen, events: ['blocks'] })).status).toBe(403);
});

test('a channel of Discord stands beside the webhook, with its own choice of news, and each ends alone', async () => {
  const hook = await receiver(() => 204);
  const chat = await receiver(() => 204);
  expect((await post('', await signed(hook.url))).status).toBe(200);
  const wish = await signed(chat.url, ['payments'], 'discord');
  expect(wish.request.purpose).toBe(`discord ${chat.url} at the pool "test pool"`);
  // A signature for one channel sets no other.
  expect((await post('', { ...wish, channel: 'webhook' })).status).toBe(403);
  expect(await post('', wish)).toMatchObject({ status: 200, body: { secret: null } });
  sender();
  const news = (kind: string, eventId: number) =>
    bed.books.sql.begin((transaction) =>
      queueNews(transaction, { eventId, address, kind, atMillis: Date.now(), data: { amount: '5' } }, Date.now()),
    );
  for (const [i, kind] of ['block_found', 'payout_sent', 'payout_final'].entries()) await news(kind, i + 1);
  await until(() => hook.got.length >= 4 && chat.got.length >= 2);
  expect(hook.got.map(({ body }) => body.kind).sort()).toEqual([
    'block_found',
    'payout_final',
    'payout_sent',
    'webhook_set',
  ]);
  // Of payments people are told once, and nothing that was not chosen.
  const told = chat.got.map(({ text }) => (JSON.parse(text) as { content: string }).content.replaceAll('\\', ''));
  expect(told[0]).toMatch(/^News of your miner will come here\./);
  expect(told[1]).toMatch(/^A payment of 0\.00000005 coins is final/);
  expect(chat.got[0]?.signature).toBe('undefined');
  expect((await post('', await signed('', undefined, 'discord'))).status).toBe(200);
  await news('payout_final', 4);
  await until(() => hook.got.length === 5);
  expect(chat.asked()).toBe(2);
  expect((await state()).state).toBe('working');
});

test('a queue is bounded and says what it dropped; taking the webhook away ends it and cannot be undone by an old request', async () => {
  const { got, url } = await receiver(() => 200);
  // Only what was chosen.
  expect((await post('', await signed(url, ['payments']))).status).toBe(200);
  await bed.books.sql.begin(async (transaction) => {
    for (const kind of ['block_found', 'payout_final', 'worker_back'])
      await queueNews(transaction, { eventId: 1, address, kind, atMillis: Date.now(), data: {} }, Date.now());
  });
  const kinds = await bed.books.sql<{ kind: string }[]>`select kind from miner_news order by id`;
  expect(kinds.map(({ kind }) => kind)).toEqual(['webhook_set', 'payout_final']);
  expect(await state()).toMatchObject({ state: 'waiting', last_success_millis: null });
  const wish = await signed(url);
  expect((await post('', wish)).status).toBe(200);
  await bed.books.sql.begin(async (transaction) => {
    for (let i = 1; i <= ROOM.blocks + 4; i++)
      await queueNews(
        transaction,
        { eventId: i, address, kind: 'block_found', atMillis: Date.now(), data: {} },
        Date.now(),
      );
  });
  const waiting = async () => (await bed.books.sql`select 1 from miner_news`).length;
  expect(await waiting()).toBe(ROOM.blocks + 1);
  sender();
  await until(() => got.length >= 2);
  expect(got[0]?.body).toMatchObject({ kind: 'webhook_set', dropped: 4 });
  expect(got[1]?.body).toMatchObject({ id: 1, dropped: 0 });
  const none = await signed('');
  expect(none.request.purpose).toBe('no webhook at the pool "test pool"');
  expect(await post('', none)).toMatchObject({ status: 200, body: { secret: null } });
  expect(await waiting()).toBe(0);
  expect((await post('', wish)).status).toBe(409);
});

test('payments go first, but no group of news waits for ever behind another', async () => {
  const { got, url } = await receiver(() => 200);
  expect((await post('', await signed(url))).status).toBe(200);
  const ages = [
    ['payout_final', 0],
    ['block_found', 5],
    ['worker_back', 15],
    ['block_found', 25],
    ['worker_silent', 60],
  ] as const;
  await bed.books.sql.begin(async (transaction) => {
    for (const [i, [kind, age]] of ages.entries()) {
      const atMillis = Date.now() - age * 1_000;
      await queueNews(transaction, { eventId: i, address, kind, atMillis, data: { worker: `${i}` } }, Date.now());
    }
  });
  sender();
  await until(() => got.length > ages.length);
  expect(got.map(({ body }) => body.id)).toEqual([0, 4, 3, 0, 1, 2]);
  expect((await post('', await signed(''))).status).toBe(200);
});

test('a host that never accepted the first news is left alone after a few tries, and old news are not sent', async () => {
  const { sql } = bed.books;
  const hook = async () =>
    (
      await sql<
        { url: string | null; dropped: number }[]
      >`select url, dropped from miner_webhooks where channel = 'webhook'`
    )[0];
  const refusing = await receiver(() => 500);
  expect((await post('', await signed(refusing.url))).status).toBe(200);
  sender();
  // The time between the tries is left out.
  await until(async () => {
    await sql`update miner_webhooks set next_at = now()`;
    return (await hook())?.url === null;
  });
  expect(refusing.asked()).toBe(FIRST_TRIES);
  expect((await sql`select 1 from miner_news`).length).toBe(0);
  expect(await state()).toMatchObject({ state: 'taken_away', failure: 'refused' });
  const { got, url } = await receiver(() => 200);
  expect((await post('', await signed(url))).status).toBe(200);
  await until(() => got.length === 1);
  const news = (id: number, atMillis: number) =>
    sql.begin((transaction) =>
      queueNews(transaction, { eventId: id, address, kind: 'block_found', atMillis, data: {} }, Date.now()),
    );
  await news(1, Date.now() - 100 * 86_400_000);
  await until(async () => (await hook())?.dropped === 1);
  await news(2, Date.now());
  await until(() => got.length === 2);
  expect(got[1]?.body).toMatchObject({ id: 2, dropped: 1 });
});
