/** Rows of the specification's tables: errors, limits and authentication. */
import { expect } from 'vitest';
import { answers, batch, columns, named, type Row, subject, tested, titled } from './conformance-rows.ts';

export const LIMITS_ROWS: readonly Row[] = [
  titled('Errors: HTTP', '429', 'test/api/http.test.ts', 'the allowance of a client: 429'),
  tested('Errors: HTTP', '503', 'test/api/http.test.ts', async () => {
    subject.bed.api.serve(undefined);
    const answer = await subject.bed.get('/v1/chain/head');
    const submission = await subject.bed.post('/v1/transactions', { api_version: 1, wire_hex: '00' });
    subject.bed.api.serve(subject.bed.bed.node);
    for (const each of [answer, submission])
      expect([each.status, (await each.json()).retry_after_millis]).toEqual([503, 1_000]);
    expect((await subject.bed.get('/v1/chain/head')).status).toBe(200);
  }),
  titled(
    'Errors: HTTP',
    'a submission is never repeated after a lost answer',
    'test/api/client.test.ts',
    'a submission is sent once when it ends in %s, and its status is asked for',
  ),

  batch(
    'Batch: 64 addresses',
    ['addressBalances', 'addressesUtxos', 'addressChanges', 'mempoolPending', 'stakingPositions', 'registeredKeys'],
    'addresses',
    64,
  ),
  batch('Batch: 1,024 transaction IDs', ['transactionStatuses'], 'transaction_ids', 1024),
  batch('Batch: 8 outpoints', ['utxoProofs'], 'outpoints', 8),
  titled('Limits', 'WebSocket replay window: 1 hour', 'test/api/events.long.test.ts', 'a height older than an hour'),
  tested('Limits', 'Request path in a `request` frame: 1 KiB', 'test/api/live.test.ts', async () => {
    const opened = subject.bed.socket('/v1/ws', 'svc.node-api.v1');
    await opened.opened();
    opened.send('request', { id: 1, path: `/v1/${'a'.repeat(1020)}` });
    expect((await opened.next()).type).toBe('response');
    opened.send('request', { id: 1, path: `/v1/${'a'.repeat(1021)}` });
    expect((await opened.next()).type).toBe('error');
    opened.ws.close();
  }),
  tested('Limits', 'Registration window of an anchor: 96 cuts', 'test/node', async () => {
    expect(await answers('block', { id: subject.block })).toMatchObject({
      registration_window_end: 96,
      reward: { paid_height: 96 },
    });
  }),
  titled(
    'Limits',
    'Attendance needed to earn: 9 of 12 windows',
    'test/node/interval.long.test.ts',
    'the stake half of an interval is paid after it, to members that were there, and leaves nothing behind',
  ),
  named('Limits', 'Limits', '`Committee size`', 'test/staking/committee.test.ts'),

  columns('Subscriptions: 64, 64'),
  columns('Watched addresses: 512, 512'),
  columns('Frame sent by client: 64 KiB, 16 KiB'),
  columns('Answer to a request: 256 KiB, 1 MiB'),
  columns('Frames per second: 100, 10'),
  columns('Requests in flight: 8, 4'),

  tested('Authentication', '7. signed answers', 'test/api/http.test.ts, test/api/signed-answer.test.ts', async () => {
    const answer = await subject.bed.get('/v1/chain/head', { 'x-svc-request-nonce': '11'.repeat(32) });
    for (const name of ['envelope-version', 'node-identity', 'request-nonce', 'tip-height', 'signature'])
      expect(answer.headers.get(`x-svc-${name}`), name).not.toBeNull();
  }),
  tested('Authentication', '8. browser origins', 'test/api/http.test.ts', async () => {
    expect((await subject.bed.get('/v1/chain/head', { origin: 'https://example.org' })).status).toBe(403);
  }),
];
