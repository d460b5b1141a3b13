/**
 * Allowed targets of miners' webhooks. Anybody can become a miner, so URLs are untrusted: the pool must not send
 * requests to its own network. The name is resolved for each request, all its addresses are checked, and the connection
 * uses one of these, so a name that changes its address between check and connection gains nothing. Redirects are not
 * followed. Such names are resolved by querying the name servers directly: system lookups share two threads of this
 * process and cannot be cancelled, so unanswered lookups would delay those for the database.
 */
import { type LookupAddress, lookup as lookUp, Resolver } from 'node:dns';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { type Channel, MAX_PLACE, placeOf } from '../../protocol/notices.ts';
import { reachOf } from '../../runtime/clients/address-reach.ts';
import { limitInterim } from '../../runtime/node-client/http-fetch.ts';

/** `public`: https to addresses of the internet. `private`: also http, and addresses of the pool's own network. */
export type WebhookReach = 'public' | 'private';

export const MAX_WEBHOOK_URL = 160;
const HTTPS_PORT = 443;
const FIRST_FREE_PORT = 1024;

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

/** The URL, or what is wrong with it, before any name is looked up. */
function readTarget(text: string, reach: WebhookReach): URL | string {
  if (text.length > MAX_WEBHOOK_URL) return `must have at most ${MAX_WEBHOOK_URL} characters`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  // The signed text has it between quotes.
  if (url === undefined || !/^[\x21-\x7e]+$/.test(text) || /["\\]/.test(text))
    return 'must be a URL such as https://example.org/hook';
  if (url.protocol !== 'https:' && !(reach === 'private' && url.protocol === 'http:'))
    return 'must begin with https://';
  if (url.username !== '' || url.password !== '' || url.hash !== '') return 'must have no user, password or fragment';
  const host = hostOf(url);
  if (host === '') return 'must name a host';
  if (reach === 'private') return url;
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  if (port !== HTTPS_PORT && port < FIRST_FREE_PORT) return 'must have the port 443 or one from 1024 on';
  return isIP(host) !== 0 && reachOf(host) !== 'public' ? 'must lead to an address of the internet' : url;
}

/** Undefined if the URL is valid for that channel. */
export function webhookFault(text: string, reach: WebhookReach, channel: Channel = 'webhook'): string | undefined {
  const target = readTarget(text, reach);
  if (typeof target === 'string') return target;
  return placeOf(channel, text).length > MAX_PLACE ? `must have at most ${MAX_PLACE} characters` : undefined;
}

/** The host in the form that a connection uses, for the limits by host; a name with a dot at its end is the same one. */
export const webhookHost = (text: string): string =>
  URL.canParse(text) ? hostOf(new URL(text)).replace(/\.$/, '') : '';

/** All addresses of a name. Throws if there are none. `end` cancels pending lookups. */
export type Names = { addresses(name: string): Promise<readonly LookupAddress[]>; end(): void };

/** From the name servers, without the hosts file and search domains of this machine. */
export function serverNames(servers?: readonly string[]): Names {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  if (servers !== undefined) resolver.setServers(servers);
  const ask = (name: string, family: 4 | 6) =>
    new Promise<LookupAddress[]>((resolve, reject) =>
      resolver[family === 4 ? 'resolve4' : 'resolve6'](name, (error, found) =>
        error === null ? resolve(found.map((address) => ({ address, family }))) : reject(error),
      ),
    );
  return {
    async addresses(name) {
      const answers = await Promise.allSettled([ask(name, 4), ask(name, 6)]);
      const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      const failure = answers.find((answer) => answer.status === 'rejected');
      if (found.length === 0 && failure !== undefined) throw failure.reason;
      return found;
    },
    end: () => resolver.cancel(),
  };
}

/** From the system, like every other name of the pool: names of its own network may be only in its hosts file. */
const systemNames: Names = {
  addresses: (name) =>
    new Promise((resolve, reject) =>
      lookUp(name, { all: true }, (error, found) => (error === null ? resolve(found) : reject(error))),
    ),
  end: () => undefined,
};

/** Refuses a name if one of its addresses is not public. */
const guardedLookup =
  (reach: WebhookReach, names: Names): LookupFunction =>
  (hostname, options, done) => {
    const refuse = () => done(new Error('the name leads to no address of the internet'), '', 0);
    if (reach === 'public' && /(?:^|\.)localhost\.?$/i.test(hostname)) return refuse();
    names.addresses(hostname).then(
      (addresses) => {
        const inner = reach === 'private' ? undefined : addresses.find(({ address }) => reachOf(address) !== 'public');
        const [first] = addresses;
        if (inner !== undefined || first === undefined) return refuse();
        return options.all === true ? done(null, [...addresses]) : done(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => done(error, '', 0),
    );
  };

export type WebhookRequest = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMillis: number;
  readonly signal: AbortSignal;
};

/** Undefined if it was accepted, else why not. Only the status of the answer is read. */
export function postWebhook(
  text: string,
  reach: WebhookReach,
  { headers, body, timeoutMillis, signal }: WebhookRequest,
  names: Names = reach === 'private' ? systemNames : serverNames(),
): Promise<string | undefined> {
  const url = readTarget(text, reach);
  if (typeof url === 'string') return Promise.resolve(`the URL ${url}`);
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  return new Promise<string | undefined>((settle) => {
    const request = send(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
      lookup: guardedLookup(reach, names),
      // A separate connection: none is left open to a stranger's host.
      agent: false,
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)]),
    });
    limitInterim(request);
    request.on('error', (error) => settle(error.name === 'AbortError' ? 'no answer in time' : error.message));
    request.once('response', ({ statusCode = 0 }) => {
      settle(statusCode >= 200 && statusCode < 300 ? undefined : `status ${statusCode}`);
      request.destroy();
    });
    // An answer that switches protocols is neither a response nor an error, and no signal ends what has ended.
    request.once('close', () => settle('no answer'));
    request.end(body);
  }).finally(() => names.end());
}
