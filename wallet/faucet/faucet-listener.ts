/** The faucet's page and API: one form for people, one route for programs. What a client can make it hold is bounded by the door, and what it can get by the faucet. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { formatCoins } from '../../protocol/amount.ts';
import { TrustedProxies } from '../../runtime/clients/client-address.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import { readBody } from '../../runtime/door/body.ts';
import { Door, type DoorLimits } from '../../runtime/door/door.ts';
import { isOwnOrigin } from '../../runtime/door/host-name.ts';
import { markupText } from '../../runtime/door/markup.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { FAUCET_ERRORS, type Faucet, type FaucetGiven, type FaucetRefused } from './faucet.ts';

const LIMITS: DoorLimits = {
  connections: 512,
  perClient: 8,
  reserved: 8,
  headBytes: 8_192,
  bodyBytes: 1_024,
  headMillis: 5_000,
  requestMillis: 10_000,
  answerMillis: 60_000,
  stallMillis: 10_000,
  idleMillis: 15_000,
};

const FORM = 'application/x-www-form-urlencoded';
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cache-control': 'no-store',
};

export type FaucetListenerOptions = {
  readonly listen: ListenAddress;
  readonly proxies: readonly string[];
  readonly hosts: readonly string[];
};

const isGiven = (answer: FaucetGiven | FaucetRefused): answer is FaucetGiven => 'amount' in answer;

export function faucetPage({ options }: Faucet, left: number, said?: FaucetGiven | FaucetRefused): string {
  const { network, amount, perNetwork } = options;
  const note =
    said === undefined
      ? ''
      : isGiven(said)
        ? `<p role="status">${markupText(said.amount)} coins are on their way to ${markupText(said.address)}${said.transaction === null ? '' : `, transaction ${markupText(said.transaction)}`}.</p>`
        : `<p role="alert">${markupText(said.message)}</p>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><title>Faucet of ${network}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}input{width:100%;box-sizing:border-box;font:inherit;padding:.4rem}button{font:inherit;padding:.4rem 1rem;margin-top:.6rem}</style>
</head><body><main><h1>Faucet of ${network}</h1>${note}
<p>${formatCoins(amount)} coins for an address, once a day; ${perNetwork} a day for one network. ${left} payments are left today (UTC).</p>
<form method="post" action="./"><label for="address">Address</label><input id="address" name="address" required maxlength="128" autocomplete="off" spellcheck="false"><button type="submit">Send me coins</button></form>
</main></body></html>
`;
}

const refusedText = ({ code, message, retryMillis }: FaucetRefused): string =>
  JSON.stringify({
    error: { code, message },
    ...(retryMillis === undefined ? {} : { retry_after_millis: retryMillis }),
  });

class FaucetRoutes {
  readonly #faucet: Faucet;
  readonly #proxies: TrustedProxies;

  constructor(faucet: Faucet, proxies: TrustedProxies) {
    this.#faucet = faucet;
    this.#proxies = proxies;
  }

  async serve(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { method = '' } = request;
    const isRead = method === 'GET' || method === 'HEAD';
    if (path === '/health' && isRead) return send(response, 200, 'text/plain', 'ok\n');
    if (path !== '/' && path !== '/v1/faucet')
      return refuse(response, { code: 'not_found', message: 'offered: /, /health, GET and POST /v1/faucet' });
    if (method === 'POST') return await this.#give(request, response, path);
    if (!isRead) return refuse(response, { code: 'method_not_allowed', message: 'use GET or POST' });
    // Until the wallet has read the day nobody can be paid either.
    const left = await this.#faucet.left().catch(() => 0);
    if (path === '/') return send(response, 200, 'text/html', faucetPage(this.#faucet, left));
    const { network, amount, perNetwork, perDay } = this.#faucet.options;
    const document = {
      network,
      amount: formatCoins(amount),
      per_network: perNetwork,
      per_day: perDay,
      left_today: left,
    };
    send(response, 200, 'application/json', JSON.stringify(document));
  }

  async #give(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const { headers, socket } = request;
    const peer = socket.remoteAddress ?? '';
    const forwarded = this.#proxies.has(peer) ? headers['x-forwarded-host'] : undefined;
    // A page of somebody else must not spend what its visitors have left today.
    if (!isOwnOrigin(headers.origin, typeof forwarded === 'string' ? forwarded : headers.host))
      return refuse(response, { code: 'origin_refused', message: 'web pages of this origin are not served here' });
    if (this.#proxies.hidesClients(peer, headers['x-forwarded-for']))
      return refuse(response, { code: 'bad_request', message: 'the proxy does not say who its client is' });
    const body = await readBody(request, LIMITS.bodyBytes);
    if (body === 'incomplete') return;
    if (body === 'too_large')
      return refuse(response, { code: 'body_too_large', message: `at most ${LIMITS.bodyBytes} bytes` });
    const isForm = headers['content-type']?.startsWith(FORM) === true;
    const address = isForm ? new URLSearchParams(body.toString()).get('address')?.trim() : addressOf(body.toString());
    const answer: FaucetGiven | FaucetRefused =
      address === undefined || address === ''
        ? { code: 'bad_request', message: 'send {"address": "..."}, or the form' }
        : await this.#faucet.give(address, this.#proxies.clientOf(peer, headers['x-forwarded-for']));
    if (path === '/' && isForm) {
      const left = await this.#faucet.left().catch(() => 0);
      const status = isGiven(answer) ? 200 : FAUCET_ERRORS[answer.code];
      send(response, status, 'text/html', faucetPage(this.#faucet, left, answer));
    } else if (isGiven(answer)) send(response, 200, 'application/json', JSON.stringify(answer));
    else refuse(response, answer);
  }
}

function addressOf(text: string): string | undefined {
  try {
    const { address } = (JSON.parse(text) ?? {}) as { readonly address?: unknown };
    return typeof address === 'string' ? address : undefined;
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, status: number, type: string, body: string, more: object = {}): void {
  response.writeHead(status, {
    ...HEADERS,
    'content-type': `${type}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    ...more,
  });
  response.end(body);
}

function refuse(response: ServerResponse, refused: FaucetRefused): void {
  const { code, retryMillis } = refused;
  const later = retryMillis === undefined ? {} : { 'retry-after': String(Math.ceil(retryMillis / 1_000)) };
  send(response, FAUCET_ERRORS[code], 'application/json', refusedText(refused), { ...later, connection: 'close' });
}

export async function listenForFaucet(
  { listen, proxies, hosts }: FaucetListenerOptions,
  faucet: Faucet,
  log: Logger,
): Promise<{ readonly address: ListenAddress; close(): Promise<void> }> {
  const trusted = new TrustedProxies(proxies, {
    option: '--trusted-proxy',
    warn: (message, fields) => log.warn(message, fields),
  });
  const routes = new FaucetRoutes(faucet, trusted);
  const door = new Door(
    { name: 'faucet', limits: LIMITS, hosts, origins: null, proxies: trusted, inTurns: true },
    {
      request: (request, response, { path }) => routes.serve(request, response, path),
      words: (code, message) => ({
        status: FAUCET_ERRORS[code],
        type: 'application/json',
        body: refusedText({ code, message }),
      }),
    },
    { log },
  );
  return { address: await door.listen(listen, { what: 'the faucet' }), close: () => door.close(5_000) };
}
