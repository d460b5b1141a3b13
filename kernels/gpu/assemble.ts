/**
 * Assembles a .wgsl file for the device at hand. WGSL has `override` constants for numbers, but neither loops over
 * declarations nor names made of numbers, so the files carry a few directives, each on a line of its own:
 *
 *   //@include NAME           another file in place of this line
 *   //@each v COUNT ... //@end   the lines between, COUNT times with v = 0, 1, ...; COUNT is a number or a parameter
 *   //@if NAME == N ... //@end   the lines between, where the parameter has that value
 *   ${name} or ${NAME[v]}     the value of a loop variable or parameter, or an element of a list
 *
 * Pure; a directive that cannot be followed is a defect of the file and throws.
 */

export type Parameters = Readonly<Record<string, number | readonly (number | string)[]>>;
export type Sources = Readonly<Record<string, string>>;

type Scope = Parameters;

function scalar(scope: Scope, name: string): number {
  const value = /^\d+$/.test(name) ? Number(name) : scope[name];
  if (typeof value !== 'number') throw new Error(`wgsl template: ${name} is not a number`);
  return value;
}

function substitute(line: string, scope: Scope): string {
  return line.replace(/\$\{(\w+)(?:\[(\w+)\])?\}/g, (_, name: string, index: string | undefined) => {
    if (index === undefined) return String(scalar(scope, name));
    const list = scope[name];
    const value = Array.isArray(list) ? list[scalar(scope, index)] : undefined;
    if (value === undefined) throw new Error(`wgsl template: ${name}[${index}] is not known`);
    return String(value);
  });
}

/** Index of the //@end that closes the block opened at `open`. */
function closing(lines: readonly string[], open: number): number {
  let depth = 0;
  for (let i = open; i < lines.length; i++) {
    const line = (lines[i] as string).trim();
    if (line.startsWith('//@each ') || line.startsWith('//@if ')) depth++;
    else if (line === '//@end' && --depth === 0) return i;
  }
  throw new Error(`wgsl template: no //@end for ${lines[open]?.trim()}`);
}

function expand(lines: readonly string[], scope: Scope, sources: Sources): string[] {
  const out: string[] = [];
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as string;
    const [directive, ...words] = line.trim().split(/\s+/);
    if (directive === '//@include') {
      const source = sources[words[0] as string];
      if (source === undefined) throw new Error(`wgsl template: no file ${words[0]}`);
      out.push(...expand(source.split('\n'), scope, sources));
    } else if (directive === '//@each') {
      const end = closing(lines, i);
      const body = lines.slice(i + 1, end);
      const times = scalar(scope, words[1] as string);
      for (let v = 0; v < times; v++) out.push(...expand(body, { ...scope, [words[0] as string]: v }, sources));
      i = end;
    } else if (directive === '//@if') {
      const end = closing(lines, i);
      if (scalar(scope, words[0] as string) === scalar(scope, words[2] as string))
        out.push(...expand(lines.slice(i + 1, end), scope, sources));
      i = end;
    } else if (directive?.startsWith('//@')) {
      throw new Error(`wgsl template: ${line.trim()} has no place here`);
    } else {
      out.push(substitute(line, scope));
    }
  }
  return out;
}

export function assemble(name: string, parameters: Parameters, sources: Sources): string {
  return expand([`//@include ${name}`], parameters, sources).join('\n');
}
