import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { readJournal } from '../../pool/journal/journal.ts';
import { count, seed } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';

test('whatever kill -9 hits, every answered record is there', async () => {
  const rounds = count({ quick: 1, full: 4, deep: 40 });
  const script = `
    import { Journal } from ${JSON.stringify(new URL('../../pool/journal/journal.ts', import.meta.url).href)};
    const journal = await Journal.open({ directory: process.argv[1], bootId: new Uint8Array(8), segmentBytes: 4096 });
    for (let i = 0; ; i++) {
      const sequence = await journal.append([new TextEncoder().encode('r' + i)]);
      process.stdout.write(sequence + '\\n');
    }
  `;
  for (let round = 0; round < rounds; round++) {
    const directory = temporaryDirectory();
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, directory], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let answered = '';
    child.stdout.on('data', (chunk) => {
      answered += chunk;
    });
    await new Promise<void>((resolve) => child.stdout.once('data', () => resolve()));
    await new Promise((resolve) => setTimeout(resolve, 20 + ((seed + round * 37) % 150)));
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
    const last = Number(answered.trimEnd().split('\n').at(-1));
    const found = [];
    for await (const batch of readJournal(directory, '0000000000000000', -1)) found.push(...batch);
    expect(found.length).toBeGreaterThan(last);
    found.forEach((entry, i) => {
      expect(new TextDecoder().decode(entry.record)).toBe(`r${i}`);
    });
  }
});
