/**
 * Every stratum decoder under the property of fuzz.ts: a value that encodes back, or a typed refusal. v1 admits other
 * spellings, so there 'encodes back' means: to a canonical text with the same value.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Bytes, concat, fromHex, fromUtf8, toHex, utf8 } from '../../protocol/bytes.ts';
import { attempt, ProtocolError } from '../../protocol/errors.ts';
import { FrameSplitter, readFrame, sniff } from '../../protocol/stratum/frame.ts';
import { MAX_DEPTH, MAX_VALUES, parseJson } from '../../protocol/stratum/json.ts';
import { LineSplitter, MAX_LINE_BYTES } from '../../protocol/stratum/line.ts';
import { parsePassword, parseUsername } from '../../protocol/stratum/username.ts';
import {
  decodeServerMessage,
  encodeError,
  encodeNotification,
  encodeResult,
  type ServerMessage,
} from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, encodeRequest } from '../../protocol/stratum/v1-request.ts';
import {
  decodeClientFrame,
  decodeServerFrame,
  encodeClientFrame,
  encodeServerFrame,
} from '../../protocol/stratum/v2.ts';
import { count, seed } from '../level.ts';
import { arbitraryInput, type Codec, codePoint, fuzzDecoder } from './fuzz.ts';
import { methodOf, v1, v2 } from './stratum-vectors.ts';

const runs = count({ quick: 200, full: 2000, deep: 100_000 });
const requestTexts = v1.toServer.map(({ text }) => utf8(text));
const answerTexts = v1.toMiner.map(({ text }) => utf8(text));
const clientFrames = v2.toServer.map(({ hex }) => fromHex(hex));
const serverFrames = v2.toMiner.map(({ hex }) => fromHex(hex));

function answerText(message: ServerMessage): string {
  if (message.kind === 'result') return encodeResult(message.id, message);
  return message.kind === 'error' ? encodeError(message.id, message.error) : encodeNotification(message);
}

const clientCodec: Codec<ReturnType<typeof decodeClientFrame>> = {
  name: 'v2 client frame',
  decode: (bytes) => decodeClientFrame(readFrame(bytes)),
  encode: encodeClientFrame,
  samples: clientFrames,
};
const serverCodec: Codec<ReturnType<typeof decodeServerFrame>> = {
  name: 'v2 server frame',
  decode: (bytes) => decodeServerFrame(readFrame(bytes)),
  encode: encodeServerFrame,
  samples: serverFrames,
};

test('v2 client frames', () => fuzzDecoder(clientCodec));
test('v2 server frames', () => fuzzDecoder(serverCodec));

test('v1 requests: a value with the same meaning, or the answer owed', () => {
  const outcomes = new Map<string, number>();
  fc.assert(
    fc.property(arbitraryInput([...requestTexts, ...v1.toServerSpellings.map(({ text }) => utf8(text))]), (bytes) => {
      const decoded = decodeRequest(bytes);
      const outcome = decoded.kind === 'invalid' ? String(decoded.code) : 'accepted';
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      const text = attempt(() => fromUtf8(bytes));
      // The general reader alone must see the same as the quick one before it.
      if (text.ok) expect(decodeRequest(text.value)).toEqual(decoded);
      if (decoded.kind === 'request') expect(decodeRequest(encodeRequest(decoded.id, decoded))).toEqual(decoded);
    }),
    { seed, numRuns: runs },
  );
  console.log(`fuzz v1 requests: ${runs} inputs: ${[...outcomes].map((entry) => entry.join(' ')).join(', ')}`);
  expect(outcomes.get('accepted')).toBeGreaterThan(0);
});

test('v1 answers: a value with the same meaning, or a typed refusal', () => {
  let accepted = 0;
  fc.assert(
    fc.property(arbitraryInput(answerTexts), (bytes) => {
      const decoded = attempt(() => decodeServerMessage(bytes, methodOf));
      if (!decoded.ok) return;
      accepted++;
      expect(decodeServerMessage(answerText(decoded.value), methodOf)).toEqual(decoded.value);
    }),
    { seed, numRuns: runs },
  );
  console.log(`fuzz v1 answers: ${runs} inputs, ${accepted} accepted`);
  expect(accepted).toBeGreaterThan(0);
});

describe('every truncation is refused', () => {
  const cuts = (bytes: Bytes) => Array.from({ length: bytes.length }, (_, i) => bytes.subarray(0, i));
  test('v1', () => {
    for (const text of requestTexts)
      for (const cut of cuts(text))
        expect(decodeRequest(cut)).toMatchObject({ kind: 'invalid', code: -32700, id: null });
    for (const text of answerTexts)
      for (const cut of cuts(text)) expect(attempt(() => decodeServerMessage(cut, methodOf)).ok).toBe(false);
  });
  test('v2', () => {
    for (const { samples, decode } of [clientCodec, serverCodec] as Codec<unknown>[])
      for (const frame of samples)
        for (const cut of cuts(frame)) {
          const refusal = attempt(() => decode(cut));
          expect(refusal.ok ? 'accepted' : refusal.error.code).toBe('truncated');
        }
  });
});

test('JSON is read as JSON.parse reads it, but for what is refused on purpose', () => {
  const plain = (value: unknown): unknown => {
    if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, plain(item)]));
    return Array.isArray(value) ? value.map(plain) : value;
  };
  let accepted = 0;
  const nearJson = fc.oneof(
    fc.json({ maxDepth: 3 }),
    fc.json({ maxDepth: 3, stringUnit: codePoint }).map((text) => ` ${text.replaceAll(',', ' ,\t')}\r\n`),
    fc.stringMatching(/^[[\]{}",:0-9.eE+\-\\utrfalsn ]{0,24}$/),
  );
  fc.assert(
    fc.property(nearJson, (text) => {
      const strict = attempt(() => parseJson(text));
      let loose: { value: unknown } | null = null;
      try {
        loose = { value: JSON.parse(text) };
      } catch {
        loose = null;
      }
      if (strict.ok) {
        accepted++;
        expect(JSON.stringify(plain(strict.value))).toBe(JSON.stringify(loose?.value));
      } else if (loose !== null) {
        expect(['duplicate_entry', 'json_depth', 'too_long', 'bad_utf8']).toContain(strict.error.code);
      }
    }),
    { seed, numRuns: runs },
  );
  console.log(`fuzz JSON: ${runs} texts, ${accepted} accepted`);
});

test('JSON bombs are refused early', () => {
  const code = (text: string) => {
    const result = attempt(() => parseJson(text));
    return result.ok ? 'accepted' : result.error.code;
  };
  expect(code('['.repeat(16_000))).toBe('json_depth');
  expect(code('{"a":'.repeat(3000))).toBe('json_depth');
  expect(code(`${'['.repeat(MAX_DEPTH)}${']'.repeat(MAX_DEPTH)}`)).toBe('accepted');
  expect(code(`[${'{},'.repeat(5000)}{}]`)).toBe('too_long');
  expect(
    code(
      `[${Array(MAX_VALUES - 1)
        .fill('0')
        .join()}]`,
    ),
  ).toBe('accepted');
  expect(code('{"__proto__":1,"__proto__":2}')).toBe('duplicate_entry');
  expect(code('{"a":1,"\\u0061":2}')).toBe('duplicate_entry');
  expect(code('"\\ud83d"')).toBe('bad_utf8');
  expect(code('"\\ud83d\\ude00"')).toBe('accepted');
  const long = `{"jsonrpc":"2.0","id":1,"method":"mining.ping"${' '.repeat(MAX_LINE_BYTES)}}`;
  expect(decodeRequest(long)).toMatchObject({ code: -32700 });
  expect(decodeRequest(utf8(long))).toMatchObject({ code: -32700 });
  expect(decodeRequest('\ud800')).toMatchObject({ code: -32700 });
  expect(decodeRequest('é'.repeat(MAX_LINE_BYTES / 2 + 1))).toMatchObject({ code: -32700 });
});

test('usernames and passwords of any text are read or refused', () => {
  const near = fc.oneof(
    fc.string(),
    fc.string({ unit: codePoint }),
    fc.stringMatching(/^(d|min)=[0-9.e-]{0,45}(,x)?$/),
  );
  fc.assert(
    fc.property(near, (text) => {
      for (const read of [() => parseUsername(text, 'development'), () => parsePassword(text)]) {
        const result = attempt<unknown>(read);
        if (!result.ok) expect(result.error).toBeInstanceOf(ProtocolError);
      }
    }),
    { seed, numRuns: runs },
  );
  console.log(`fuzz usernames and passwords: ${runs} texts`);
});

/** Cuts `bytes` at the given places. */
function pieces(bytes: Bytes, places: readonly number[]): Bytes[] {
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end));
}

