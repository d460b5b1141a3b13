/**
 * Maps a request line to a route: path segments to parameters and the query to fields, both checked by their schemas.
 */
import { ROUTE_NAMES, ROUTES, type RouteName, type RouteSpec } from '../../protocol/api/routes.ts';
import { check, type Schema, typedFields } from '../../protocol/api/schema.ts';
import { refusal } from './api-error.ts';

type Branch = {
  readonly fixed: Map<string, Branch>;
  variable?: { name: string; branch: Branch };
  routes: Map<string, RouteName>;
};
const emptyBranch = (): Branch => ({ fixed: new Map(), routes: new Map() });

const root = emptyBranch();
for (const name of ROUTE_NAMES) {
  const { method, path }: RouteSpec = ROUTES[name];
  let branch = root;
  for (const segment of path.split('/').slice(1)) {
    const parameter = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (parameter === undefined) {
      let next = branch.fixed.get(segment);
      if (next === undefined) {
        next = emptyBranch();
        branch.fixed.set(segment, next);
      }
      branch = next;
    } else {
      branch.variable ??= { name: parameter, branch: emptyBranch() };
      branch = branch.variable.branch;
    }
  }
  branch.routes.set(method, name);
}

/** Methods that routes at this path take; none for an unknown path. */
export function methodsAt(path: string): string[] {
  return ['GET', 'POST'].filter((method) => {
    try {
      return matchRoute(method, path) !== undefined;
    } catch {
      return false;
    }
  });
}

export type Match = {
  readonly name: RouteName;
  readonly route: RouteSpec;
  readonly params: Readonly<Record<string, string>>;
};

/** Throws a refusal: unknown path, or a path that another method has. */
export function matchRoute(method: string, path: string): Match {
  const params: Record<string, string> = {};
  let branch = root;
  for (const segment of path.split('/').slice(1)) {
    const fixed = branch.fixed.get(segment);
    if (fixed !== undefined) branch = fixed;
    else if (branch.variable !== undefined && segment !== '') {
      params[branch.variable.name] = segment;
      branch = branch.variable.branch;
    } else throw refusal('route_unknown', 'there is no such route; GET / lists them');
  }
  if (branch.routes.size === 0) throw refusal('route_unknown', 'there is no such route; GET / lists them');
  const name = branch.routes.get(method);
  if (name === undefined)
    throw refusal('method_not_allowed', `this route takes ${[...branch.routes.keys()].join(', ')}`);
  return { name, route: ROUTES[name], params };
}

function decoded(text: string, field: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refusal('bad_request', 'is not percent-encoded UTF-8', { field });
  }
}

function checked(schema: Schema<unknown>, fields: Readonly<Record<string, string>>): Record<string, unknown> {
  const values = typedFields(schema, fields);
  const problem = check(schema, values);
  if (problem !== undefined)
    throw refusal('bad_request', `${problem.field} ${problem.problem}`, { field: problem.field });
  return values;
}

export function readParams(match: Match): Record<string, unknown> {
  const fields = Object.create(null) as Record<string, string>;
  for (const [name, text] of Object.entries(match.params)) fields[name] = decoded(text, name);
  return checked(match.route.params, fields);
}

/** Each field at most once: with two values it would be ambiguous which one counts. */
export function readQuery(schema: Schema<unknown>, query: string): Record<string, unknown> {
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  if (query !== '')
    for (const part of query.split('&')) {
      const equals = part.indexOf('=');
      const name = decoded((equals < 0 ? part : part.slice(0, equals)).replaceAll('+', ' '), 'query').slice(0, 64);
      const value = equals < 0 ? '' : decoded(part.slice(equals + 1).replaceAll('+', ' '), name);
      if (name in fields) throw refusal('bad_request', `${name} is given twice`, { field: name });
      fields[name] = value;
    }
  return checked(schema, { ...fields });
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

export function readBody(schema: Schema<unknown>, bytes: Uint8Array): unknown {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw refusal('bad_json', 'the body is not JSON in UTF-8');
  }
  const problem = check(schema, value);
  if (problem !== undefined)
    throw refusal('bad_request', `${problem.field} ${problem.problem}`, { field: problem.field });
  return value;
}
