/**
 * Headers of blocks, which anybody can make up: those without work are refused by their place at once, and however many
 * come, the record of a cut is read once for all that name it.
 */
import { expect, test, vi } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { count, seed } from '../level.ts';
import { Bed } from '../node/bed.ts';
import { randomOf } from '../random.ts';

test('made-up headers cost no reading of their anchors again and again, whether their windows are open or closed', async () => {
  const bed = await Bed.open();
  const { ledger } = bed.node as ConsensusNode;
  const heads = [bed.node.chain.head()];
  for (let i = 0; i < REGISTRATION_WINDOW + 20; i++) {
    await bed.seal();
    heads.push(bed.node.chain.head());
  }
  const good = decodeHeader(bed.make(developmentKey('alice').address).header);
  const random = randomOf(seed);
  const codes = new Map<string, number>();
  const reads = vi.spyOn(LedgerStore.prototype, 'cut');
  for (let i = 0; i < count({ full: 2_000, deep: 20_000 }); i++) {
    const anchor = heads[random(heads.length)] as (typeof heads)[number];
    const { height: anchorHeight, cutId: anchorId, stateRoot, target } = anchor;
    // Too far ahead: that says nothing of its sender.
    const timestampMillis = bed.now + 20_000 + i;
    const header = encodeHeader({ ...good, anchorHeight, anchorId, stateRoot, target, timestampMillis });
    const refused = await ledger.examineHeader(header);
    codes.set(refused?.code ?? 'taken', (codes.get(refused?.code ?? 'taken') ?? 0) + 1);
  }
  expect([...codes.keys()].sort()).toEqual(['block_too_late', 'timestamp_too_late']);
  expect(reads.mock.calls.length).toBeLessThanOrEqual(REGISTRATION_WINDOW);
  reads.mockRestore();
  await bed.close();
});
