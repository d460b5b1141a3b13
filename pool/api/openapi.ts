/** The API described by itself: an OpenAPI document and a page for people, both made from the route tables. */
import type { Route } from './route.ts';

export function openApiDocument(routes: readonly Route[], info: { title: string; version: string; base: string }) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    const named = new Set((route.parameters ?? []).map((parameter) => parameter.name));
    const parts = [...route.path.matchAll(/:(\w+)/g)].map((match) => match[1] as string);
    const missing = parts
      .filter((name) => !named.has(name))
      .map((name) => ({ name, in: 'path', schema: { type: 'string' } }));
    const parameters = [...(route.parameters ?? []), ...missing];
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: {
        summary: route.summary,
        tags: [route.group],
        parameters: parameters.map((parameter) => ({ ...parameter, required: parameter.in === 'path' })),
        ...(route.body === undefined
          ? {}
          : { requestBody: { required: true, content: { 'application/json': { schema: route.body } } } }),
        ...(route.operator === true ? { security: [{ operator: [] }] } : {}),
        responses: {
          200: { description: 'the answer' },
          default: {
            description: 'a refusal',
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Refusal' } } },
          },
        },
      },
    };
  }
  return {
    openapi: '3.1.0',
    info: { title: info.title, version: info.version },
    servers: [{ url: info.base }],
    paths,
    components: {
      securitySchemes: { operator: { type: 'http', scheme: 'bearer' } },
      schemas: {
        Refusal: {
          type: 'object',
          properties: {
            error: {
              type: 'object',
              properties: {
                code: { type: 'string' },
                message: { type: 'string' },
                retry_after_millis: { type: 'integer' },
              },
              required: ['code', 'message'],
            },
          },
          required: ['error'],
        },
      },
    },
  };
}

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** A page without scripts: it can be read in any browser and cannot be made to do anything. */
export function apiPage(routes: readonly Route[], info: { title: string; base: string }): string {
  const groups = [...new Set(routes.map((route) => route.group))];
  const row = (route: Route) =>
    `<tr><td><code>${route.method} ${escapeHtml(info.base + route.path)}</code></td><td>${escapeHtml(route.summary)}${
      route.parameters === undefined
        ? ''
        : `<br>${route.parameters.map((each) => `<code>${escapeHtml(each.name)}</code> ${escapeHtml(each.description)}`).join('; ')}`
    }</td></tr>`;
  const sections = groups.map(
    (group) =>
      `<h2>${escapeHtml(group)}</h2><table>${routes
        .filter((route) => route.group === group)
        .map(row)
        .join('')}</table>`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${escapeHtml(info.title)}</title><h1>${escapeHtml(
    info.title,
  )}</h1><p>Machine-readable: <a href="${escapeHtml(info.base)}/openapi.json">openapi.json</a>. Amounts are atoms in decimal text, work is hashes in decimal text, times are Unix milliseconds. Operator routes need <code>Authorization: Bearer TOKEN</code>.</p>${sections.join('')}</html>`;
}
