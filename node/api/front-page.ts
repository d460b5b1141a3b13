/** `GET /`: the routes offered, as JSON for programs and as a small page for people. */

import type { routeList } from '../../protocol/api/documents.ts';
import { ROUTE_NAMES, ROUTES, SOCKETS } from '../../protocol/api/routes.ts';
import type { Infer } from '../../protocol/api/schema.ts';
import type { NetworkName } from '../../protocol/network.ts';
import { markupText } from '../../runtime/door/markup.ts';

export type RouteList = Infer<typeof routeList>;

export const routesOffered = (version: string, network: NetworkName): RouteList => ({
  api_version: 1,
  name: 'svcd',
  version,
  network,
  routes: [
    { method: 'GET', path: '/', summary: 'This list' },
    { method: 'GET', path: '/health', summary: '`ok` when the node answers' },
    ...ROUTE_NAMES.map((name) => {
      const { method, path, summary } = ROUTES[name];
      return { method, path, summary };
    }),
  ],
  sockets: Object.values(SOCKETS).map(({ path, subprotocol, summary }) => ({ path, subprotocol, summary })),
});

/** A route without parameters can be opened from the page. */
const pathCell = (method: string, path: string): string =>
  method === 'GET' && !path.includes('{') ? `<a href="${markupText(path)}">${markupText(path)}</a>` : markupText(path);

export function frontPage(list: RouteList): string {
  const routes = list.routes
    .map(
      ({ method, path, summary }) =>
        `<tr><td>${method}</td><td>${pathCell(method, path)}</td><td>${markupText(summary)}</td></tr>`,
    )
    .join('\n');
  const sockets = list.sockets
    .map(
      ({ path, subprotocol, summary }) =>
        `<tr><td>${markupText(path)}</td><td>${markupText(subprotocol)}</td><td>${markupText(summary)}</td></tr>`,
    )
    .join('\n');
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>svcd ${markupText(list.network)}</title>
<meta name="viewport" content="width=device-width">
<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
td,th{text-align:left;padding:.2rem .8rem .2rem 0;vertical-align:top}td:nth-child(2){font-family:ui-monospace,monospace;overflow-wrap:anywhere}</style>
</head><body><h1>svcd</h1><p>Version ${markupText(list.version)}, network ${markupText(list.network)}. No key and no account are needed.</p>
<table><thead><tr><th>Method</th><th>Route</th><th>Answer</th></tr></thead><tbody>
${routes}
</tbody></table>
<h2>WebSockets</h2><table><thead><tr><th>Path</th><th>Subprotocol</th><th>For</th></tr></thead><tbody>
${sockets}
</tbody></table></body></html>
`;
}
