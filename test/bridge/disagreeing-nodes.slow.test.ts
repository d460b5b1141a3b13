/** Two nodes that disagree: the first that is well decides, blocks still go to both, and another chain's rewards pay nobody. */
import { expect, test } from 'vitest';
import { serialOf } from '../../bridge/session/job-book.ts';
import { toHex } from '../../protocol/bytes.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { startBed } from './bed.ts';
import { addressOf, mine, V1Client } from './stratum-client.ts';
import { TemplateSource } from './template-source.ts';

const BLOCK_WORK = 8n;
const BLOCK = targetToBytes(targetOfWork(BLOCK_WORK));

async function twoNodes() {
  const [first, second] = [new TemplateSource('first'), new TemplateSource('second')];
  const bed = await startBed({ sources: [first, second], blockWork: BLOCK_WORK });
  const client = await V1Client.open(bed.port);
  await client.login(`${addressOf(1)}.a`);
  return { ...bed, first, second, client };
}

/** Submits a block on the newest job; its id. */
async function findBlock(client: V1Client): Promise<string> {
  const job = client.jobs.at(-1)!;
  const { nonce } = mine(job, client.prefix, 0n, BLOCK);
  expect(await client.submitCode(job.jobId, nonce)).toBe(0);
  const header = Uint8Array.from(job.header);
  header.set(nonce, 304);
  return toHex(blockId(header));
}

const anchorOf = (header: Uint8Array): string => toHex(header.subarray(32, 80));

test('jobs are on the first node’s chain only, and its answer to a block counts beside a refusal', async () => {
  const { server, first, second, client, sink } = await twoNodes();
  // Same height, another cut: both are named as disagreeing.
  expect((await server.figures()).nodes).toMatchObject([
    { name: 'first', serving: true, disagrees: true },
    { name: 'second', serving: false, disagrees: true },
  ]);
  second.answer = { state: 'refused', reason: 'the anchor is unknown' };
  const id = await findBlock(client);
  await expect.poll(() => second.submitted.length).toBe(1);
  await expect.poll(() => sink.fates).toMatchObject([{ id, fate: { state: 'accepted' } }]);
  // The second runs ahead on its own chain, and even claims to pay the block.
  for (let i = 0; i < 150; i++)
    second.cut(i === 100 ? [{ blockId: id, transactionId: 'ab', outputIndex: 0, amount: 1n }] : []);
  expect(sink.fates.length).toBe(1);
  const served = new Set<string>();
  for (let i = 0; i < 3; i++) {
    const before = client.jobs.at(-1)!;
    first.cut(i === 2 ? [{ blockId: id, transactionId: 'cd', outputIndex: 1, amount: 77n }] : []);
    const job = await client.until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(before.jobId)));
    expect(job.clean).toBe(false);
    served.add(anchorOf(job.header));
  }
  expect(served.size).toBe(3);
  await expect.poll(() => sink.fates.at(-1)).toMatchObject({ id, fate: { state: 'paid', amount: 77n } });
  client.close();
});

test('when the other chain takes over, its jobs are clean; a node that is merely behind makes no job worthless', async () => {
  const { first, second, client } = await twoNodes();
  const before = client.jobs.at(-1)!;
  first.away();
  const other = await client.until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(before.jobId)));
  expect(anchorOf(other.header)).not.toBe(anchorOf(before.header));
  expect(other.clean).toBe(true);
  expect(await client.submitCode(before.jobId, mine(before, client.prefix).nonce)).toBe(21);
  // The same chain from here on: the first comes back one cut behind the second.
  const shared = second.cutId;
  second.cut();
  const newest = await client.until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(other.jobId)));
  first.takeUp(second.height - 1, shared);
  first.back();
  const lagging = await client.until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > serialOf(newest.jobId)));
  expect(lagging.clean).toBe(false);
  expect(anchorOf(lagging.header)).toBe(toHex(shared));
  expect(await client.submitCode(newest.jobId, mine(newest, client.prefix).nonce)).toBe(0);
  client.close();
});

test('rewards that the serving node did not live to tell of come from the next one', async () => {
  const { first, second, client, sink } = await twoNodes();
  first.takeUp(second.height, second.cutId);
  first.back();
  await client.until(() => client.jobs.find(({ header }) => anchorOf(header) === toHex(second.cutId)));
  const id = await findBlock(client);
  await expect.poll(() => sink.fates.length).toBe(1);
  second.cut([{ blockId: id, transactionId: 'ab', outputIndex: 0, amount: 5n }]);
  second.cut();
  expect(sink.fates.length).toBe(1);
  first.away();
  await expect.poll(() => sink.fates.at(-1)).toMatchObject({ id, fate: { state: 'paid', amount: 5n } });
  client.close();
});
