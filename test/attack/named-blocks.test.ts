/** Strangers that are asked what waits and name blocks without work, of parents that there are not: they pay for the first one, and its body is not looked at. */
import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { faultOf } from '../../node/network/peers/peer-fault.ts';
import { fetchBlock } from '../../node/network/relay/block-relay.ts';
import { encodeBlocksAnswer } from '../../node/network/sync/sync-messages.ts';
import type { ConsensusNode } from '../../node/node.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { Bed } from '../node/bed.ts';

test('a block without work is refused by its header wherever it comes from, and its body is not read: its sender is to blame', async () => {
  const bed = await Bed.open({ genesis: { initialWork: 1n << 40n, minimumWork: 1n << 40n } });
  onTestFinished(() => bed.close());
  const node = bed.node as ConsensusNode;
  const { header, body } = node.template({ payout: developmentKey('alice').address, maxTransactions: 10, draw: 0 });
  const id = blockId(header);
  // Nothing that can be read: whoever looked at it would say so.
  for (const sent of [body, randomBytes(1_000)]) {
    const ask = async () => encodeBlocksAnswer([{ header, body: sent }]);
    expect(await fetchBlock('stranger', id, node, { ask }).then(() => undefined, faultOf)).toBe('bad_block');
    // As a validator takes it from a neighbour.
    expect(await node.submitBlock(header, sent, 'relayed')).toMatchObject({ error: { code: 'pow_above_target' } });
    const cut = { header: { height: 1, timestampMillis: bed.now }, blockIds: [id] } as unknown as ProposedCut;
    expect(await node.ledger.admit(header, sent, cut)).toMatchObject({
      impossible: expect.stringMatching(/^pow_above/),
    });
  }
});
