/**
 * The miner's HTTP interface (docs/miner.md): GET /v1/stats for everyone on this machine, POST /v1/pause and /v1/resume
 * for clients that have the token. Web pages are refused: by their origin, and by a host name that is not local (DNS rebinding).
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { ListenAddress } from '../runtime/command-line/command-line.ts';
import { listenSmall, type SmallListenerDependencies, type SmallRoute } from '../runtime/door/small-listener.ts';

export type ApiActions = {
  stats(): Record<string, unknown>;
  pause(): void;
  resume(): void;
};

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

function isAllowed(request: IncomingMessage, token: string): boolean {
  const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  return given !== undefined && timingSafeEqual(digest(given), digest(token));
}

export function listenForApi(
  address: ListenAddress,
  token: string | undefined,
  { actions, ...dependencies }: SmallListenerDependencies & { readonly actions: ApiActions },
) {
  const change = (paused: boolean): SmallRoute => ({
    method: 'POST',
    answer(request) {
      if (token === undefined) return { status: 403, body: { error: 'the miner was started without --api-token' } };
      if (!isAllowed(request, token))
        return { status: 401, body: { error: 'wrong token' }, headers: { 'www-authenticate': 'Bearer' } };
      if (paused) actions.pause();
      else actions.resume();
      return { status: 200, body: { paused } };
    },
  });
  const routes = {
    '/v1/stats': { answer: () => ({ status: 200, body: actions.stats() }) },
    '/v1/pause': change(true),
    '/v1/resume': change(false),
  };
  const what = { name: 'miner', what: 'the API', offers: 'only /v1/stats, /v1/pause and /v1/resume are here' };
  return listenSmall(address, { ...what, routes, isJson: true }, dependencies);
}