const places = fc.array(fc.nat({ max: 20_000 }), { maxLength: 40 });

test('lines come out the same however the stream is cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...requestTexts, new Uint8Array(0)), { maxLength: 8 }),
      places,
      (lines, cuts) => {
        const stream = concat(...lines.flatMap((line) => [line, Uint8Array.of(10)]), utf8('{"unfin'));
        const splitter = new LineSplitter();
        const got: string[] = [];
        for (const piece of pieces(stream, cuts)) splitter.push(piece, (line) => got.push(fromUtf8(line)) > 0);
        expect(got).toEqual(lines.map((line) => fromUtf8(line)));
        expect(splitter.held).toBe(7);
      },
    ),
    { seed, numRuns: runs },
  );
  console.log(`fuzz line splitter: ${runs} streams`);
});

test('frames come out the same however the stream is cut', () => {
  const sample = fc.constantFrom(...clientFrames, ...serverFrames, fromHex('0000aa'));
  fc.assert(
    fc.property(fc.array(sample, { maxLength: 8 }), places, fc.nat({ max: 18 }), (frames, cuts, held) => {
      const unfinished = (clientFrames[4] as Bytes).subarray(0, held);
      const stream = concat(...frames, unfinished);
      const splitter = new FrameSplitter();
      const got: string[] = [];
      for (const piece of pieces(stream, cuts))
        splitter.push(piece, (type, payload) => got.push(`${type}/${toHex(payload)}`) > 0);
      expect(got).toEqual(frames.map((frame) => `${frame[2]}/${toHex(frame.subarray(3))}`));
      expect(splitter.held).toBe(held);
    }),
    { seed, numRuns: runs },
  );
  console.log(`fuzz frame splitter: ${runs} streams`);
});

