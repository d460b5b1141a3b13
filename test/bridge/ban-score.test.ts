import { expect, test } from 'vitest';
import { addressKey, addressList, BAN_DEFAULTS, BanList } from '../../bridge/ban-score.ts';
import { fullBucket, take } from '../../bridge/token-bucket.ts';

test('IPv6 addresses share a key per /64, mapped ones count as IPv4', () => {
  expect(addressKey('::ffff:192.0.2.7')).toBe('192.0.2.7');
  expect(addressKey('2001:db8:0:1::5')).toBe('2001:db8:0:1::/64');
  expect(addressKey('2001:0db8:0000:0001:ffff::')).toBe('2001:db8:0:1::/64');
  expect(addressKey('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
});

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
});

test('an operator can ban and unban, and memory is bounded', () => {
  const list = new BanList({ ...BAN_DEFAULTS, capacity: 10 });
  for (let i = 0; i < 100; i++) list.ban(`192.0.2.${i}`, 1000);
  expect(list.bans(0).length).toBe(10);
  expect(list.unban('192.0.2.99')).toBe(true);
  expect(list.bannedUntil('192.0.2.99', 0)).toBeUndefined();
});

test('a wrong entry of an address list is named', () => {
  expect(() => addressList(['10.0.0.0/33'])).toThrow(/10.0.0.0\/33/);
  expect(() => addressList(['example'])).toThrow(/example/);
});

test('a bucket refills with time and not with a clock that goes back', () => {
  const rate = { perSecond: 2, burst: 3 };
  let bucket = fullBucket(rate, 1000);
  for (let i = 0; i < 3; i++) bucket = take(bucket, rate, 1000) ?? expect.fail('empty too soon');
  expect(take(bucket, rate, 1000)).toBeUndefined();
  expect(take(bucket, rate, 0)).toBeUndefined();
  expect(take(bucket, rate, 1500)).toEqual({ tokens: 0, atMillis: 1500 });
});
