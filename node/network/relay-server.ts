/** Answers of this node to peers that lack something of what was relayed. */
import { decodeBody } from '../../protocol/body.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import type { FullNode } from '../full-node.ts';
import { encodeWires, type RelayQuestion } from './relay-messages.ts';
import { ANSWER_BYTES, encodeBlocksAnswer } from './sync-messages.ts';

export function answerRelay(
  { chain, mempool }: Pick<FullNode, 'chain' | 'mempool'>,
  question: RelayQuestion,
): Uint8Array {
  if (question.type === 'transactions')
    return encodeWires(withinAnswer(question.ids.map((id) => mempool.get(id)?.wire)));
  const body = chain.blockBody(question.block);
  if (question.type === 'block') {
    const header = chain.block(question.block)?.header;
    return encodeBlocksAnswer([header && body && { header, body }]);
  }
  const carried = body === undefined ? [] : decodeBody(body).transactions;
  return encodeWires(withinAnswer(question.places.map((place) => carried[place])));
}

/** What has no room in the answer is left out, and asked for again. */
function withinAnswer(wires: readonly (Bytes | undefined)[]): (Bytes | undefined)[] {
  let bytes = 0;
  return wires.map((wire) => {
    bytes += wire?.length ?? 0;
    return bytes <= ANSWER_BYTES ? wire : undefined;
  });
}
