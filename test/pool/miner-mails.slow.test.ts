/** E-mail to a miner over the real API, books and mail program, to a mail server on a socket: set by a signature, confirmed by the mail's link, filled by events. */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { rawPublicKey, signMessage } from '../../node/ml-dsa.ts';
import { CONFIRMATIONS } from '../../pool/mail/confirmation-limits.ts';
import { mailboxKey } from '../../pool/mail/mailbox.ts';
import { emptyTally, type MailFailure, type MailTally } from '../../pool/mail/mailer.ts';
import { MAILBOX_TRIES, MinerMails } from '../../pool/mail/miner-mails.ts';
import { loadSmtp } from '../../pool/mail/smtp.ts';
import { readSmtpServer, type SmtpServer } from '../../pool/mail/smtp-server.ts';
import { mailMetrics } from '../../pool/pool-metrics.ts';
import { queueNews, ROOM } from '../../pool/webhooks/news-queue.ts';
import { formatAddress } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { type AddressProofRequest, addressProofMessage } from '../../protocol/transactions/address-proof.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { key, keyed, openPoolApiBed, type PoolApiBed } from './api-bed.ts';
import { type Mail, mailServer } from './mail-server.ts';

let bed: PoolApiBed;
beforeAll(async () => {
  bed = await openPoolApiBed({ sendsMail: true });
});
afterAll(() => bed.close());
beforeEach(async () => {
  const { sql } = bed.books;
  for (const table of ['miner_news', 'miner_mails', 'mail_confirmations', 'mail_refusals'])
    await sql`delete from ${sql(table)}`;
});

const MAILBOX = 'first.last@example.org';
const address = formatAddress(keyed, 'development');
const base = () => `http://127.0.0.1:${bed.web.address.port}/p/api/v1`;
const post = async (path: string, body: object) => {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${base()}/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as { state: string } & AddressProofRequest };
};
const signed = async (wish: { email: string; events?: string[] }) => {
  const { body: request } = await post(`miners/${address}/mail/request`, wish);
  const proof = {
    version: 1,
    address,
    challenge: request.challenge,
    public_key: toHex(rawPublicKey(key)),
    signature: toHex(signMessage(key, addressProofMessage(request))),
  };
  return { ...wish, request, proof };
};
const set = async (email: string, events?: string[]) =>
  post(`miners/${address}/mail`, await signed({ email, ...(events === undefined ? {} : { events }) }));

async function sender(
  url: string,
  restMillis = 0,
  onSent?: (failure: MailFailure | undefined) => void,
  now = Date.now,
  tally?: MailTally,
) {
  const mailer = (await loadSmtp(readSmtpServer(url) as SmtpServer, 'pool@example.org'))();
  const send: typeof mailer.send = async (...mail) => {
    const failure = await mailer.send(...mail);
    onSent?.(failure);
    return failure;
  };
  const mails = new MinerMails(
    { publicUrl: 'https://pool.example/p', poolName: 'test pool', pollMillis: 20, restMillis, gatherMillis: 0 },
    { sql: bed.books.sql, mailer: { ...mailer, send }, log: quietLog, now, ...(tally === undefined ? {} : { tally }) },
  );
  onTestFinished(() => mails.close());
  return mails;
}

const row = async () =>
  (
    await bed.books.sql<
      {
        mailbox: string | null;
        asked: boolean;
        confirmed: boolean;
        waits: boolean;
        attempts: number;
        dropped: number;
      }[]
    >`select mailbox, asked_at is not null as asked, confirmed, next_at > now() as waits, attempts, dropped
      from miner_mails m join accounts a on a.id = m.account_id where a.address = ${address}`
  )[0];
const tell = (kind: string, data: object) => bed.books.sql`select tell(${kind}, ${bed.books.sql.json(data as never)})`;
/** Every event so far was looked at by the sender. */
const looked = () =>
  until(
    async () =>
      (
        await bed.books.sql`select 1 from settings where name = 'miner_news_through'
          and value::bigint >= (select coalesce(max(id), 0) from events)`
      ).length > 0,
  );
