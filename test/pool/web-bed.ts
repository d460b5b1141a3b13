/** The pool's web listener without the pool behind it. */
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { NO_RATE_LIMIT } from '../../node/api/rate-limit.ts';
import { OperatorToken } from '../../pool/api/operator/operator-token.ts';
import { startWeb, type WebOptions } from '../../pool/api/web.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';

type Upgrades = Pick<Parameters<typeof startWeb>[1], 'live'> & Partial<Parameters<typeof startWeb>[1]>;

/** The port it listens on. */
export async function webBed(
  proxies: readonly string[],
  upgrades: Upgrades,
  options: Partial<WebOptions> = {},
): Promise<number> {
  const directory = temporaryDirectory();
  const web = await startWeb(
    {
      listen: { host: '127.0.0.1', port: 0 },
      prefix: '',
      proxies,
      dashboard: directory,
      title: 'test',
      version: '0',
      metrics: false,
      rate: NO_RATE_LIMIT,
      ...options,
    },
    {
      routes: [],
      token: new OperatorToken(join(directory, 'token'), { log: quietLog }),
      metrics: new Metrics('svc_pool'),
      log: quietLog,
      now: Date.now,
      ready: () => true,
      ...upgrades,
    },
  );
  onTestFinished(() => web.close());
  return web.address.port;
}
