import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../temporary.ts';

test('two processes that write one file do not disturb each other', async () => {
  const path = join(temporaryDirectory(), 'state');
  const code = (
    letter: string,
  ) => `import { writeDurably } from ${JSON.stringify(import.meta.resolve('../../runtime/files/durable-file.ts'))};
    for (let i = 0; i < 100; i++) await writeDurably(${JSON.stringify(path)}, '${letter}'.repeat(10_000));`;
  const ends = ['a', 'b'].map(async (letter) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', code(letter)], { stdio: 'inherit' });
    return (await once(child, 'exit'))[0];
  });
  expect(await Promise.all(ends)).toEqual([0, 0]);
  expect(readFileSync(path, 'utf8')).toMatch(/^(a{10000}|b{10000})$/);
});
