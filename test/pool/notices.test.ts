/** What a miner's channels get: the request of each service, and a signed text that holds the longest real URL. */
import { expect, test } from 'vitest';
import { noticeRequest } from '../../pool/webhooks/notice-request.ts';
import { webhookFault } from '../../pool/webhooks/webhook-target.ts';
import { CHANNELS, noticePurpose } from '../../protocol/notices.ts';
import { PURPOSE_PATTERN } from '../../protocol/transactions/address-proof.ts';

const notice = {
  id: 7,
  kind: 'worker_silent',
  atMillis: 5,
  address: `svc1q${'x'.repeat(80)}`,
  data: { worker: '@everyone_*[x](y)', service: 'pplns' },
  dropped: 3,
};
const place = { secret: 'the secret', wallMillis: 9 };

test('Discord gets a sentence in which a worker’s name calls nobody and is no markup', () => {
  const { headers, body } = noticeRequest('discord', notice, place);
  expect(headers).toEqual({ 'content-type': 'application/json' });
  const { content, ...rest } = JSON.parse(body);
  expect(rest).toEqual({ allowed_mentions: { parse: [] } });
  // Each sign is escaped: none is left that is markup.
  expect(content.replace(/\\[^\p{L}\p{N}\s]/gu, '')).not.toMatch(/[^\p{L}\p{N}\s]/u);
  expect(content.replaceAll('\\', '')).toBe(
    'Worker @everyone_*[x](y) (pplns) has stopped sending shares.\n3 more were left out.\nMiner svc1qxxxxxxx…xxxxxxxxxxxx',
  );
});

test('Telegram and ntfy get the sentence as plain text, and no channel of people gets the secret', () => {
  const sentence = 'A payment of 1.5 coins is final: transaction ab.\nMiner svc1';
  const paid = { ...notice, kind: 'payout_final', data: { amount: '150000000', transaction_id: 'ab' } };
  const short = { ...paid, address: 'svc1', dropped: 0 };
  expect(JSON.parse(noticeRequest('telegram', short, place).body)).toEqual({
    text: sentence,
    link_preview_options: { is_disabled: true },
  });
  expect(noticeRequest('ntfy', short, place)).toMatchObject({ body: sentence, headers: { title: 'Mining pool' } });
  for (const channel of ['discord', 'telegram', 'ntfy'] as const)
    expect(JSON.stringify(noticeRequest(channel, notice, place))).not.toMatch(/secret|signature/);
  expect(noticeRequest('webhook', notice, place).headers).toHaveProperty('svc-pool-signature');
  expect(JSON.parse(noticeRequest('webhook', notice, place).body)).toMatchObject({ id: 7, data: notice.data });
});

test('the longest URLs that the services give out fit the signed text, and every channel is refused inside addresses', () => {
  const longest = {
    discord: `https://discord.com/api/webhooks/${'1'.repeat(20)}/${'a'.repeat(68)}`,
    telegram: `https://api.telegram.org/bot${'1'.repeat(12)}:${'a'.repeat(35)}/sendMessage?chat_id=-100${'1'.repeat(12)}`,
    ntfy: `https://ntfy.sh/${'a'.repeat(64)}`,
    webhook: `https://example.org/${'a'.repeat(90)}`,
  };
  for (const channel of CHANNELS) {
    expect(webhookFault(longest[channel], 'public', channel), channel).toBeUndefined();
    expect(`${noticePurpose(channel, longest[channel])} at the pool "${'n'.repeat(24)}"`).toMatch(
      new RegExp(PURPOSE_PATTERN),
    );
    expect(webhookFault('https://10.0.0.1/api/webhooks/1/a', 'public', channel)).toBeTypeOf('string');
    expect(webhookFault(`https://example.org/${'a'.repeat(91)}`, 'public', channel)).toBeTypeOf('string');
  }
  // The shortened beginning is that of one channel: a text for Discord is never one of another channel.
  expect(noticePurpose('webhook', longest.ntfy)).not.toBe(noticePurpose('ntfy', longest.ntfy));
  expect(noticePurpose('discord', '')).toBe('no discord');
});
