/** A snapshot of the first epoch, whose committee has no predecessor: nothing goes into the store that the state does not name. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { committeeOf, decodeCommittee } from '../../node/ledger/staking/committee.ts';
import { createSnapshot } from '../../node/snapshot/create-snapshot.ts';
import { LENGTH_BYTES, MAGIC } from '../../node/snapshot/snapshot-file.ts';
import { decodeSnapshotHead, encodeSnapshotHead, FIRST_SNAPSHOT } from '../../node/snapshot/snapshot-head.ts';
import { headRule } from '../../node/snapshot/snapshot-parts.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { NetBed } from '../network/peers.ts';

test('a second committee of the same epoch makes the first part a false one', async () => {
  const bed = new NetBed();
  onTestFinished(() => bed.close());
  const node = await bed.openChain('source');
  onTestFinished(() => node.close());
  await bed.seal({ node }, FIRST_SNAPSHOT);
  const { cutId } = node.chain.head();
  const file = join(bed.directory, 'snapshot');
  const frozen = node.frozen();
  await createSnapshot(frozen, file);
  await frozen.close();
  const bytes = readFileSync(file);
  const at = MAGIC.length + LENGTH_BYTES;
  const part = bytes.subarray(at, at + bytes.readUInt32LE(MAGIC.length));
  const { read } = headRule(cutId, FIRST_SNAPSHOT);
  expect(read(part).committees.map(({ epoch }) => epoch)).toEqual([0, 0]);
  const head = decodeSnapshotHead(part);
  const [own] = head.committees as [Bytes];
  const { members } = decodeCommittee(own);
  for (const epoch of [0, 1]) {
    const forged = committeeOf(epoch, [...members].reverse());
    for (const committees of [
      [own, forged.bytes],
      [forged.bytes, own],
    ])
      expect(() => read(encodeSnapshotHead({ ...head, committees }))).toThrow(/committee/);
  }
});