test('splitters stop when told to, and hold no more than one message', () => {
  const lines = new LineSplitter();
  const seen: string[] = [];
  lines.push(utf8('a\nb\nc'), (line) => seen.push(fromUtf8(line)) < 1);
  expect(seen).toEqual(['a']);
  expect(lines.held).toBe(0);
  const take = () => true;
  lines.push(new Uint8Array(MAX_LINE_BYTES - 1).fill(32), take);
  expect(() => lines.push(utf8(' '), take)).toThrow(ProtocolError);
  expect(lines.held).toBe(0);
  const lengths: number[] = [];
  lines.push(concat(new Uint8Array(MAX_LINE_BYTES - 1).fill(32), utf8('\n')), (line) => lengths.push(line.length) > 0);
  expect(lengths).toEqual([MAX_LINE_BYTES - 1]);
  expect(() => lines.push(concat(new Uint8Array(MAX_LINE_BYTES).fill(32), utf8('\n')), take)).toThrow(ProtocolError);

  const frames = new FrameSplitter();
  expect(() => frames.push(fromHex('0110'), take)).toThrow(ProtocolError);
  frames.push(fromHex('01'), take);
  expect(() => frames.push(fromHex('1030'), take)).toThrow(ProtocolError);
  expect(frames.held).toBe(0);
  frames.push(concat(fromHex('001030'), new Uint8Array(4095)), take);
  expect(frames.held).toBe(4098);
  const types: number[] = [];
  frames.push(concat(new Uint8Array(1), fromHex('000001000002')), (type) => types.push(type) < 2);
  expect(types).toEqual([0x30, 1]);
});

test('the first bytes tell the wire form', () => {
  const form = (text: string) => sniff(utf8(text));
  expect([form(''), form('S'), form('SV'), form('SVC')]).toEqual(['more', 'more', 'more', 'more']);
  expect([form('SVC2'), form('SVC2\x01'), form('{'), form('\x16\x03')]).toEqual(['v2', 'v2', 'v1', 'tls']);
  expect([form('SVC1'), form('GET / '), form(' {'), form('SX')]).toEqual(['unknown', 'unknown', 'unknown', 'unknown']);
});
