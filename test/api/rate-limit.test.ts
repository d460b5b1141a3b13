import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PUBLIC_RATE_LIMIT, RateLimiter } from '../../node/api/rate-limit.ts';
import { clientKey, TrustedProxies } from '../../runtime/client-address.ts';

test('clients are told apart by IPv4 address or IPv6 /64', () => {
  expect(clientKey('192.0.2.1')).toBe('192.0.2.1');
  expect(clientKey('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(clientKey('::ffff:c000:201')).toBe('192.0.2.1');
  expect(clientKey('2001:db8::1')).toBe('2001:db8:0:0::/64');
  expect(clientKey('2001:db8:0:0:ffff:ffff:ffff:ffff')).toBe('2001:db8:0:0::/64');
  expect(clientKey('2001:db8:0:1::1')).toBe('2001:db8:0:1::/64');
  expect(clientKey('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
  expect(clientKey('::1')).toBe('0:0:0:0::/64');
  expect(clientKey('64:ff9b::192.0.2.33')).toBe('64:ff9b:0:0::/64');
  for (const junk of ['', 'localhost', '1.2.3', '[::1]']) expect(clientKey(junk)).toBe('unknown');
});

test('every IPv6 address of a /64 is the same client', () => {
  const group = fc.integer({ min: 0, max: 0xffff });
  fc.assert(
    fc.property(fc.tuple(group, group, group, group), fc.tuple(group, group, group, group), (network, host) => {
      const text = [...network, ...host].map((value) => value.toString(16)).join(':');
      const first = [...network, 0, 0, 0, 1].map((value) => value.toString(16)).join(':');
      if (network.every((value) => value === 0)) return;
      expect(clientKey(text)).toBe(clientKey(first));
    }),
  );
});

test('only listed proxies are believed, and only about the nearest address that is not one of them', () => {
  const proxies = new TrustedProxies(['10.0.0.0/8', '2001:db8::1']);
  expect(proxies.clientOf('192.0.2.1', '198.51.100.1')).toBe('192.0.2.1');
  expect(proxies.clientOf('10.0.0.1', '203.0.113.9, 198.51.100.1')).toBe('198.51.100.1');
  expect(proxies.clientOf('::ffff:10.0.0.1', '198.51.100.1, 10.2.3.4')).toBe('198.51.100.1');
  expect(proxies.clientOf('2001:db8::1', '198.51.100.1')).toBe('198.51.100.1');
  expect(proxies.clientOf('10.0.0.1', 'junk')).toBe('10.0.0.1');
  expect(proxies.clientOf('10.0.0.1', undefined)).toBe('10.0.0.1');
  expect(() => new TrustedProxies(['example.org'])).toThrow(RangeError);
  expect(() => new TrustedProxies(['10.0.0.0/33'])).toThrow(RangeError);
});

test('nobody gets more than burst plus rate, whatever the pattern, and the table stays bounded', () => {
  const limits = { perSecond: 10, burst: 30, strikes: 1_000_000, blockMillis: 1, maxClients: 4 };
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 1, max: 9 })), { maxLength: 200 }),
      (steps) => {
        const limiter = new RateLimiter(limits);
        let now = 0;
        let taken = 0;
        for (const [wait, cost] of steps) {
          now += wait;
          const verdict = limiter.take('a', cost, now);
          if (verdict.ok) taken += cost;
          else expect(limiter.take('a', cost, now + verdict.retryAfterMillis).ok).toBe(true);
          if (!verdict.ok) {
            now += verdict.retryAfterMillis;
            taken += cost;
          }
          expect(taken).toBeLessThanOrEqual(limits.burst + (now * limits.perSecond) / 1000 + 1e-6);
        }
      },
    ),
  );
  const limiter = new RateLimiter(limits);
  for (let i = 0; i < 100; i++) limiter.take(`client ${i}`, 1, i);
  expect(limiter.clients).toBe(4);
});

test('a clock that is set back neither gives nor blocks', () => {
  const limiter = new RateLimiter(PUBLIC_RATE_LIMIT);
  for (let i = 0; i < PUBLIC_RATE_LIMIT.burst; i++) expect(limiter.take('a', 1, 1_000_000).ok).toBe(true);
  expect(limiter.take('a', 1, 1_000).ok).toBe(false);
  expect(limiter.take('a', 1, 2_000).ok).toBe(true);
});
