/** Versions and the changelog's section of a release. */
import { expect, test } from 'vitest';
import { compareVersions, hasSection, isVersion, releasedChangelog, shortened } from '../../scripts/release/version.ts';

test('versions are those of SemVer, without build metadata', () => {
  for (const text of ['0.0.0', '1.0.0', '10.20.30', '1.0.0-rc.1', '1.0.0-0', '1.0.0-x-y.7z', '1.0.0-0a'])
    expect(isVersion(text), text).toBe(true);
  for (const text of [
    '',
    '1',
    '1.0',
    'v1.0.0',
    '01.0.0',
    '1.0.0-',
    '1.0.0-01',
    '1.0.0-a..b',
    '1.0.0+build',
    '1.0.0 ',
    '1.0.0\n',
  ])
    expect(isVersion(text), JSON.stringify(text)).toBe(false);
});

test('versions are ordered as SemVer 2.0.0 orders its own examples', () => {
  const rising = [
    '0.9.10',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
    '1.0.0-rc.1',
    '1.0.0',
    '1.0.1',
    '1.2.0',
    '1.10.0',
    '2.0.0',
  ];
  for (const [i, a] of rising.entries())
    for (const [j, b] of rising.entries()) expect(Math.sign(compareVersions(a, b)), `${a} ${b}`).toBe(Math.sign(i - j));
});

const BEFORE = '# Changelog\n\n## Unreleased\n\n### Can be used\n- new\n\n## 0.9.0 (2026-01-01)\n- old\n';

test('a release takes what was unreleased, and leaves an empty section above it', () => {
  const after = releasedChangelog(BEFORE, '1.0.0', '2026-02-03');
  expect(after).toBe(
    '# Changelog\n\n## Unreleased\n\n## 1.0.0 (2026-02-03)\n\n### Can be used\n- new\n\n## 0.9.0 (2026-01-01)\n- old\n',
  );
  expect(['1.0.0', '0.9.0', '0.9'].map((version) => hasSection(after as string, version))).toEqual([true, true, false]);
});

test('nothing is released twice: a changelog without unreleased lines makes no section', () => {
  const after = releasedChangelog(BEFORE, '1.0.0', '2026-02-03') as string;
  expect(releasedChangelog(after, '1.0.1', '2026-02-04')).toBeUndefined();
  expect(releasedChangelog('# Changelog\n', '1.0.0', '2026-02-03')).toBeUndefined();
});

test('a list that is too long goes to the history, with links that lead to the same pages, and a short one takes its place', () => {
  const long = BEFORE.replace('- new', '- new ([page](docs/page.md), [site](https://example.org))');
  const short = '# Changelog\n\n## Unreleased\n\n- brief\n';
  const first = shortened(long, short);
  expect(first?.changelog).toBe('# Changelog\n\n## Unreleased\n\n- brief\n\n## 0.9.0 (2026-01-01)\n- old\n');
  expect(first?.history).toMatch(
    /\n\n### Can be used\n- new \(\[page\]\(\.\.\/\.\.\/docs\/page\.md\), \[site\]\(https:\/\/example\.org\)\)\n$/,
  );
  // What came meanwhile goes above what is there.
  const again = shortened(BEFORE, short, first?.history);
  expect(again?.history.match(/^- new.*/gm)).toEqual(['- new', expect.stringContaining('page')]);
  expect(shortened('# Changelog\n', short)).toBeUndefined();
});
