/** docs/bridge.md and docs/miner.md: a bridge and a miner on one machine. */
import { expect } from 'vitest';
import { json } from './asking.ts';
import type { Reader, Readers } from './reader.ts';

type BridgeStats = { readonly nodes: readonly unknown[] };

export async function bridges(anna: Reader, address: string): Promise<void> {
  const bridge = anna.starts('svc-bridge --node http://127.0.0.1:28702');
  await bridge.until(/ready healthy=true/);
  const miner = anna.starts('svc-miner -o stratum+tcp://127.0.0.1:28710 -u ADDRESS --cpu-threads 1 --throttle 10', {
    names: { ADDRESS: address },
  });
  await miner.until(/accepted/);
  await miner.stop();
  await bridge.stop();
}

/** With the second node, which follows the first. */
export async function bridgeOfTwoNodes(readers: Readers, anna: Reader): Promise<void> {
  const bridge = anna.starts(
    'svc-bridge --node http://127.0.0.1:28702 --node http://127.0.0.1:28802 --listen 0.0.0.0:28710',
  );
  await bridge.until(/ready healthy=true/);
  const stats = await json<BridgeStats>(`${readers.url(28_771)}/v1/stats`);
  expect(stats?.nodes).toHaveLength(2);
  await bridge.stop();
}
