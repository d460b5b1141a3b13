/** The OpenAPI document of the public API, made from the route table: docs/openapi.json is this and nothing else. */
import { errorDocument, routeList } from './documents.ts';
import { API_ERRORS, type ApiErrorCode } from './error-codes.ts';
import { Components, content, type Json, parameters } from './openapi-parts.ts';
import { ROUTE_NAMES, ROUTES, type RouteSpec, SOCKETS } from './routes.ts';

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
