/** `--fixed-work`: how it is written, and what it needs. */
import { expect, test } from 'vitest';
import { poolOptions } from '../../pool/options.ts';
import { checkOptions } from '../../pool/start/check-options.ts';
import { parseCommandLine } from '../../runtime/command-line/command-line.ts';
import { shownOptions } from '../../runtime/doctor/shown-options.ts';

const read = (...words: string[]) =>
  parseCommandLine({ name: 'svc-pool', summary: '', options: poolOptions }, words, () => '');
const valuesOf = (...words: string[]) => {
  const parsed = read(...words);
  if (parsed.kind !== 'run') throw new Error(parsed.kind);
  return parsed.values;
};

test('a port and its work, of PPLNS or solo; anything else is refused', () => {
  expect(valuesOf('--fixed-work', '28722=1000', '--fixed-work', 'solo:1=5').fixedWork).toMatchObject([
    { service: 'pplns', port: 28_722, work: 1_000n },
    { service: 'solo', port: 1, work: 5n },
  ]);
  for (const word of ['', '28722', '0=5', '65536=5', '28722=0', '28722=-1', '28722=1e9', 'other:1=5', '1=2=3'])
    expect(read('--fixed-work', word).kind, word).toBe('usage');
});

test('the operator sees it, and a port on the host of a listener that is off is refused', () => {
  const words = ['--fixed-work', 'solo:28732=1000'];
  expect(JSON.stringify(shownOptions(valuesOf(...words)))).toContain('28732');
  expect(() => checkOptions(valuesOf(...words))).not.toThrow();
  expect(() => checkOptions(valuesOf(...words, '--solo-listen', 'off'))).toThrow(/--solo-listen, which is off/);
});
