import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { ByteReader, ByteWriter, compareBytes, equalBytes, fromHex, toHex } from '../../protocol/bytes.ts';

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

test('integers at their bounds are those of a DataView', () => {
  const view = new DataView(new ArrayBuffer(8));
  for (const value of [
    0,
    1,
    255,
    256,
    65_535,
    65_536,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 40 + 3,
    Number.MAX_SAFE_INTEGER,
  ]) {
    view.setBigUint64(0, BigInt(value), true);
    const bytes = new ByteWriter(8).height(value).done();
    expect(bytes).toEqual(new Uint8Array(view.buffer));
    // Read from the middle of other bytes, as from a message.
    const reader = new ByteReader(Uint8Array.of(7, ...bytes, ...bytes, 9).subarray(1, 17));
    expect(reader.height()).toBe(value);
    expect([reader.u16(), reader.u16(), reader.u32()]).toEqual([
      view.getUint16(0, true),
      view.getUint16(2, true),
      view.getUint32(4, true),
    ]);
    expect(() => reader.u8()).toThrow(/1 bytes wanted, 0 left/);
    if (value < 2 ** 32) expect(toHex(new ByteWriter().u32(value).done())).toBe(toHex(bytes.slice(0, 4)));
    else expect(() => new ByteWriter().u32(value)).toThrow(/not an integer/);
  }
  for (const wrong of [-1, 0.5, 2 ** 53]) expect(() => new ByteWriter().height(wrong)).toThrow(/not an integer/);
  for (const wrong of [-1, 65_536]) expect(() => new ByteWriter().u16(wrong)).toThrow(/not an integer/);
  expect(() => new ByteReader(new Uint8Array(8).fill(255)).height()).toThrow(/too large/);
  expect(() => new ByteReader(new Uint8Array(7)).height()).toThrow(/8 bytes wanted, 7 left/);
});

test('bytes are equal only where all of them are, and one that begins another comes before it', () => {
  const bytes = [[], [1], [1, 2], [1, 3], [2], [2, 1]].map((each) => Uint8Array.from(each));
  for (const [i, a] of bytes.entries())
    for (const [j, b] of bytes.entries())
      expect([equalBytes(a, b), Math.sign(compareBytes(a, b))]).toEqual([i === j, Math.sign(i - j)]);
});

test('a field with a length of its own is not written longer than it may be read', () => {
  expect(new ByteWriter().short(new Uint8Array(16), 16).text('ää', 4).done()).toHaveLength(22);
  expect(() => new ByteWriter().short(new Uint8Array(17), 16)).toThrow('at most 16');
  expect(() => new ByteWriter().text('äää', 5)).toThrow('at most 5');
  expect(() => new ByteWriter().short(new Uint8Array(256))).toThrow('at most 255');
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
  for (const length of [48, 64, 65, 1184]) {
    const key = Uint8Array.from({ length }, (_, i) => i);
    const kept: string[] = [];
    gc();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 2_000; i++) kept.push(toHex(key));
    gc();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(3 * 2_000 * 2 * length);
    expect(kept[7]).toBe(Buffer.from(key).toString('hex'));
  }
  expect(toHex(new Uint8Array(0))).toBe('');
});
