/** Answers to peers that lack parts of relayed items. */

import type { Bytes } from '../../../protocol/bytes.ts';
import { decodeBody } from '../../../protocol/ledger/body.ts';
import type { FullNode } from '../../full-node.ts';
import { ANSWER_BYTES, type AnsweredBlock, encodeBlocksAnswer } from '../sync/sync-messages.ts';
import { encodeWaiting, encodeWires, MAX_WAITING, type RelayQuestion } from './relay-messages.ts';

/** `handedOn`: a block that was announced to peers and is not in the store. */
export function answerRelay(
  { chain, mempool }: Pick<FullNode, 'chain' | 'mempool'>,
  question: RelayQuestion,
  handedOn: (id: Bytes) => AnsweredBlock | undefined,
): Uint8Array {
  if (question.type === 'transactions')
    return encodeWires(withinAnswer(question.ids.map((id) => mempool.get(id)?.wire)));
  if (question.type === 'waiting')
    return encodeWaiting({
      transactions: idsOf(mempool.list(), MAX_WAITING.transactions),
      blocks: idsOf(chain.waitingBlocks(), MAX_WAITING.blocks),
    });
  const [header, body] = [chain.block(question.block)?.header, chain.blockBody(question.block)];
  const block = header && body ? { header, body } : handedOn(question.block);
  if (question.type === 'block') return encodeBlocksAnswer([block]);
  const carried = block === undefined ? [] : decodeBody(block.body).transactions;
  return encodeWires(withinAnswer(question.indexes.map((index) => carried[index])));
}

/** Limited to the first ones: a mempool may hold many more. */
function idsOf(waiting: Iterable<{ readonly id: Bytes }>, most: number): Bytes[] {
  const ids: Bytes[] = [];
  for (const { id } of waiting) {
    if (ids.length >= most) break;
    ids.push(id);
  }
  return ids;
}

/** Items that do not fit into the answer are left out, and requested again. */
function withinAnswer(wires: readonly (Bytes | undefined)[]): (Bytes | undefined)[] {
  let bytes = 0;
  return wires.map((wire) => {
    bytes += wire?.length ?? 0;
    return bytes <= ANSWER_BYTES ? wire : undefined;
  });
}