const waiting = async () => (await bed.books.sql`select 1 from miner_news`).length;
const codeOf = (mail: Mail | undefined) => /#\/mail\/confirm\/([\w-]{32})\r\n/.exec(mail?.data ?? '')?.[1] as string;

test('a mailbox is set by the key of the address, written to once, and gets the news of its miner only after it was confirmed', async () => {
  for (const email of ['nobody', `${MAILBOX}\r\nBcc: other@example.org`, `${MAILBOX},other@example.org`])
    expect((await post(`miners/${address}/mail/request`, { email })).status).toBe(400);
  const wish = await signed({ email: MAILBOX });
  expect(wish.request.purpose).toBe(`e-mail to ${MAILBOX} at the pool "test pool"`);
  expect((await post(`miners/${address}/mail`, { ...wish, email: `x${MAILBOX}` })).status).toBe(403);
  expect((await post(`miners/${address}/mail`, { ...wish, events: ['blocks'] })).status).toBe(403);
  expect(await post(`miners/${address}/mail`, wish)).toMatchObject({ status: 200, body: { state: 'unconfirmed' } });
  expect((await post(`miners/${address}/mail`, wish)).status).toBe(409);
  for (const path of [`miners/${address}`, `miners/${address}/notifications`, 'miners'])
    expect(await (await fetch(`${base()}/${path}`)).text()).not.toContain('example.org');

  const { got, url } = await mailServer();
  // A long rest: the second mail of the miner must wait for it.
  const first = await sender(url, 3_600_000);
  await until(() => got.length === 1);
  expect(got[0]).toMatchObject({ from: '<pool@example.org>', to: [`<${MAILBOX}>`] });
  const code = codeOf(got[0]);
  expect(got[0]?.data).toContain(`List-Unsubscribe: <https://pool.example/p/api/v1/mail/stop/${code}>\r\n`);
  expect(got[0]?.data).toContain('List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n');
  expect(got[0]?.data).toContain(`\r\nhttps://pool.example/p/#/mail/stop/${code}`);
  expect(got[0]?.data).toContain(`The miner ${address} at the mining pool test pool`);
  await looked();
  await tell('block_found', { block_id: 'too early', finder: address, worker: 'x' });
  await looked();
  expect(await waiting()).toBe(0);
  expect((await post('mail/confirm', { code: 'x'.repeat(32) })).status).toBe(404);
  expect(await post('mail/confirm', { code })).toMatchObject({ status: 200, body: { address, state: 'on' } });
  await first.close();

  await tell('block_found', { block_id: 'cd', finder: address, worker: 'x\r\nBcc: other@example.org' });
  await tell('block_found', { block_id: 'ef', finder: 'somebody else', worker: 'x' });
  const recipients = [{ address, amount: '150000000' }];
  await tell('payout_sent', { payout_id: 'p', transaction_id: 'ab', recipients });
  await tell('payout_final', { payout_id: 'p', transaction_id: 'ab', recipients });
  await sender(url, 3_600_000);
  await until(() => got.length === 2);
  expect(got[1]?.data).toContain('Subject: test pool: notifications about your miner (2)\r\n');
  expect(got[1]?.data).toMatch(/found block cd[\s\S]*payment of 1\.5 coins[\s\S]*#\/mail\/stop\//);
  expect(got[1]?.data).not.toMatch(/somebody else|found block ef|^Bcc:/m);
  await until(async () => (await waiting()) === 0);
  await tell('worker_silent', { address, worker: 'x', service: 'pplns' });
  await looked();
  expect(await waiting()).toBe(1);
  expect(await row()).toMatchObject({ waits: true });

  // Another choice of events needs no new confirmation; what is not chosen is not kept.
  expect(await set(MAILBOX, ['payments'])).toMatchObject({ status: 200, body: { state: 'on' } });
  await tell('worker_back', { address, worker: 'x', service: 'pplns' });
  await looked();
  expect(await waiting()).toBe(1);
  expect(await post('mail/stop', { code })).toMatchObject({ status: 200, body: { state: 'off' } });
  expect(await row()).toMatchObject({ mailbox: null, confirmed: false });
  expect(await waiting()).toBe(0);
  expect((await post('mail/confirm', { code })).status).toBe(404);
  expect(got).toHaveLength(2);
});

test('a mailbox gets one confirmation an hour, in all spellings and from all miners, and none after it refused', async () => {
  const { sql } = bed.books;
  const { got, url } = await mailServer();
  expect((await set(MAILBOX)).status).toBe(200);
  await sender(url);
  await until(() => got.length === 1);
  const [other] = await sql<{ id: number }[]>`select id from accounts where address <> ${address} limit 1`;
  await sql`insert into miner_mails (account_id, mailbox, set_millis, code, events)
    values (${other?.id as number}, 'First.Last+2@Example.org', 1, 'another', '{blocks}')`;
  const moved = async () =>
    (await sql`select 1 from miner_mails where code = 'another' and asked_at is null and next_at > now()`).length > 0;
  await until(moved);
  // It refuses: the next wish looks as if it had been written to.
  expect((await post('mail/stop', { code: codeOf(got[0]) })).status).toBe(200);
  await sql`update mail_confirmations set at = at - interval '2 hours'`;
  await sql`update miner_mails set next_at = now()`;
  const asked = async () =>
    (await sql`select 1 from miner_mails where code = 'another' and asked_at is not null`).length;
  await until(async () => (await asked()) > 0);
  expect((await set(MAILBOX)).body.state).toBe('unconfirmed');
  await until(async () => (await row())?.asked);
  expect(await sql`select 1 from mail_confirmations`).toHaveLength(1);
  expect(got).toHaveLength(1);
  // What nobody confirmed is forgotten.
  await sql`update miner_mails set since = now() - interval '4 days'`;
  await sender(url);
  await until(async () => (await row())?.mailbox === null);
});

test('a server that is away loses nothing; a full queue drops and says so', async () => {
  const { sql } = bed.books;
  const away = await mailServer();
  away.close();
  expect((await set(MAILBOX)).status).toBe(200);
  let failure: MailFailure | undefined;
  const first = await sender(away.url, 0, (failed) => {
    failure = failed;
  });
  await until(() => failure !== undefined);
  await first.close();
  expect(failure).toMatchObject({ kind: 'away' });
  expect(await row()).toMatchObject({ mailbox: MAILBOX, asked: false });
  expect(await sql`select 1 from mail_confirmations`).toHaveLength(0);
  const { got, url } = await mailServer();
  await sender(url);
  await until(() => got.length === 1);
  expect((await post('mail/confirm', { code: codeOf(got[0]) })).status).toBe(200);
  await sql.begin(async (transaction) => {
    const news = { eventId: 0, address, kind: 'block_found', atMillis: Date.now(), data: {} };
    for (let i = 0; i < ROOM.blocks + 5; i++) await queueNews(transaction, news, Date.now());
  });
  await until(() => got.length === 2);
  expect(got[1]?.data).toContain(`notifications about your miner (${ROOM.blocks + 5})`);
  expect(got[1]?.data).toContain('5 more were left out.');
  await until(async () => (await row())?.dropped === 0 && (await waiting()) === 0);
});

const others = async () => {
  const rows = await bed.books.sql<{ id: number; address: string }[]>`select id, address from accounts
    where address <> ${address} order by balance + in_flight + paid, id limit 2`;
  return rows as unknown as [(typeof rows)[number], (typeof rows)[number]];
};

test('the link of a confirmation also works after the same mailbox was set again', async () => {
  const { sql } = bed.books;
  const { got, url } = await mailServer();
  expect((await set(MAILBOX)).status).toBe(200);
  await sender(url);
  await until(() => got.length === 1);
  const code = codeOf(got[0]);
  expect((await set(MAILBOX, ['payments'])).body.state).toBe('unconfirmed');
  expect(await post('mail/confirm', { code })).toMatchObject({ status: 200, body: { state: 'on' } });
  // It was confirmed: to stop its mails is no refusal, however often.
  for (let i = 0; i < 2; i++) expect((await post('mail/stop', { code })).status).toBe(200);
  expect(await sql`select 1 from mail_refusals`).toHaveLength(0);
});

test('a mail program stops the mails in one step, by the address in their head; a person who opens it is asked first', async () => {
  const { got, url } = await mailServer();
  const stopUrl = () => {
    const [, path = ''] = /^List-Unsubscribe: <https:\/\/pool\.example(\S+)>\r$/m.exec(got.at(-1)?.data ?? '') ?? [];
    return `http://127.0.0.1:${bed.web.address.port}${path}`;
  };
  await sender(url);
  const form = new FormData();
  form.set('List-Unsubscribe', 'One-Click');
  for (const body of [new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }), form]) {
    await bed.books.sql`delete from mail_confirmations`;
    await bed.books.sql`delete from mail_refusals`;
    const before = got.length;
    expect((await set(MAILBOX)).status).toBe(200);
    await until(() => got.length > before);
    const code = codeOf(got.at(-1));
    expect((await post('mail/confirm', { code })).status).toBe(200);
    // Programs that look at links do not stop anything.
    const opened = await fetch(stopUrl(), { redirect: 'manual' });
    expect(opened.status).toBe(303);
    expect(new URL(opened.headers.get('location') as string, stopUrl()).href).toBe(
      `http://127.0.0.1:${bed.web.address.port}/p/#/mail/stop/${code}`,
    );
    expect(await row()).toMatchObject({ mailbox: MAILBOX, confirmed: true });
    const answer = await fetch(stopUrl(), { method: 'POST', body });
    expect([answer.status, await answer.json()]).toMatchObject([200, { address, state: 'off' }]);
    expect(await row()).toMatchObject({ mailbox: null });
  }
  for (const method of ['GET', 'POST'])
    expect((await fetch(`${base()}/mail/stop/no%2Fcode`, { method, redirect: 'manual' })).status).not.toBe(303);
  // A form is not taken where JSON is due.
  const wrong = await fetch(`${base()}/mail/stop`, { method: 'POST', body: new URLSearchParams({ code: 'x' }) });
  expect(wrong.status).toBe(400);
});

