/** The OpenAPI document of the public API, made from the route table: docs/openapi.json is this and nothing else. */
import { errorDocument, routeList } from './documents.ts';
import { API_ERRORS, type ApiErrorCode } from './error-codes.ts';
import { ROUTE_NAMES, ROUTES, type RouteSpec, SOCKETS } from './routes.ts';
import type { JsonSchema } from './schema.ts';

type Json = { readonly [name: string]: unknown };

/** Titled schemas become components, each once; everything else stands where it is used. */
class Components {
  readonly schemas = new Map<string, Json>();

  reference(schema: JsonSchema): Json {
    const { title, description, ...rest } = schema;
    const body = (): Json => ({
      ...rest,
      ...(rest.items === undefined ? {} : { items: this.reference(rest.items) }),
      ...(rest.anyOf === undefined ? {} : { anyOf: rest.anyOf.map((choice) => this.reference(choice)) }),
      ...(rest.properties === undefined
        ? {}
        : {
            properties: Object.fromEntries(
              Object.entries(rest.properties).map(([name, property]) => [name, this.reference(property)]),
            ),
          }),
    });
    const described = description === undefined ? {} : { description };
    if (title === undefined) return { ...body(), ...described };
    if (!this.schemas.has(title)) {
      // Reserved first, so that the order is that of first use.
      this.schemas.set(title, {});
      this.schemas.set(title, body());
    }
    return { $ref: `#/components/schemas/${title}`, ...described };
  }
}

/** Codes that any route can answer with. */
const COMMON: readonly ApiErrorCode[] = [
  'bad_request',
  'origin_refused',
  'too_many_requests',
  'client_blocked',
  'internal',
  'not_ready',
  'too_busy',
];
const WITH_BODY: readonly ApiErrorCode[] = ['bad_json', 'body_too_large', 'media_type_unsupported'];

const content = (schema: Json): Json => ({ 'application/json': { schema } });

function parameters(components: Components, place: 'path' | 'query', schema: JsonSchema): Json[] {
  return Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || (schema.required ?? []).includes(name),
    schema: components.reference(property),
  }));
}

function responses(components: Components, route: RouteSpec): Json {
  const codes = [...COMMON, ...(route.body === undefined ? [] : WITH_BODY), ...route.errors];
  const byStatus = new Map<number, string[]>();
  for (const code of codes) byStatus.set(API_ERRORS[code], [...(byStatus.get(API_ERRORS[code]) ?? []), code]);
  // A submission is refused with a code of the node's own rules.
  if (!route.read) byStatus.set(409, ['a code of the section Node in docs/errors.md, with `failure`']);
  const refusals = [...byStatus]
    .sort(([a], [b]) => a - b)
    .map(([status, names]) => [
      String(status),
      { description: [...new Set(names)].join(', '), content: content(components.reference(errorDocument)) },
    ]);
  return {
    200: { description: route.summary, content: content(components.reference(route.answer)) },
    ...Object.fromEntries(refusals),
  };
}

export function openApiDocument(version: string): Json {
  const components = new Components();
  const paths = new Map<string, Record<string, Json>>();
  const add = (path: string, method: string, operation: Json): void => {
    paths.set(path, { ...paths.get(path), [method]: operation });
  };
  add('/', 'get', {
    operationId: 'routeList',
    summary: 'The routes offered; a page for browsers',
    responses: { 200: { description: 'The list', content: content(components.reference(routeList)) } },
  });
  add('/health', 'get', {
    operationId: 'health',
    summary: '`ok` when the node answers',
    responses: {
      200: { description: 'ok', content: { 'text/plain': { schema: { type: 'string', const: 'ok' } } } },
      503: { description: 'not ready', content: { 'text/plain': { schema: { type: 'string' } } } },
    },
  });
  for (const name of ROUTE_NAMES) {
    const route: RouteSpec = ROUTES[name];
    add(route.path, route.method.toLowerCase(), {
      operationId: name,
      summary: route.summary,
      parameters: [...parameters(components, 'path', route.params), ...parameters(components, 'query', route.query)],
      ...(route.body === undefined
        ? {}
        : { requestBody: { required: true, content: content(components.reference(route.body)) } }),
      responses: responses(components, route),
    });
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'svcd public API',
      version,
      description: `WebSockets: ${Object.values(SOCKETS)
        .map(({ path, subprotocol }) => `${path} (${subprotocol})`)
        .join(', ')}; their frames are described in docs/api.md.`,
    },
    servers: [{ url: 'http://127.0.0.1:28701' }],
    paths: Object.fromEntries(paths),
    components: { schemas: Object.fromEntries(components.schemas) },
  };
}
