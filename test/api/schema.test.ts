import { expect, test } from 'vitest';
import { check, exactly, integer, list, nullable, object, oneOf, optional, text } from '../../protocol/api/schema.ts';

const schema = object({
  api_version: exactly(1),
  name: text({ maxLength: 4 }),
  kind: oneOf(['a', 'b']),
  sizes: list(integer({ maximum: 9 }), { maxItems: 2 }),
  note: optional(nullable(text())),
});
const good = { api_version: 1, name: 'abcd', kind: 'a', sizes: [1, 9] };

test('a value that fits has no problem', () => {
  expect(check(schema, good)).toBeUndefined();
  expect(check(schema, { ...good, note: null })).toBeUndefined();
  expect(check(schema, { ...good, note: 'x' })).toBeUndefined();
});

test.each([
  ['missing field', { ...good, name: undefined }, 'name'],
  ['wrong constant', { ...good, api_version: 2 }, 'api_version'],
  ['too long', { ...good, name: 'abcde' }, 'name'],
  ['not of the list', { ...good, kind: 'c' }, 'kind'],
  ['not an integer', { ...good, sizes: [1.5] }, 'sizes[0]'],
  ['not a number', { ...good, sizes: ['1'] }, 'sizes[0]'],
  ['negative', { ...good, sizes: [0, -1] }, 'sizes[1]'],
  ['too many', { ...good, sizes: [1, 2, 3] }, 'sizes'],
  ['unknown field', { ...good, extra: 1 }, 'extra'],
  ['inherited name', JSON.parse('{"api_version":1,"name":"a","kind":"a","sizes":[],"__proto__":{}}'), '__proto__'],
  ['an array', [], '(document)'],
  ['null', null, '(document)'],
])('%s is named', (_, value, field) => {
  expect(check(schema, value)?.field).toBe(field);
});

test('a reader of answers lets new fields pass', () => {
  expect(check(schema, { ...good, extra: 1 }, '', { unknownFields: 'ignore' })).toBeUndefined();
});
