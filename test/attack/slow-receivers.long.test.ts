/** Strangers whose webhooks never answer. The limit by host does not hold them: with one wildcard in the DNS they have as many hosts as they like. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { MinerWebhooks, MOST_AT_ONCE } from '../../pool/webhooks/miner-webhooks.ts';
import { keyed, openPoolApiBed } from '../pool/api-bed.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';

test('receivers that never answer do not hold up the news of a miner that has earned more', async () => {
  const bed = await openPoolApiBed({ minerWebhooks: 'private' });
  onTestFinished(() => bed.close());
  const { sql } = bed.books;
  const hanging: ServerResponse[] = [];
  let isTold = false;
  const server = createServer((request, response) => {
    if (request.url === '/stranger') hanging.push(response);
    else {
      isTold = true;
      response.writeHead(204).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const payload = Buffer.from(keyed);
  // Each on a host of its own, and all of them due for longer than the miner.
  await sql`with strangers as (insert into miner_webhooks (account_id, url, secret, set_millis, next_at)
      select id, 'http://127.0.1.' || id || ${`:${port}/stranger`}, 'secret', 1, now() - interval '1 hour' from accounts
      where payload <> ${payload} and id < 255 returning account_id)
    insert into miner_news (account_id, event_id, at, kind, data)
      select account_id, 1, now(), 'worker_silent', '{}' from strangers`;
  const webhooks = new MinerWebhooks(
    { reach: 'private', pollMillis: 20, timeoutMillis: 600_000 },
    { sql, log: quietLog, now: Date.now, wall: Date.now },
  );
  onTestFinished(() => webhooks.close());
  await until(() => hanging.length === MOST_AT_ONCE);
  await sql`update accounts set paid = paid + 1000000000 where payload = ${payload}`;
  await sql`with mine as (insert into miner_webhooks (account_id, url, secret, set_millis)
      select id, ${`http://127.0.0.1:${port}/mine`}, 'secret', 1 from accounts where payload = ${payload}
      returning account_id)
    insert into miner_news (account_id, event_id, at, kind, data)
      select account_id, 2, now(), 'payout_final', '{}' from mine`;
  // One of them ends, and the place that it leaves is the miner's.
  hanging[0]?.writeHead(500).end();
  await until(() => isTold || hanging.length > MOST_AT_ONCE);
  expect(isTold).toBe(true);
});
