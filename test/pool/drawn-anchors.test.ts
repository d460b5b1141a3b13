/**
 * Drawn anchors and the books (books rule 2): a share is in the slice of the time when its work was done, whatever anchor its job was on; a block is in the slice of its
 * anchor, which was drawn before anybody hashed.
 */
import { expect, test } from 'vitest';
import { serialOf } from '../../bridge/session/job-book.ts';
import { SharePlaces } from '../../pool/books/share-slice.ts';
import { shareIdentity } from '../../protocol/books/share-identity.ts';
import { decodeHeader } from '../../protocol/ledger/header.ts';
import type { Job } from '../../protocol/stratum/messages.ts';
import { startBed } from '../bridge/bed.ts';
import { addressOf, mine, V1Client } from '../bridge/stratum-client.ts';
import { TemplateSource } from '../bridge/template-source.ts';

const SLICE_CUTS = 4;
const sliceOf = (height: number): number => Math.floor(height / SLICE_CUTS);

test('work on old anchors stays in the slice of its own time', async () => {
  const source = new TemplateSource();
  source.olderAnchors = 60;
  const { server, sink, port } = await startBed({ sources: [source], anchors: 'best', blockWork: 4n });
  for (let i = 0; i < 60; i++) source.cut();
  while ((await server.figures()).headHeight < source.height) await new Promise((resolve) => setTimeout(resolve, 2));
  const client = await V1Client.open(port);
  await client.login(`${addressOf(1)}.rig`);
  const heads: number[] = [];
  for (let cuts = 0; cuts < 12; cuts++) {
    const last = serialOf(client.jobs.at(-1)?.jobId ?? 0);
    source.cut();
    const job: Job = await client.until(() => client.jobs.find(({ jobId }) => serialOf(jobId) > last));
    expect(await client.submitCode(job.jobId, mine(job, client.prefix).nonce)).toBe(0);
    heads.push(source.height);
  }
  client.close();
  expect(sink.accepted.map(({ cutHeight }) => cutHeight)).toEqual(heads);
  // Every hash was a block here.
  expect(sink.blocks.length).toBe(12);
  for (const { anchorHeight, header } of sink.blocks) expect(decodeHeader(header).anchorHeight).toBe(anchorHeight);
  expect(sink.blocks.some(({ anchorHeight, cutHeight }) => sliceOf(anchorHeight) < sliceOf(cutHeight))).toBe(true);

  // An accountant that comes late, when no slice of that time is closed yet, puts each share where it was done. By the anchors it would not.
  const placesBy = async (heights: readonly number[]) => {
    const places = await SharePlaces.of((async () => []) as never, ['00'], { newest: 10_000, sliceCuts: SLICE_CUTS });
    return sink.accepted.map(({ headerDigest, nonce }, sequence) => {
      const identity = { anchorHeight: heights[sequence] as number, bytes: shareIdentity(headerDigest, nonce) };
      return places.place({ bootId: '00', sequence, record: { identity }, slice: undefined }, 0);
    });
  };
  expect(await placesBy(sink.accepted.map(({ cutHeight }) => cutHeight))).toEqual(heads.map(sliceOf));
  expect(await placesBy(sink.blocks.map(({ anchorHeight }) => anchorHeight))).not.toEqual(heads.map(sliceOf));
});
