import { expect, test } from 'vitest';
import { checkTag } from '../../protocol/ledger/tag.ts';

const ALLOWED = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._-/:+@#()!';

test('a tag has up to 20 characters: letters, digits, spaces and . _ - / : + @ # ( ) !, and of all others none', () => {
  const answerTo = (tag: string): string => {
    try {
      return checkTag(tag);
    } catch (error) {
      return String(error);
    }
  };
  for (let code = 0; code < 0x3000; code++) {
    const tag = `a${String.fromCharCode(code)}`;
    const answer = answerTo(tag);
    const isRight = ALLOWED.includes(tag.slice(1)) ? answer === tag : answer.includes('a tag may hold');
    if (!isRight) expect.fail(`U+${code.toString(16)}: ${answer}`);
  }
  expect(checkTag('')).toBe('');
  expect(checkTag('x'.repeat(20))).toHaveLength(20);
  expect(() => checkTag('x'.repeat(21))).toThrow('at most 20 characters');
});
