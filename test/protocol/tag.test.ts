import { expect, test } from 'vitest';
import { checkTag } from '../../protocol/ledger/tag.ts';

const ALLOWED = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-/:+@#()!';

test('a tag has up to 20 characters: letters, digits, spaces and . _ - / : + @ # ( ) !, and of all others none', () => {
  for (let code = 0; code < 0x3000; code++) {
    const character = String.fromCharCode(code);
    if (ALLOWED.includes(character)) expect(checkTag(`a${character}`)).toBe(`a${character}`);
    else expect(() => checkTag(`a${character}`), `U+${code.toString(16)}`).toThrow('a tag may hold');
  }
  expect(checkTag('')).toBe('');
  expect(checkTag('x'.repeat(20))).toHaveLength(20);
  expect(() => checkTag('x'.repeat(21))).toThrow('at most 20 characters');
});
