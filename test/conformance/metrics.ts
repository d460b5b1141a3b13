/** Limits: ports and metrics. */
import assert from 'node:assert/strict';
import { documentAt, get, post, until } from './client.ts';
import { type Fact, factsOf, needs, type Target } from './fact.ts';

const NODE_NAMES = [
  'uptime_seconds',
  'finalized_height',
  'synced',
  'peers',
  'best_peer_height',
  'cuts_total',
  'registered_blocks_total',
  'executed_blocks_total',
  'paid_rewards_total',
  'mempool_transactions',
  'work_pool_blocks',
  'p2p_received_bytes_total',
  'p2p_sent_bytes_total',
  'p2p_queued_cuts',
  'p2p_queued_blocks',
];

const scraped = async (url: string | undefined, option: string): Promise<string> => {
  const answer = await get(`${needs(url, option)}/metrics`);
  assert.equal(answer.status, 200);
  return answer.text;
};

const figureOf = (page: string, name: string): number =>
  Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(page)?.[1] ?? Number.NaN);

const prefixed =
  (prefix: string, option: string, urlOf: (target: Target) => string | undefined): Fact['check'] =>
  async (target) => {
    const names = [...(await scraped(urlOf(target), option)).matchAll(/^# TYPE (\w+) /gm)].map(
      ([, name]) => name as string,
    );
    assert.ok(names.length > 0);
    assert.deepEqual(
      names.filter((name) => !name.startsWith(prefix)),
      [],
    );
  };

export const METRICS: readonly Fact[] = factsOf('Limits: metrics', {
  ...Object.fromEntries(
    NODE_NAMES.map((name) => [
      `\`svc_node_${name}\``,
      async ({ nodeMetrics }: Target) => {
        assert.match(await scraped(nodeMetrics, '--node-metrics'), new RegExp(`^svc_node_${name} -?\\d`, 'm'));
      },
    ]),
  ),
  '`svc_node_info{version,network}`': async ({ nodeMetrics }) => {
    assert.match(
      await scraped(nodeMetrics, '--node-metrics'),
      /^svc_node_info\{version="[^"]+",network="[a-z0-9]+"\} 1$/m,
    );
  },
  '`svc_node_cut_step_seconds{step}`': async ({ nodeMetrics }) => {
    assert.match(await scraped(nodeMetrics, '--node-metrics'), /^svc_node_cut_step_seconds_\w+\{.*step="\w+"/m);
  },
  '`svc_node_submissions_total{kind,result}`': async ({ nodeMetrics }) => {
    assert.match(
      await scraped(nodeMetrics, '--node-metrics'),
      /^svc_node_submissions_total\{kind="\w+",result="\w+"\} \d/m,
    );
  },
  '`svc_node_finalized_height` and `svc_node_synced` are those of `GET /v1/node/sync`': async ({
    api,
    nodeMetrics,
  }) => {
    // A cut may come between the two.
    const both = async () => {
      const shown = await scraped(nodeMetrics, '--node-metrics');
      const { finalized_height: height, synced } = await documentAt(`${api}/v1/node/sync`);
      return [
        [figureOf(shown, 'svc_node_finalized_height'), figureOf(shown, 'svc_node_synced')],
        [height, synced === true ? 1 : 0],
      ].map(String);
    };
    await until(both, ([figures, document]) => figures === document);
  },
  '`svc_node_cuts_total` and `svc_node_uptime_seconds` grow with the chain': async ({ nodeMetrics }) => {
    const page = () => scraped(nodeMetrics, '--node-metrics');
    const first = await page();
    const grown = (later: string, name: string) => figureOf(later, name) - figureOf(first, name);
    const later = await until(
      page,
      (text) =>
        grown(text, 'svc_node_finalized_height') > 1 &&
        grown(text, 'svc_node_cuts_total') === grown(text, 'svc_node_finalized_height'),
    );
    assert.ok(grown(later, 'svc_node_uptime_seconds') > 0);
  },
  'a refused submission is counted in `svc_node_submissions_total`': async ({ api, nodeMetrics }) => {
    const count = async () =>
      [...(await scraped(nodeMetrics, '--node-metrics')).matchAll(/^svc_node_submissions_total\{.*\} (\d+)$/gm)]
        .map(([, value]) => Number(value))
        .reduce((sum, value) => sum + value, 0);
    const before = await count();
    await post(`${api}/v1/transactions`, { api_version: 1, wire_hex: '00' });
    await until(count, (now) => now > before);
  },
  'metrics of the pool begin with `svc_pool_`': prefixed('svc_pool_', '--pool-web', ({ poolWeb }) => poolWeb),
  'metrics of the node begin with `svc_node_`': prefixed(
    'svc_node_',
    '--node-metrics',
    ({ nodeMetrics }) => nodeMetrics,
  ),
  'metrics of the bridge begin with `svc_bridge_`': prefixed(
    'svc_bridge_',
    '--bridge-metrics',
    ({ bridgeMetrics }) => bridgeMetrics,
  ),
  'metrics of the miner begin with `svc_miner_`': prefixed(
    'svc_miner_',
    '--miner-metrics',
    ({ minerMetrics }) => minerMetrics,
  ),
  'JSON statistics of bridge and miner at `/v1/stats`': async ({ bridgeStats, minerStats }) => {
    for (const url of [needs(bridgeStats, '--bridge-stats'), needs(minerStats, '--miner-stats')]) {
      const answer = await get(`${url}/v1/stats`);
      assert.deepEqual([answer.status, typeof answer.json], [200, 'object']);
    }
  },
});
