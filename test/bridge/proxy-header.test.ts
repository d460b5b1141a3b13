import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readProxyHeader } from '../../bridge/connection/proxy-header.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { seed } from '../level.ts';

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
const v2 = (command: number, family: number, body: readonly number[], rest: readonly number[] = []) =>
  Uint8Array.from([...SIGNATURE, 0x20 | command, family, body.length >> 8, body.length & 255, ...body, ...rest]);
const octet = fc.integer({ min: 0, max: 255 });
const octets = (length: number) => fc.array(octet, { minLength: length, maxLength: length });

test('both versions name the source, and leave what follows', () => {
  fc.assert(
    fc.property(octets(4), octets(4), octets(16), octets(16), fc.uint8Array({ maxLength: 50 }), (a, b, c, d, rest) => {
      const four = readProxyHeader(v2(1, 0x11, [...a, ...b, 0, 1, 0, 2], [...rest]));
      expect(four).toEqual({ kind: 'header', address: a.join('.'), length: 28 });
      const six = readProxyHeader(v2(1, 0x21, [...c, ...d, 0, 1, 0, 2], [...rest]));
      expect(six).toMatchObject({ kind: 'header', length: 52 });
      const line = `PROXY TCP4 ${a.join('.')} ${b.join('.')} 1 2\r\n`;
      const text = readProxyHeader(Uint8Array.from([...utf8(line), ...rest]));
      expect(text).toEqual({ kind: 'header', address: a.join('.'), length: line.length });
    }),
    { seed },
  );
});

test.each([
  ['UNKNOWN', utf8('PROXY UNKNOWN\r\n')],
  ['UNKNOWN with more words', utf8('PROXY UNKNOWN ffff:: ffff:: 1 2\r\n')],
  ['LOCAL', v2(0, 0, [])],
  ['LOCAL with addresses that count for nothing', v2(0, 0x11, [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2])],
  ['an unspecified family', v2(1, 0, [])],
])('%s names nobody', (_name, bytes) => {
  expect(readProxyHeader(bytes)).toEqual({ kind: 'header', address: null, length: bytes.length });
});

test.each([
  ['a family that is no stream of addresses', v2(1, 0x12, [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2])],
  ['too few bytes for its family', v2(1, 0x11, [1, 2, 3])],
  ['an unknown command', v2(2, 0x11, [1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 2])],
  ['a length beyond all use', Uint8Array.from([...SIGNATURE, 0x21, 0x11, 0xff, 0xff])],
  ['IPv6 under the name of IPv4', utf8('PROXY TCP4 ::1 ::1 1 2\r\n')],
  ['a missing port', utf8('PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n')],
  ['a line without CR', utf8('PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n')],
])('%s is refused', (_name, bytes) => {
  expect(readProxyHeader(bytes).kind).toBe('invalid');
});

test('whatever the bytes are: no throw, no read beyond them, and a part of a header asks for more', () => {
  const start = fc.constantFrom<readonly number[]>([], SIGNATURE, [...utf8('PROXY ')], [...utf8('PROXY TCP6 ')]);
  fc.assert(
    fc.property(start, fc.uint8Array({ maxLength: 200 }), (head, tail) => {
      const bytes = Uint8Array.from([...head, ...tail]);
      const found = readProxyHeader(bytes);
      if (found.kind !== 'header') return;
      expect(found.length).toBeLessThanOrEqual(bytes.length);
      for (let cut = 0; cut < found.length; cut++) expect(readProxyHeader(bytes.subarray(0, cut)).kind).toBe('more');
    }),
    { seed, numRuns: 2_000 },
  );
});
