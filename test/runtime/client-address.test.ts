import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addressList,
  clientKey,
  isLoopback,
  proxiedAddress,
  TrustedProxies,
} from '../../runtime/clients/client-address.ts';
import { seed } from '../level.ts';

test('clients are distinguished by IPv4 address or IPv6 /64', () => {
  expect(clientKey('192.0.2.1')).toBe('192.0.2.1');
  expect(clientKey('::ffff:192.0.2.1')).toBe('192.0.2.1');
  expect(clientKey('::ffff:c000:201')).toBe('192.0.2.1');
  expect(clientKey('2001:db8::1')).toBe('2001:db8:0:0::/64');
  expect(clientKey('2001:db8:0:0:ffff:ffff:ffff:ffff')).toBe('2001:db8:0:0::/64');
  expect(clientKey('2001:db8:0:1::1')).toBe('2001:db8:0:1::/64');
  expect(clientKey('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
  expect(clientKey('::1')).toBe('::1');
  expect(clientKey('0:0:0:0:0:FFFF:7f00:0001')).toBe('127.0.0.1');
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
    { seed },
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
  // A request of the proxies' own: the first of them is the client.
  expect(proxies.clientOf('10.0.0.1', '10.2.3.4, 10.2.3.5')).toBe('10.2.3.4');
  expect(() => new TrustedProxies(['example.org'])).toThrow(RangeError);
});

test('the key of a key is itself, for every address in every spelling', () => {
  const address = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV4().map((text) => `::ffff:${text}`),
    fc.ipV4().map(
      (text) =>
        `::FFFF:${text
          .split('.')
          .map((n) => Number(n).toString(16).padStart(2, '0'))
          .join('')
          .replace(/(.{4})$/, ':$1')}`,
    ),
    fc.ipV4().map(proxiedAddress),
    fc.constantFrom('::1', '127.0.0.1', '::ffff:127.0.0.1', 'junk', ''),
  );
  fc.assert(
    fc.property(address, (text) => {
      expect(clientKey(clientKey(text))).toBe(clientKey(text));
      expect(clientKey(proxiedAddress(text))).toBe(clientKey(proxiedAddress(clientKey(text))));
      expect(isLoopback(proxiedAddress(text))).toBe(false);
      expect(isLoopback(text)).toBe(isLoopback(clientKey(text)));
    }),
    { seed },
  );
});

test('an IPv4 client is one client, mapped or not, and a list of addresses knows it in both forms', () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.ipV4(), (one, other) => {
      const mapped = `::ffff:${one}`;
      expect(clientKey(mapped)).toBe(clientKey(one));
      if (one !== other) expect(clientKey(mapped)).not.toBe(clientKey(`::ffff:${other}`));
      for (const entry of [one, mapped, `${one}/32`, `${mapped}/128`]) {
        expect(addressList([entry])(mapped)).toBe(true);
        expect(addressList([entry])(one)).toBe(true);
        expect(addressList([entry])(other)).toBe(one === other);
      }
    }),
    { seed },
  );
  expect(addressList(['::ffff:10.0.0.0/104'])('10.200.0.1')).toBe(true);
  expect(addressList(['::ffff:10.0.0.0/104'])('11.0.0.1')).toBe(false);
  expect(addressList(['2001:db8::/32'])('2001:DB8:1::5')).toBe(true);
  expect(addressList(['2001:db8::/32'])('2001:db9::5%eth0')).toBe(false);
});

test('a wrong entry of an address list is named', () => {
  for (const entry of ['10.0.0.0/33', '10.0.0.0/x', '10.0.0.0/', '::/129', 'example', ''])
    expect(() => addressList([entry])).toThrow(`'${entry}'`);
});

test('a proxy that hides its clients is reported, once, with the remedy', () => {
  const warned: Readonly<Record<string, unknown>>[] = [];
  const proxies = new TrustedProxies(['10.0.0.1'], {
    option: '--trusted-proxy',
    warn: (_message, fields) => warned.push(fields),
  });
  // Anybody may write a header; it means nothing and is no reason to warn.
  expect(proxies.hidesClients('192.0.2.1', '198.51.100.1')).toBe(false);
  expect(proxies.hidesClients('127.0.0.1', undefined)).toBe(false);
  expect(proxies.hidesClients('10.0.0.1', '198.51.100.1')).toBe(false);
  expect(warned).toEqual([]);
  for (let i = 0; i < 3; i++) {
    expect(proxies.hidesClients('10.0.0.1', undefined)).toBe(true);
    expect(proxies.hidesClients('10.0.0.1', 'junk')).toBe(true);
    expect(proxies.hidesClients('::ffff:127.0.0.1', '198.51.100.1')).toBe(true);
  }
  const remedy = 'set X-Forwarded-For in the proxy, and list the proxy with --trusted-proxy';
  expect(warned).toEqual([
    { proxy: '10.0.0.1', reason: 'the proxy does not name its clients', remedy },
    { proxy: '127.0.0.1', reason: 'the proxy is not listed', remedy },
  ]);
});
