/** Which tests are near a file: those that import it, directly or through few others. */
export type Near = { readonly test: string; readonly distance: number };

/**
 * The tests from which the file is reached, nearest first; of equally near ones those in a folder of the same name, then those that
 * take less time.
 * @param imports for every file, the files that it imports
 */
export function nearestTests(
  file: string,
  imports: ReadonlyMap<string, readonly string[]>,
  secondsOf: (test: string) => number,
): Near[] {
  const importers = new Map<string, string[]>();
  for (const [from, targets] of imports)
    for (const target of targets) {
      const known = importers.get(target);
      if (known === undefined) importers.set(target, [from]);
      else known.push(from);
    }
  const distances = new Map([[file, 0]]);
  for (const [path, distance] of distances)
    for (const importer of importers.get(path) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  const rank = (test: string): number => (sharedWords(file, test) > 0 ? 0 : 1);
  return [...distances]
    .filter(([path]) => path.endsWith('.test.ts'))
    .map(([test, distance]) => ({ test, distance }))
    .toSorted(
      (a, b) => a.distance - b.distance || rank(a.test) - rank(b.test) || secondsOf(a.test) - secondsOf(b.test),
    );
}

const wordsOf = (path: string): string[] => path.replace(/\.(slow\.)?(test\.)?ts$/, '').split(/[/-]/);

function sharedWords(file: string, test: string): number {
  const words = new Set(wordsOf(test).slice(1));
  return wordsOf(file).filter((word) => words.has(word)).length;
}
