/** Versions by SemVer 2.0.0, and the section of the changelog that a release makes. */
const NUMBER = '(?:0|[1-9]\\d*)';
const WORD = `(?:${NUMBER}|\\d*[A-Za-z-][0-9A-Za-z-]*)`;
/** Without build metadata: two archives of one version must not differ. */
const VERSION = new RegExp(`^(${NUMBER})\\.(${NUMBER})\\.(${NUMBER})(?:-(${WORD}(?:\\.${WORD})*))?$`);

export const isVersion = (text: string): boolean => VERSION.test(text);

/** One word of a prerelease: numbers by their size and below names. */
function compareWords(a: string, b: string): number {
  const [isNumberA, isNumberB] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (isNumberA && isNumberB) return Number(a) - Number(b);
  if (isNumberA !== isNumberB) return isNumberA ? -1 : 1;
  return a < b ? -1 : Number(a > b);
}

/** Below zero where `a` comes first. */
export function compareVersions(a: string, b: string): number {
  const [, ...left] = VERSION.exec(a) ?? [];
  const [, ...right] = VERSION.exec(b) ?? [];
  for (let i = 0; i < 3; i++) if (left[i] !== right[i]) return Number(left[i]) - Number(right[i]);
  const [pre, otherPre] = [left[3]?.split('.'), right[3]?.split('.')];
  if (pre === undefined || otherPre === undefined) return Number(pre === undefined) - Number(otherPre === undefined);
  for (const [i, word] of pre.entries()) {
    const other = otherPre[i];
    if (other === undefined) return 1;
    if (word !== other) return compareWords(word, other);
  }
  return pre.length - otherPre.length;
}

const UNRELEASED = '## Unreleased';

export const hasSection = (changelog: string, version: string): boolean =>
  changelog.split('\n').some((line) => line.startsWith(`## ${version} (`));

/** What was unreleased becomes the section of the version; undefined where there is nothing to release. */
export function releasedChangelog(changelog: string, version: string, date: string): string | undefined {
  const at = `\n${changelog}`.indexOf(`\n${UNRELEASED}\n`);
  if (at < 0) return undefined;
  const after = changelog.slice(at + UNRELEASED.length);
  const [section = ''] = after.split(/\n(?=## )/);
  if (!/^- /m.test(section)) return undefined;
  return `${changelog.slice(0, at)}${UNRELEASED}\n\n## ${version} (${date})${after}`;
}

const HISTORY =
  '# History of changes\n\nThe whole list of what was done, newest first; the [changelog](../../CHANGELOG.md) names what a user notices.\n';

/** What follows the heading, up to the next section. */
function unreleasedOf(changelog: string): { readonly from: number; readonly body: string } | undefined {
  const at = `\n${changelog}`.indexOf(`\n${UNRELEASED}\n`);
  if (at < 0) return undefined;
  const from = at + UNRELEASED.length + 1;
  return { from, body: changelog.slice(from).split(/^(?=## )/m)[0] ?? '' };
}

/** The changelog with the unreleased section of another, and the history with what stood there. */
export function shortened(
  changelog: string,
  short: string,
  history = HISTORY,
): { readonly changelog: string; readonly history: string } | undefined {
  const [long, brief] = [unreleasedOf(changelog), unreleasedOf(short)];
  if (long === undefined || brief === undefined) return undefined;
  const { from, body } = long;
  const rest = changelog.slice(from + body.length);
  const head = history.split(/^(?=##)/m)[0] ?? '';
  const entries = body.trim().replace(/\]\((?!https?:|#)/g, '](../../');
  return {
    changelog: `${changelog.slice(0, from)}${brief.body.trimEnd()}\n${rest === '' ? '' : `\n${rest}`}`,
    history: `${head.trimEnd()}\n\n${entries}\n${history.slice(head.length) === '' ? '' : `\n${history.slice(head.length)}`}`,
  };
}
