/**
 * Every function with every argument missing, of the wrong type, out of range, damaged, or of another chain and network; wallet files cut short, made longer and with
 * flipped bits. Whatever comes in, what comes out is an answer or an error with a code: no crash, no hang, no other exception.
 */
import { beforeAll, expect, test } from 'vitest';
import { MODULE_ERRORS } from '../../module/module-error.ts';
import { PROTOCOL_ERROR_CODES } from '../../protocol/errors.ts';
import { repeats, seed } from '../level.ts';
import { randomOf } from '../random.ts';
import { type Call, callsOf, changed, isJson, outcome, placesOf, withWord } from './calls.ts';
import { codeOf, loadModule, type Module } from './load.ts';
import { MANIFEST, manifestOf } from './payment.ts';

let module: Module;
let calls: readonly Call[] = [];
let file = '';
const random = randomOf(seed);

beforeAll(async () => {
  module = await loadModule();
  const good = callsOf(module);
  ({ calls, file } = good);
  return good.free;
});

const KNOWN = new Set<string>([...MODULE_ERRORS, ...PROTOCOL_ERROR_CODES]);
const isFine = (code: string): boolean => code === 'nothing refused' || KNOWN.has(code);
const JUNK: readonly unknown[] = [
  undefined,
  null,
  true,
  17,
  -1,
  1.5,
  Number.NaN,
  2 ** 53,
  10n,
  Symbol('x'),
  {},
  [],
  () => 1,
  new Uint8Array(3),
  '',
  ' ',
  '0',
  '-1',
  'zz',
  '00',
  'AB',
  'null',
  '[]',
  '{}',
  '"',
  '[[[[[[[[1]]]]]]]]',
  '\ud800',
  '\0',
  '{"__proto__":{}}',
  '18446744073709551616',
  'x'.repeat(100_000),
];

test('the good arguments are good, but for an answer that nobody signed', () => {
  for (const call of calls)
    expect([call.name, outcome(call, call.good)]).toEqual([
      call.name,
      call.name === 'verifyServiceResponse' ? 'answer_nonce' : 'nothing refused',
    ]);
});

test('junk in place of every argument, and every argument left out', () => {
  for (const call of calls)
    for (const [at] of call.good.entries()) {
      for (const junk of JUNK) {
        // The usual cost of scrypt: a good call, and a long one.
        if (junk === undefined && call.name === 'sealWalletFile' && at === 2) continue;
        const code = outcome(call, withWord(call.good, at, junk));
        expect(isFine(code), `${call.name}, argument ${at}, ${String(junk).slice(0, 20)}: ${code}`).toBe(true);
      }
      if (at < call.good.length - (call.optional ?? 0))
        expect(outcome(call, withWord(call.good, at, undefined)), `${call.name}, argument ${at} missing`).not.toBe(
          'nothing refused',
        );
    }
});

test('every field of every document missing, of another type, out of range; and one too many', () => {
  const values = [null, 0, -1, 1.5, true, '', 'x', '-1', '1e3', '00', '99999999999999999999', [], {}, [1], { a: 1 }];
  for (const call of calls)
    for (const [at, word] of call.good.entries()) {
      if (!isJson(word)) continue;
      const judge = (text: string, what: string): string => {
        const code = outcome(call, withWord(call.good, at, text));
        expect(isFine(code), `${call.name}, argument ${at}, ${what}: ${code}`).toBe(true);
        return code;
      };
      for (const path of placesOf(JSON.parse(word))) {
        if (path.length === 0) continue;
        const gone = judge(
          changed(word, path, (holder, name) =>
            Array.isArray(holder) ? holder.splice(Number(name), 1) : delete holder[name],
          ),
          `without ${path}`,
        );
        // An entry of a list may be missing, and so may an operation.
        if (!/^\d+$/.test(path.at(-1) as string) && path.join() !== 'operation')
          expect(gone, `${call.name} without ${path}`).not.toBe('nothing refused');
        for (const value of values)
          judge(
            changed(word, path, (holder, name) => void Object.assign(holder, { [name]: value })),
            `${path} = ${JSON.stringify(value)}`,
          );
      }
      if (word.startsWith('{') && call.name !== 'openWalletFile') {
        const more = judge(JSON.stringify({ ...(JSON.parse(word) as object), one_more: 1 }), 'one field more');
        // A manifest of a newer node may say more, and so does a chat that is shown to people.
        const mayHaveMore = word === MANIFEST || 'accept_ciphertext' in (JSON.parse(word) as object);
        if (!mayHaveMore) expect(more, call.name).toBe('field_unknown');
      }
      judge(word.slice(0, -1), 'cut short');
      judge(`${word}x`, 'text behind it');
    }
});

