/** The page of svc-proxy: pool, rigs and what became of their shares. Made anew for each request, without scripts. */
import { fileURLToPath } from 'node:url';
import { showDuration } from '../miner/terminal/duration.ts';
import { showRate } from '../miner/work/hash-rate.ts';
import { sharedInFlight } from '../runtime/clients/in-flight.ts';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';
import { markupText } from '../runtime/door/markup.ts';
import { listenSmall, type SmallListenerDependencies } from '../runtime/door/small-listener.ts';
import { readSmallFile } from '../runtime/files/small-file.ts';
import type { ProxyDocument } from './proxy-figures.ts';

/** The fastest of them; `GET /v1/stats` has more. */
const SHOWN_RIGS = 200;
const SHEET = new URL('./page.css', import.meta.url);
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
};

const counted = (reasons: Readonly<Record<string, number>>): string =>
  Object.entries(reasons)
    .map(([reason, count]) => `${reason} ${count}`)
    .join(', ') || '0';

/** Rows of a list of facts; values are any text. */
const facts = (rows: readonly (readonly [string, string])[]): string =>
  `<dl class="facts">${rows.map(([name, value]) => `<div><dt>${name}</dt><dd>${markupText(value)}</dd></div>`).join('')}</dl>`;

function table(caption: string, names: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = names.map((name, i) => `<th scope="col"${i > 0 ? ' class="number"' : ''}>${name}</th>`);
  const cell = (text: string, i: number) =>
    i > 0 ? `<td class="number">${markupText(text)}</td>` : `<td>${markupText(text)}</td>`;
  const body = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`);
  return `<div class="scroll"><table><caption>${caption}</caption><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

export function proxyPage(document: ProxyDocument): string {
  const { pool, passed_on: passed, shares, rigs, kept_addresses: kept } = document;
  const state = pool.connected ? 'connected to a pool' : 'no pool';
  const form =
    pool.connected && pool.form === 'farm' ? 'headers and names: a farm session' : 'nonces: the pool sees one worker';
  const shown = rigs
    .slice(0, SHOWN_RIGS)
    .map((rig) => [
      kept.length === 0 ? rig.name : `${rig.address}.${rig.name}`,
      showRate(Number(rig.hash_rate)),
      `${rig.connections}`,
      `${rig.accepted}`,
      `${rig.stale}`,
      counted(rig.rejected),
      `${rig.blocks}`,
    ]);
  const upstream: (readonly [string, string])[] = pool.connected
    ? [
        ['Pool', `${pool.name ?? pool.server} (${pool.endpoint})`],
        ['Rigs are told apart by', form],
        ['Work of a share for it', pool.share_work ?? '-'],
        ['Latency', pool.latency_millis === null ? '-' : `${Math.round(pool.latency_millis)} ms`],
      ]
    : [['Last refusal', pool.last_refusal ?? '-']];
  const addresses = kept.map((one) => [one.address, one.connected ? 'yes' : 'no', one.share_work ?? '-']);
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><meta http-equiv="refresh" content="10"><link rel="stylesheet" href="page.css"><title>Proxy: ${state}</title></head><body><main><h1>Proxy: ${state}</h1>
<section class="card"><h2>Pool</h2>${facts([
    ...upstream,
    ['Address', document.address],
    ['Shares passed on', `${passed.sent}`],
    ['Accepted', `${passed.accepted}`],
    ['Not answered yet', `${passed.waiting}`],
    ['Stale, lost', `${passed.stale}, ${passed.lost}`],
    ['Rejected', counted(passed.rejected)],
  ])}</section>
<section class="card"><h2>Rigs</h2>${facts([
    ['Connections that mine', `${document.connections.mining}`],
    ['Rate, by their shares here', showRate(Number(document.hash_rate))],
    ['Shares here', `${shares.accepted}`],
    ['Stale', `${shares.stale}`],
    ['Rejected', counted(shares.rejected)],
    ['Since the start', showDuration(document.uptime_millis / 1_000)],
  ])}${table(
    `The ${shown.length} with the most work, of ${document.rig_count}`,
    ['Rig', 'Rate', 'Connections', 'Accepted', 'Stale', 'Rejected', 'Blocks'],
    shown,
  )}</section>${
    addresses.length === 0
      ? ''
      : `<section class="card"><h2>Addresses of rigs</h2>${table('Each has a session at the pool', ['Address', 'Connected', 'Work of a share'], addresses)}</section>`
  }</main></body></html>
`;
}

export function listenForPage(
  address: ListenAddress,
  { document, ...dependencies }: SmallListenerDependencies & { readonly document: () => Promise<ProxyDocument> },
) {
  const gather = sharedInFlight(async () => proxyPage(await document()));
  const sheet = readSmallFile(fileURLToPath(SHEET));
  const of = (type: string) => ({ 'content-type': `text/${type}; charset=utf-8` });
  const page = () =>
    gather().then(
      (body) => ({ status: 200, body, headers: of('html') }),
      () => ({ status: 503, body: 'the figures could not be read\n' }),
    );
  const css = () => ({ status: 200, body: sheet, headers: of('css') });
  const routes = { '/': { answer: page }, '/page.css': { answer: css } };
  const what = { name: 'page', what: 'the page', offers: 'only / is here', headers: { ...HEADERS, ...of('plain') } };
  return listenSmall(address, { ...what, routes }, dependencies);
}