test('metrics count what was sent, what was not and why, and what waits', async () => {
  const { sql } = bed.books;
  const metrics = new Metrics('svc_pool');
  const tally = emptyTally();
  const update = mailMetrics(metrics, () => tally, sql);
  const shown = async () => {
    await update();
    return (await metrics.text()).split('\n').filter((line) => line.startsWith('svc_pool_mails'));
  };
  expect((await set(MAILBOX)).status).toBe(200);
  expect(await shown()).toEqual([
    ...['sent', 'mailbox', 'later', 'away', 'unsure'].map((result) => `svc_pool_mails_total{result="${result}"} 0`),
    'svc_pool_mails_waiting{kind="confirmation"} 1',
    'svc_pool_mails_waiting{kind="news"} 0',
  ]);
  let verdict = '451 later';
  const { got, url } = await mailServer(() => verdict);
  await sender(url, 3_600_000, undefined, Date.now, tally);
  await until(async () => (await shown()).includes('svc_pool_mails_total{result="later"} 1'));
  // Put off in the books too, and not only counted.
  await until(async () => (await row())?.waits === true);
  verdict = '250 ok';
  await sql`update miner_mails set next_at = now()`;
  await until(async () => (await shown()).includes('svc_pool_mails_total{result="sent"} 1'));
  expect(await shown()).toContain('svc_pool_mails_waiting{kind="confirmation"} 0');
  expect((await post('mail/confirm', { code: codeOf(got.at(-1)) })).status).toBe(200);
  await sql`update miner_mails set next_at = now() + interval '1 hour'`;
  await tell('worker_silent', { address, worker: 'x', service: 'pplns' });
  await looked();
  expect(await shown()).toContain('svc_pool_mails_waiting{kind="news"} 1');
});

