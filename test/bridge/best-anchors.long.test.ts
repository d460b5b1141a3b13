/**
 * The policy `best` from a real node to a miner and back: jobs stand on drawn anchors, each on a body of its own, and blocks on old anchors are registered
 * and paid.
 */
import { expect, test } from 'vitest';
import { serialOf } from '../../bridge/session/job-book.ts';
import { LEAST_CUTS_LEFT } from '../../node/mining/anchor-choice.ts';
import { toHex } from '../../protocol/bytes.ts';
import { blockId, decodeHeader } from '../../protocol/ledger/header.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { httpNode, startMiningBed } from '../faults/mining-bed.ts';
import { powHash } from '../pow-hash.ts';
import { until } from '../until.ts';
import { startBed } from './bed.ts';
import { accountOf, addressOf, mine, V1Client } from './stratum-client.ts';

const anchorOf = (job: Job): number => decodeHeader(job.header).anchorHeight;

test('a real node, a bridge and a miner: blocks on old anchors are registered and paid', async () => {
  const verifier = {
    prepare: async () => undefined,
    hash: async (epoch: number, header: Uint8Array) => powHash(epoch, header),
  };
  const { bed, url } = await startMiningBed({
    genesis: { initialWork: 8n, minimumWork: 8n },
    dependencies: { verifier },
  });
  await bed.seal(40);
  const startMillis = performance.now();
  const { server, sink, port } = await startBed({
    sources: [httpNode(url, 10_000, undefined, 'best')],
    nowMillis: () => bed.now + performance.now() - startMillis,
    anchors: 'best',
  });
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.rig`, 'd=4');

  const found = new Map<string, number>();
  for (let cuts = 0; cuts < 12; cuts++) {
    const { height } = bed.node.chain.head();
    // The job of this cut: the newest template builds on one of its open anchors.
    const job = client.jobs.at(-1) as Job;
    expect(anchorOf(job)).toBeLessThanOrEqual(height);
    expect(anchorOf(job) + REGISTRATION_WINDOW - height).toBeGreaterThanOrEqual(LEAST_CUTS_LEFT);
    const { target } = decodeHeader(job.header);
    const { nonce } = mine(job, client.prefix, 0n, targetToBytes(target));
    expect(await client.submitCode(job.jobId, nonce)).toBe(0);
    const header = Uint8Array.from(job.header);
    header.set(nonce, 304);
    found.set(toHex(blockId(header)), anchorOf(job));
    await until(async () => (await server.figures()).blocks.accepted === found.size);
    await bed.seal();
    await client.until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(job.jobId)));
  }
  // Anchors are drawn among all that are open, some 45: that eleven of twelve are new ones does not happen.
  expect([...found.values()].filter((anchor) => anchor < 40).length).toBeGreaterThan(1);
  const extranonces = new Set(client.jobs.map(({ extranonce }) => toHex(extranonce)));
  expect(extranonces.size).toBe(client.jobs.length);

  const { blocks, templates } = await server.figures();
  expect(blocks).toMatchObject({ found: 12, accepted: 12, refused: 0, late: 0 });
  expect(templates.anchors.older).toBeGreaterThan(templates.anchors.newest);
  while (bed.node.chain.head().height < Math.max(...found.values()) + REGISTRATION_WINDOW) await bed.seal();
  for (const [id, anchor] of found) {
    const record = bed.node.chain.block(Uint8Array.from(Buffer.from(id, 'hex')));
    expect(record).toMatchObject({ anchorHeight: anchor, reward: { state: 'paid' } });
    expect(toHex(record?.payout as Uint8Array)).toBe(toHex(accountOf(1)));
  }
  // The bridge hears of every reward, with the anchor that the block had.
  await until(async () => (await server.figures()).blocks.paid === 12);
  expect(sink.blocks.map(({ anchorHeight }) => anchorHeight)).toEqual([...found.values()]);
  client.close();
});
