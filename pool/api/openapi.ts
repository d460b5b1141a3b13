/** The API's description: an OpenAPI document and a page for people, both made from the route tables. */
import { Components, content, type Json, parameters } from '../../protocol/api/openapi-parts.ts';
import { markupText } from '../../runtime/door/markup.ts';
import { error } from './documents.ts';
import type { Route } from './route.ts';

export function openApiDocument(
  routes: readonly Route[],
  info: { title: string; version: string; base: string },
): Json {
  const components = new Components();
  const paths: Record<string, Record<string, Json>> = {};
  const refusal = { description: 'a refusal', content: content(components.reference(error)) };
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: {
        summary: route.summary,
        tags: [route.group],
        parameters: [...parameters(components, 'path', route.params), ...parameters(components, 'query', route.query)],
        ...(route.body === undefined
          ? {}
          : {
              requestBody: {
                required: (route.body.required ?? []).length > 0,
                content: content(components.reference(route.body)),
              },
            }),
        ...(route.operator === true ? { security: [{ operator: [] }] } : {}),
        responses: {
          200: {
            description: 'the answer',
            content:
              route.media === undefined
                ? content(components.reference(route.answer))
                : { [route.media]: { schema: { type: 'string' } } },
          },
          default: refusal,
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
      schemas: Object.fromEntries(components.schemas),
    },
  };
}

/** A page without scripts: it can be read in any browser and cannot be made to do anything. */
export function apiPage(routes: readonly Route[], info: { title: string; base: string }): string {
  const groups = [...new Set(routes.map((route) => route.group))];
  const row = (route: Route) => {
    const fields = Object.entries({ ...route.params.properties, ...route.query.properties });
    const described = fields.map(([name, { description }]) => `<code>${name}</code> ${markupText(description ?? '')}`);
    return `<tr><td><code>${route.method} ${markupText(info.base + route.path)}</code></td><td>${markupText(route.summary)}${
      described.length === 0 ? '' : `<br>${described.join('; ')}`
    }</td></tr>`;
  };
  const sections = groups.map(
    (group) =>
      `<h2>${markupText(group)}</h2><table>${routes
        .filter((route) => route.group === group)
        .map(row)
        .join('')}</table>`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${markupText(info.title)}</title><h1>${markupText(
    info.title,
  )}</h1><p>Machine-readable: <a href="${markupText(info.base)}/openapi.json">openapi.json</a>. Amounts are atoms in decimal text, work is hashes in decimal text, times are Unix milliseconds. Operator routes need <code>Authorization: Bearer TOKEN</code>.</p>${sections.join('')}</html>`;
}