test('a mailbox can refuse also after the miner named another one', async () => {
  const { sql } = bed.books;
  const { got, url } = await mailServer();
  expect((await set('stranger@example.org')).status).toBe(200);
  await sender(url);
  await until(() => got.length === 1);
  const code = codeOf(got[0]);
  expect((await set(MAILBOX)).status).toBe(200);
  expect((await post('mail/confirm', { code })).status).toBe(404);
  expect(await post('mail/stop', { code })).toMatchObject({ status: 200, body: { address, state: 'off' } });
  expect(await sql`select mailbox_key from mail_refusals`).toEqual([
    { mailbox_key: mailboxKey('stranger@example.org') },
  ]);
  expect(await row()).toMatchObject({ mailbox: MAILBOX });
});

test('keys that cost nothing do not use up the confirmations of an hour: those who earned most come first', async () => {
  const { sql } = bed.books;
  const [poor, busy] = await others();
  const { got, url } = await mailServer();
  await sql`insert into mail_confirmations (mailbox_key, account_id)
    select 'key ' || i, ${busy.id} from generate_series(2, ${CONFIRMATIONS.allOfHour}::int) i`;
  expect((await set(MAILBOX)).status).toBe(200);
  await sql`insert into miner_mails (account_id, mailbox, set_millis, code, events, next_at)
    values (${poor.id}, 'poor@example.org', 1, 'poor', '{blocks}', now() - interval '1 day')`;
  await sender(url);
  await until(() => got.length === 1);
  expect(got[0]?.to).toEqual([`<${MAILBOX}>`]);
  await sql`update mail_confirmations set at = at - interval '2 hours'`;
  await until(() => got.length === 2);
  expect(got[1]?.to).toEqual(['<poor@example.org>']);
});

