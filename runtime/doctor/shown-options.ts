/**
 * The options of a program for other eyes: passwords are hidden, of the URLs of others only the host is shown (their
 * paths may be keys, as those of webhooks are), and files are named but not read.
 */
const SECRET = /password|secret|token/i;

export function shownOptions(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      SECRET.test(name) && !name.endsWith('File') && value !== undefined ? '***' : (shown(value) ?? null),
    ]),
  );
}

/** For other texts that may repeat options: in them the same is hidden. */
export function hider(values: Readonly<Record<string, unknown>>): (text: string) => string {
  const texts = Object.values(values)
    .flatMap((value) => (Array.isArray(value) ? value : [value]))
    .filter((value) => typeof value === 'string' && value !== shownText(value)) as string[];
  // Longer ones first: one may begin as another does.
  texts.sort((a, b) => b.length - a.length);
  return (text) => texts.reduce((left, secret) => left.replaceAll(secret, shownText(secret)), text);
}

function shown(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return shownText(value);
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== 'object' || value === null) return value;
  if ('host' in value) return value;
  const { text } = value as { readonly text?: string };
  return text === undefined ? null : shownText(text);
}

/** As programs that use a URL read it: its user ends at the last @, and slashes may be missing. */
function shownText(text: string): string {
  const [, scheme = '', slashes = ''] = /^([a-z][a-z0-9+.-]*:)([/\\]*)/i.exec(text) ?? [];
  if (scheme === '' || (slashes === '' && !text.includes('@'))) return text;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return `${scheme}//***`;
  const { protocol, username, password, host, pathname, search, hash } = url;
  const path = pathname + search + hash;
  // A password with a slash in it.
  if (path.includes('@')) return `${scheme}//***`;
  // The name of a database is no key.
  const isKnown = /^\/?$/.test(path) || protocol.startsWith('postgres');
  return `${scheme}//${username + password === '' ? '' : '***@'}${host}${isKnown ? pathname.replace(/^\/$/, '') : '/***'}`;
}
