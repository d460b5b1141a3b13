/** What a caller learns from a refusal: beside the code, which argument or field was wrong, in its text and as `fields.field`. */
import { beforeAll, expect, test } from 'vitest';
import { type Call, callsOf, changed, isJson, placesOf, withWord } from './calls.ts';
import { loadModule } from './load.ts';

let calls: readonly Call[] = [];

beforeAll(async () => {
  const good = callsOf(await loadModule());
  calls = good.calls;
  return good.free;
});
const call = (name: string): Call => calls.find((one) => one.name === name) as Call;

/** What a refusal says it is about, with the code. */
function refusalOf(call: Call, words: readonly unknown[]): { code: string; field: string; text: string } | undefined {
  try {
    call.work(...(words as never[]));
    return undefined;
  } catch (error) {
    const { code, fields, message } = error as { code: string; fields: { field?: string }; message: string };
    return { code, field: fields.field ?? '', text: message };
  }
}

/** Codes of the codec that are about one value. Those of packages and proofs are about the whole. */
const OF_A_VALUE = /^(field_|bad_hex|amount_text|address_(?!not)|json_|unsupported_kind|unsupported_profile|too_long$)/;

test('a refusal names the argument, and in a document the field with the path to it', () => {
  for (const call of calls)
    for (const [at, word] of call.good.entries()) {
      const told = (text: unknown) => refusalOf(call, withWord(call.good, at, text));
      const named = (text: unknown, what: string, name: string): void => {
        const refused = told(text);
        if (refused === undefined || !OF_A_VALUE.test(refused.code)) return;
        const { field, text: message, code } = refused;
        const where = `${call.name}, argument ${at}, ${what}: ${code} ${message}`;
        expect(field.replaceAll(/\[\d+\]/g, ''), where).toMatch(new RegExp(`(^|[.])${name}$`));
        expect(message, where).not.toContain('undefined');
      };
      for (const junk of [17, 'zz', '', '{', null, {}]) named(junk, String(junk), '[a-z_ ]+(2N)?');
      if (!isJson(word) || call.name === 'openWalletFile') continue;
      for (const path of placesOf(JSON.parse(word))) {
        const name = path.findLast((part) => !/^\d+$/.test(part));
        if (name === undefined) continue;
        for (const value of [true, 'zz', '-1', '', []])
          named(
            changed(word, path, (holder, key) => void Object.assign(holder, { [key]: value })),
            `${path} = ${JSON.stringify(value)}`,
            name,
          );
      }
    }
});

test.each([
  ['request.outputs[0].amount', 'amount_text', { outputs: [{ amount: '1,25' }] }],
  ['request.outputs[0].adress', 'field_unknown', { outputs: [{ adress: '' }] }],
  ['request.fee', 'field_unknown', { fee: '1' }],
  ['request.inputs[0].output_index', 'field_type', { inputs: [{ output_index: 0 }] }],
])('a body with a wrong %s is refused with this name', (field, code, wrong) => {
  const [request, manifest] = call('encodeTransactionBody').good as [string, string];
  const document = JSON.parse(request) as Record<string, unknown>;
  for (const [name, value] of Object.entries(wrong as Record<string, unknown>))
    document[name] = Array.isArray(value)
      ? (document[name] as object[]).map((entry, i) => ({ ...entry, ...(value[i] as object | undefined) }))
      : value;
  const refused = refusalOf(call('encodeTransactionBody'), [JSON.stringify(document), manifest]);
  expect(refused).toEqual({ code, field, text: expect.stringContaining(field) });
});