test('news go before confirmations: mailboxes that nobody confirmed do not hold them up', async () => {
  const { sql } = bed.books;
  const [other] = await others();
  expect((await set(MAILBOX)).status).toBe(200);
  await sql`insert into miner_mails (account_id, mailbox, set_millis, code, events, confirmed, asked_at)
    values (${other.id}, 'good@example.org', 1, 'good', '{workers}', true, now())`;
  await sql`insert into miner_news (account_id, channel, event_id, at, kind, data)
    values (${other.id}, 'mail', 0, now(), 'worker_silent', '{"worker":"x"}')`;
  const recipients: string[] = [];
  const { url } = await mailServer((recipient) => {
    recipients.push(recipient);
    return '250 ok';
  });
  await sender(url);
  await until(() => recipients.length === 2);
  expect(recipients).toEqual(['<good@example.org>', `<${MAILBOX}>`]);
});

test('a server that refuses every mailbox removes none; one that alone is refused is removed', async () => {
  const { sql } = bed.books;
  const [other] = await others();
  await sql`insert into miner_mails (account_id, mailbox, set_millis, code, events, confirmed, asked_at)
    select id, case when id = ${other.id} then 'good@example.org' else ${MAILBOX} end, 1, address, '{workers}', true, now()
    from accounts where id = ${other.id} or address = ${address}`;
  let refused = /./;
  let asked = 0;
  const { url } = await mailServer((recipient) => {
    if (!refused.test(recipient)) return '250 ok';
    asked++;
    return '550 no';
  });
  // Each look at the clock is 20 seconds: the sender's pauses are short here.
  let looks = 0;
  await sender(url, 0, undefined, () => Date.now() + 20_000 * looks++);
  await looked();
  const news = (of: string) => tell('worker_silent', { address: of, worker: 'x', service: 'pplns' });
  await news(address);
  await news(other.address);
  await until(() => asked > 2 * MAILBOX_TRIES);
  const kept = async () => (await sql`select 1 from miner_mails where mailbox is not null`).length;
  expect(await kept()).toBe(2);
  refused = /first/;
  await until(async () => {
    await news(other.address);
    return (await row())?.mailbox === null;
  });
  expect(await kept()).toBe(1);
});