test('hex that is cut short, too long, upper case, or has a flipped bit', () => {
  const rounds = repeats({ quick: 2, full: 12, deep: 1000 });
  for (const call of calls)
    for (const [at, word] of call.good.entries()) {
      if (typeof word !== 'string' || word.length < 12 || !/^([0-9a-f]{2})+$/.test(word)) continue;
      for (let i = 0; i < rounds; i++) {
        const place = random(word.length / 2);
        const byte = Number.parseInt(word.slice(2 * place, 2 * place + 2), 16) ^ (1 << (i & 7));
        const flipped = word.slice(0, 2 * place) + byte.toString(16).padStart(2, '0') + word.slice(2 * place + 2);
        for (const text of [
          flipped,
          word.slice(0, 2 * place),
          word.slice(0, 2 * place + 1),
          `${word}00`,
          word + word,
          word.toUpperCase(),
        ]) {
          const code = outcome(call, withWord(call.good, at, text));
          expect(isFine(code), `${call.name}, argument ${at}: ${code}`).toBe(true);
        }
      }
    }
});

test('arguments of another chain, network or wallet', () => {
  const other = manifestOf({ network: 'testnet' });
  for (const call of calls)
    for (const [at, word] of call.good.entries()) {
      if (word === MANIFEST && call.name !== 'validateManifest') {
        const code = outcome(call, withWord(call.good, at, other));
        // What names no address is the same on every network; the chain decides.
        expect(['nothing refused', 'address_network', 'wrong_network'], call.name).toContain(code);
      }
      if (word === 'development') expect(isFine(outcome(call, withWord(call.good, at, 'mainnet')))).toBe(true);
    }
  const spends = call('verifyTransaction').good[1] as string;
  const foreign = spends.replace(/dsvc1[a-z0-9]+/, module.burnAddress('testnet'));
  expect(outcome(call('verifyTransaction'), withWord(call('verifyTransaction').good, 1, foreign))).toBe(
    'address_network',
  );
  expect(outcome(call('parseAddress'), withWord(call('parseAddress').good, 1, 'mainnet'))).toBe('address_network');
  expect(outcome(call('verifyAddressProof'), withWord(call('verifyAddressProof').good, 2, 'mainnet'))).toBe(
    'wrong_network',
  );
});
const call = (name: string): Call => calls.find((one) => one.name === name) as Call;

test('wallet files that are cut short, made longer, or have a flipped bit are refused', () => {
  const open = (text: string): string => codeOf(() => module.openWalletFile(text, 'x').free());
  expect(open(file)).toBe('nothing refused');
  const rounds = repeats({ quick: 20, full: 150, deep: 100_000 });
  const bytes = Buffer.from(file);
  for (let i = 0; i < rounds; i++) {
    const at = random(bytes.length);
    const flipped = Buffer.from(bytes);
    flipped[at] = (flipped[at] as number) ^ (1 << random(8));
    const text = flipped.toString('latin1');
    const code = open(text);
    // White space between the fields is not part of what is sealed, nor are the cost and names that lie outside what a file may have.
    const isSame = (() => {
      try {
        return JSON.stringify(JSON.parse(text)) === JSON.stringify(JSON.parse(file));
      } catch {
        return false;
      }
    })();
    expect(isSame ? ['nothing refused'] : ['file_damaged', 'file_password', 'file_cost', 'bad_utf8'], text).toContain(
      code,
    );
    // Without the line break at its end it is the same file.
    const shorter = file.slice(0, at % file.trimEnd().length);
    if (i % 10 === 0) expect(['file_damaged', 'file_password']).toContain(open(shorter));
  }
  expect(open(file + ' '.repeat(70_000))).toBe('too_long');
  expect(open(file.replace(/"box": "/, `"box": "${'00'.repeat(20_000)}`))).toBe('file_damaged');
  expect(open(file.replace(/"salt": "/, `"salt": "${'00'.repeat(2000)}`))).toBe('file_damaged');
});
