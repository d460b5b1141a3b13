/** Strangers that are asked what waits and name blocks without work, of parents that there are not: they pay for the first one, and its body is not looked at. */
import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { faultOf } from '../../node/network/peers/peer-fault.ts';
import { fetchBlock } from '../../node/network/relay/block-relay.ts';
import { encodeBlocksAnswer } from '../../node/network/sync/sync-messages.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { bodyRewardRoot, decodeBody, encodeBody, parentsRoot, transactionsRoot } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { Bed } from '../node/bed.ts';

test('a block without work is refused by its header wherever it is fetched: its sender is to blame', async () => {
  const bed = await Bed.open({ genesis: { initialWork: 1n << 40n, minimumWork: 1n << 40n } });
  onTestFinished(() => bed.close());
  const node = bed.node as ConsensusNode;
  const template = node.template({ payout: developmentKey('alice').address, maxTransactions: 10, draw: 0 });
  const body = { ...decodeBody(template.body), parents: [randomBytes(48)] };
  const [rewardRoot, transactions] = [bodyRewardRoot(body), transactionsRoot(body)];
  const roots = { parentsRoot: parentsRoot(body), rewardRoot, transactionsRoot: transactions };
  const header = encodeHeader({ ...decodeHeader(template.header), ...roots });
  let looked = 0;
  const seen = {
    ledger: node.ledger,
    submitBlock: (...words: Parameters<ConsensusNode['submitBlock']>) => {
      looked++;
      return node.submitBlock(...words);
    },
  };
  const ask = async () => encodeBlocksAnswer([{ header, body: encodeBody(body) }]);
  const fault = await fetchBlock('stranger', blockId(header), seen, { ask }).then(() => undefined, faultOf);
  expect([fault, looked]).toEqual(['bad_block', 0]);
});
