import { HttpNode } from '../../bridge/nodes/node-http.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { encodeBody, transactionsRoot } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader, encodeHeader, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { nodeTransport } from '../../runtime/node-client/node-transport.ts';

/**
 * Finds a block at the node with this mining port, on a chain where every few hashes are one, and returns its
 * identifier. `unique`: no body serves two blocks. `transactions` take the place of those that the node chose.
 */
export async function findBlock(miningPort: number, unique: number, transactions?: readonly Bytes[]): Promise<string> {
  const node = new HttpNode(
    {
      url: `http://127.0.0.1:${miningPort}`,
      anchors: 'newest',
      timeoutMillis: 60_000,
      payout: formatAddress(developmentKey('alice').address, 'development'),
      maxTransactions: 100,
      extranonce: unique.toString(16).padStart(80, '0'),
    },
    nodeTransport(),
  );
  const { header, body: chosen } = await node.template(0);
  const body = { ...chosen, ...(transactions && { transactions }) };
  const candidate = encodeHeader({ ...decodeHeader(header), transactionsRoot: transactionsRoot(body) });
  for (let nonce = 0n; ; nonce++) {
    new DataView(candidate.buffer).setBigUint64(NONCE_OFFSET, nonce, true);
    // The work of a block is a few hashes: the node itself says which nonce has it.
    const answer = await node.submit(candidate, encodeBody(body));
    if (answer.state === 'accepted') return toHex(blockId(candidate));
    if (answer.state !== 'refused' || answer.reason !== 'pow_above_target')
      throw new Error(`the block is not accepted: ${JSON.stringify(answer)}`);
  }
}
