import { expect, test } from 'vitest';
import { BAN_DEFAULTS, BanList } from '../../bridge/session/ban-score.ts';
import { proxiedAddress } from '../../runtime/clients/client-address.ts';
import { fullBucket, take } from '../../runtime/clients/token-bucket.ts';

test('scores add up to a ban, decay, and never touch loopback or the allow-list', () => {
  const list = new BanList(BAN_DEFAULTS, ['198.51.100.0/24']);
  const fault = (address: string, at: number) => list.score(address, 'protocol_violation', at);
  for (let i = 0; i < 4; i++) expect(fault('192.0.2.1', 5)).toBeUndefined();
  expect(fault('192.0.2.1', 5)).toBe(5 + BAN_DEFAULTS.banMillis);
  expect(list.bannedUntil('::ffff:192.0.2.1', 6)).toBe(5 + BAN_DEFAULTS.banMillis);
  expect(list.bannedUntil('192.0.2.1', 5 + BAN_DEFAULTS.banMillis)).toBeUndefined();
  for (let i = 0; i < 100; i++) expect(fault('192.0.2.2', i * BAN_DEFAULTS.halfLifeMillis)).toBeUndefined();
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.9', '198.51.100.200'])
    for (let i = 0; i < 50; i++) expect(fault(address, 0)).toBeUndefined();
  // A proxy's client is not this machine, whatever the proxy calls it.
  for (let i = 0; i < 4; i++) expect(fault(proxiedAddress('::ffff:7f00:1'), 5)).toBeUndefined();
  expect(fault(proxiedAddress('127.0.0.1'), 5)).toBe(5 + BAN_DEFAULTS.banMillis);
  expect(list.bannedUntil('127.0.0.1', 6)).toBeUndefined();
});

test('an operator can ban and unban, and memory is bounded', () => {
  const list = new BanList({ ...BAN_DEFAULTS, capacity: 10 });
  for (let i = 0; i < 100; i++) list.ban(`192.0.2.${i}`, 1000);
  expect(list.bans(0).length).toBe(10);
  expect(list.unban('192.0.2.99')).toBe(true);
  expect(list.bannedUntil('192.0.2.99', 0)).toBeUndefined();
});

test('a bucket refills with time and not with a clock that goes back', () => {
  const rate = { perSecond: 2, burst: 3 };
  let bucket = fullBucket(rate, 1000);
  for (let i = 0; i < 3; i++) bucket = take(bucket, rate, 1000) ?? expect.fail('empty too soon');
  expect(take(bucket, rate, 1000)).toBeUndefined();
  expect(take(bucket, rate, 0)).toBeUndefined();
  expect(take(bucket, rate, 1500)).toEqual({ tokens: 0, atMillis: 1500 });
});
