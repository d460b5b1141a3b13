import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { ByteReader, ByteWriter, fromHex, toHex } from '../../protocol/bytes.ts';

test('integers survive a round trip in little-endian order', () => {
  const bytes = new ByteWriter().u8(1).u16(0x0203).u32(0x04050607).u64(8n).u128(9n).text('ä').done();
  expect(toHex(bytes)).toBe('0103020706050408000000000000000900000000000000000000000000000002c3a4');
  const reader = new ByteReader(bytes);
  expect([reader.u8(), reader.u16(), reader.u32(), reader.u64(), reader.u128(), reader.text()]).toEqual([
    1,
    0x0203,
    0x04050607,
    8n,
    9n,
    'ä',
  ]);
  reader.end();
});

test('hex has one spelling', () => {
  expect(() => fromHex('AB')).toThrow(/only 0-9 and a-f/);
  expect(() => fromHex('abc')).toThrow(/odd number/);
});

test('a writer grows at any size of field', () => {
  for (let capacity = 1; capacity < 40; capacity++) {
    const writer = new ByteWriter(capacity);
    for (let i = 0; i < 9; i++) writer.u8(i).u16(i).u32(i).u64(BigInt(i)).raw(new Uint8Array(i).fill(i));
    const reader = new ByteReader(writer.done());
    for (let i = 0; i < 9; i++) {
      expect([reader.u8(), reader.u16(), reader.u32(), reader.u64()]).toEqual([i, i, i, BigInt(i)]);
      expect(reader.take(i)).toEqual(new Uint8Array(i).fill(i));
    }
    reader.end();
  }
});

test('hex text that is kept takes the memory of its characters: strangers choose how much of it a wallet reads', () => {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  const key = Uint8Array.from({ length: 1184 }, (_, i) => i);
  const kept: string[] = [];
  gc();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < 2_000; i++) kept.push(toHex(key));
  gc();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(3 * 2_000 * 2 * key.length);
  expect(kept[7]).toBe(Buffer.from(key).toString('hex'));
  expect(toHex(new Uint8Array(0))).toBe('');
});
