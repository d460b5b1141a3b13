import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { createServer as createTlsServer, getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { webhookState } from '../../pool/api/miner/miner-webhook.ts';
import { CONFIRMATIONS, confirmationVerdict, FOR_NEW_MINERS, type Sent } from '../../pool/mail/confirmation-limits.ts';
import { confirmationMail, newsMail } from '../../pool/mail/mail-text.ts';
import { mailboxFault, mailboxKey } from '../../pool/mail/mailbox.ts';
import { failureOf, loadSmtp } from '../../pool/mail/smtp.ts';
import { readSmtpServer, type SmtpServer } from '../../pool/mail/smtp-server.ts';
import type { PoolValues } from '../../pool/options.ts';
import { mailOptions } from '../../pool/start/check-options.ts';
import { shownOptions } from '../../runtime/doctor/shown-options.ts';
import { TEST_CERTIFICATE } from '../miner/certificate.ts';

test('a mailbox is one plain address, and nothing that ends a line, names a second one or a route to another', () => {
  for (const good of [
    'a@example.org',
    'first.last+rig@mail.example.co.uk',
    'A_b-c-1@x-y.io',
    'a@xn--bcher-kva.example',
  ])
    expect(mailboxFault(good), good).toBeUndefined();
  for (const bad of [
    '',
    'a',
    '@example.org',
    'a@',
    'a@localhost',
    'a@example',
    'a@127.0.0.1',
    'a@[127.0.0.1]',
    'a b@example.org',
    'a@example.org\r\nBcc: b@example.org',
    'a@example.org\n',
    '\na@example.org',
    'a@example.org,b@example.org',
    'A <a@example.org>',
    '"a b"@example.org',
    'a@b@example.org',
    '.a@example.org',
    'a..b@example.org',
    'victim%example.com@example.org',
    'example.com!victim@example.org',
    'a@example.org;b@example.org',
    'a(b)@example.org',
    'a@-x.org',
    'a@x..org',
    'ä@example.org',
    'a@exämple.org',
    `${'a'.repeat(65)}@example.org`,
    `a@${'b'.repeat(60)}.${'c'.repeat(60)}.org`,
  ])
    expect(mailboxFault(bad), bad).toBeTypeOf('string');
});

test('spellings of one mailbox have one key, which does not show it', () => {
  const key = mailboxKey('first.last@example.org');
  expect(key).toMatch(/^[0-9a-f]{64}$/);
  expect(mailboxKey('First.Last+rig@EXAMPLE.org')).toBe(key);
  expect(mailboxKey('first.last@example.com')).not.toBe(key);
  // At most providers this is the mailbox of somebody else, who could refuse mails for both.
  expect(mailboxKey('firstlast@example.org')).not.toBe(key);
  expect(mailboxKey('First.Last+rig@googlemail.com')).toBe(mailboxKey('firstlast@gmail.com'));
});

test('confirmations are bounded for a mailbox, a miner and all, and a mailbox that refused gets none', () => {
  const counts = { allOfHour: 0, minersOfHour: 0, mailboxesOfHour: 0, mailboxesOfWeek: 0 };
  const none: Sent = { ...counts, isRefused: false, isEarner: true };
  expect(confirmationVerdict(none)).toBe('send');
  for (const [name, most] of Object.entries(CONFIRMATIONS)) {
    expect(confirmationVerdict({ ...none, [name]: most - 1 }), name).toBe('send');
    expect(confirmationVerdict({ ...none, [name]: most }), name).toBe(name === 'allOfHour' ? 'full' : 'wait');
  }
  // Keys cost nothing: miners that have earned nothing leave a part of the hour to the others.
  expect(confirmationVerdict({ ...none, isEarner: false, allOfHour: FOR_NEW_MINERS - 1 })).toBe('send');
  expect(confirmationVerdict({ ...none, isEarner: false, allOfHour: FOR_NEW_MINERS })).toBe('full');
  expect(confirmationVerdict({ ...none, isRefused: true })).toBe('never');
});

test('a mail says what happened, in lines that no worker name breaks, with the link that stops it', () => {
  const place = { pool: 'A pool', publicUrl: 'https://pool.example/p', address: 'dsvc1miner', code: 'c0de' };
  const first = confirmationMail(place);
  expect(first.text).toContain('https://pool.example/p/#/mail/confirm/c0de\n');
  expect(first.text).toContain('https://pool.example/p/#/mail/stop/c0de\n');
  const news = [
    { kind: 'block_found', atMillis: 0, data: { block_id: 'ab', worker: 'rig\r\nBcc: x@y.z\u202e', service: 'pplns' } },
    { kind: 'payout_final', atMillis: 60_000, data: { amount: '150000000', transaction_id: 'cd' } },
    { kind: 'worker_silent', atMillis: 0, data: { worker: '', service: 'solo' } },
    { kind: 'worker_back', atMillis: 0, data: { worker: 'x'.repeat(5_000) } },
  ];
  const { text, subject, stopUrl } = newsMail(place, news, 7);
  expect(subject).toBe('A pool: notifications about your miner (11)');
  expect(text).toContain('1970-01-01 00:00 UTC  Worker rig??Bcc: x@y.z? (pplns) found block ab.\n');
  expect(text).toContain('00:01 UTC  A payment of 1.5 coins is final: transaction cd.\n');
  expect(text).toContain('Worker (no name) (solo) has stopped sending shares.\n');
  expect(text).toContain('7 more were left out.\n');
  expect(text).toContain('https://pool.example/p/#/mail/stop/c0de\n');
  expect(stopUrl).toBe('https://pool.example/p/api/v1/mail/stop/c0de');
  expect(text.length).toBeLessThan(1_000);
});

test('nothing that a stranger chose is in a subject line: it is the same whatever names and kinds the news have', () => {
  const place = { pool: 'A pool', publicUrl: 'https://pool.example', address: 'dsvc1miner', code: 'c0de' };
  const ADVERTISING = 'Buy hashes at evil.example';
  const kinds = ['block_found', 'payout_final', 'worker_silent', 'worker_back', 'worker_new', ADVERTISING];
  const fields = ['worker', 'service', 'block_id', 'transaction_id', 'amount', 'address', 'pool', 'subject', 'finder'];
  for (const kind of kinds)
    for (const dropped of [0, 3]) {
      const data = Object.fromEntries(fields.map((field) => [field, ADVERTISING]));
      const { subject } = newsMail(place, [{ kind, atMillis: 0, data }], dropped);
      expect(subject, kind).toBe(`A pool: notifications about your miner (${1 + dropped})`);
    }
  expect(confirmationMail({ ...place, address: ADVERTISING, code: ADVERTISING }).subject).toBe(
    'A pool: confirm your e-mail address',
  );
});

test('a mail server is a URL whose password is never shown', () => {
  expect(readSmtpServer('smtp://pool:p%40ss@mail.example:2525')).toEqual({
    host: 'mail.example',
    port: 2525,
    isSecure: false,
    login: { user: 'pool', pass: 'p@ss' },
  });
  expect(readSmtpServer('smtps://mail.example')).toMatchObject({ port: 465, isSecure: true, login: undefined });
  expect(readSmtpServer('smtp://[::1]/')).toMatchObject({ host: '::1', port: 587 });
  for (const bad of [
    '',
    'mail.example',
    'http://mail.example',
    'smtp://',
    'smtp://user@mail.example',
    'smtp://u:p@ss@mail.example',
    'smtp://mail.example/path',
    'smtp://mail.example?tls=no',
    'smtp://mail.example#a',
    'smtp://a b/',
  ])
    expect(readSmtpServer(bad), bad).toBeUndefined();
  const shown = shownOptions({ smtpUrl: 'smtp://pool:p%40ss@mail.example' });
  expect(JSON.stringify(shown)).not.toMatch(/p%40ss|p@ss/);
});

test('options of mail that do not fit together are refused before anything starts', () => {
  const all = { smtpUrl: 'smtp://mail.example', mailFrom: 'pool@example.org', publicUrl: 'https://pool.example' };
  const of = (values: object) => mailOptions(values as PoolValues);
  expect(of({})).toBeUndefined();
  expect(of(all)).toMatchObject({ from: 'pool@example.org', server: { host: 'mail.example' } });
  for (const wrong of [
    { ...all, mailFrom: undefined },
    { ...all, publicUrl: undefined },
    { mailFrom: 'pool@example.org' },
    { ...all, smtpUrlFile: '/nowhere' },
  ])
    expect(() => of(wrong)).toThrow(expect.objectContaining({ code: 'options_disagree' }));
});

test('what a failure of the mail server says about the mail', () => {
  const kind = (fields: object) => failureOf(Object.assign(new Error('x'), fields)).kind;
  expect(kind({ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 550 })).toBe('mailbox');
  expect(kind({ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 451 })).toBe('later');
  expect(kind({ code: 'EMESSAGE', command: 'DATA', responseCode: 554 })).toBe('mailbox');
  expect(kind({ code: 'EENVELOPE', command: 'MAIL FROM', responseCode: 550 })).toBe('away');
  expect(kind({ code: 'EAUTH', command: 'AUTH PLAIN', responseCode: 535 })).toBe('away');
  expect(kind({ code: 'ESOCKET', command: 'CONN', syscall: 'connect' })).toBe('away');
  expect(kind({ code: 'ETIMEDOUT', command: 'CONN' })).toBe('unsure');
  const { reason } = failureOf(Object.assign(new Error('550 no such user a@example.org'), { responseCode: 550 }));
  expect(reason).toBe('status 550');
});

test('a mail ends in time, also with a server that answers a little at a time for ever', async () => {
  const server = createServer((socket) => {
    const drip = setInterval(() => socket.write('2'), 20);
    socket.on('error', () => undefined).on('close', () => clearInterval(drip));
    socket.write('220 test\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const at = readSmtpServer(`smtp://127.0.0.1:${(server.address() as AddressInfo).port}`) as SmtpServer;
  const mailer = (await loadSmtp(at, 'pool@example.org', 500))();
  const mail = { subject: 'x', text: 'x', stopUrl: 'https://pool.example/' };
  expect(await mailer.send('a@example.org', mail)).toEqual({ kind: 'unsure', reason: 'the server took too long' });
  mailer.close();
  expect(await mailer.send('a@example.org', mail)).toEqual({ kind: 'away', reason: 'the pool stops' });
});

test('a mail ends at once with a server that says more than a mail takes', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    const empty = Buffer.from('\r\n'.repeat(32_768));
    const flood = () => {
      while (!socket.destroyed && socket.write(empty));
    };
    socket.on('drain', flood);
    flood();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const mailer = (await loadSmtp(readSmtpServer(`smtp://127.0.0.1:${port}`) as SmtpServer, 'pool@example.org'))();
  onTestFinished(() => {
    mailer.close();
    server.close();
  });
  const failure = await mailer.send('a@example.org', { subject: 's', text: 't', stopUrl: 'https://x.example/' });
  expect(failure).toEqual({ kind: 'unsure', reason: 'the server says too much' });
  // Nor is anything of it worked on later, turn by turn.
  await expect.poll(() => process.getActiveResourcesInfo()).not.toContain('Immediate');
});

test('a mail goes over TLS', async () => {
  const before = getCACertificates('default');
  setDefaultCACertificates([TEST_CERTIFICATE.cert]);
  const said: string[] = [];
  const server = createTlsServer(TEST_CERTIFICATE, (socket) => {
    const answer = (line: string): string => (line === 'DATA' ? '354 go on' : line === 'QUIT' ? '221 bye' : '250 yes');
    let isText = false;
    createInterface(socket.on('error', () => undefined)).on('line', (line) => {
      said.push(line);
      if (!isText || line === '.') socket.write(`${answer(line)}\r\n`);
      isText = line === 'DATA' || (isText && line !== '.');
    });
    socket.write('220 test\r\n');
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const at = readSmtpServer(`smtps://localhost:${(server.address() as AddressInfo).port}`) as SmtpServer;
  const mailer = (await loadSmtp(at, 'pool@example.org'))();
  onTestFinished(() => {
    mailer.close();
    server.close();
    setDefaultCACertificates(before);
  });
  const mail = { subject: 'hello', text: 'x'.repeat(100_000), stopUrl: 'https://x.example/' };
  expect(await mailer.send('a@example.org', mail)).toBeUndefined();
  expect(said).toContain('RCPT TO:<a@example.org>');
  expect(said.join('').match(/x/g)?.length).toBeGreaterThan(90_000);
});

test('the state of a webhook says whether it works, and nothing about what is behind it', () => {
  const row = { url: 'https://x.example/', error: null, success: null, failed: null };
  expect(webhookState(undefined).state).toBe('none');
  expect(webhookState({ ...row, url: null }).state).toBe('none');
  expect(webhookState(row).state).toBe('waiting');
  expect(webhookState({ ...row, success: '5' })).toMatchObject({ state: 'working', last_success_millis: 5 });
  expect(webhookState({ ...row, error: 'status 500', failed: '6' })).toMatchObject({
    state: 'failing',
    failure: 'refused',
    last_failure_millis: 6,
  });
  expect(webhookState({ ...row, error: 'connect ECONNREFUSED 10.0.0.1:22' }).failure).toBe('unreachable');
  expect(webhookState({ ...row, url: null, error: 'status 404' }).state).toBe('taken_away');
});
