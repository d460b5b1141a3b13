/** JSON.parse silently takes the last of two equal keys; the user should be told. */

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|\n/g;

export type RepeatedKey = { readonly key: string; readonly line: number };

/** The first key that an object of this JSON text names twice. The text must be JSON. */
export function repeatedKey(json: string): RepeatedKey | undefined {
  const open: (Set<string> | undefined)[] = [];
  let line = 1;
  let last = '';
  for (const [token] of json.matchAll(TOKEN)) {
    if (token === '\n') {
      line++;
      continue;
    }
    if (token === '{') open.push(new Set());
    else if (token === '[') open.push(undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') {
      const key = JSON.parse(last) as string;
      const keys = open.at(-1) as Set<string>;
      if (keys.has(key)) return { key, line };
      keys.add(key);
    }
    last = token;
  }
  return undefined;
}
