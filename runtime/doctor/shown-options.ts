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

function shown(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string') return shownText(value);
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== 'object' || value === null) return value;
  if ('host' in value) return value;
  const { text } = value as { readonly text?: string };
  return text === undefined ? null : shownText(text);
}

function shownText(text: string): string {
  const url = /^([a-z][a-z0-9+.-]*:\/\/)(?:[^@/]*@)?([^/?#]*)(.*)$/i.exec(text);
  if (url === null) return text;
  const [, scheme = '', host = '', rest = ''] = url;
  const hidden = text.includes('@') ? '***@' : '';
  // The name of a database is no key.
  const isKnown = rest === '' || rest === '/' || /^postgres/.test(scheme);
  return `${scheme}${hidden}${host}${isKnown ? rest.replace(/[?#].*$/, '') : '/***'}`;
}
