import { HttpNode } from '../../bridge/nodes/node-http.ts';
import { developmentKey } from '../../node/development.ts';
import { formatAddress } from '../../protocol/address.ts';
import { encodeBody } from '../../protocol/body.ts';
import { toHex } from '../../protocol/bytes.ts';
import { blockId, NONCE_OFFSET } from '../../protocol/header.ts';
import { nodeTransport } from '../../runtime/node-transport.ts';

/** Finds a block at the node with this mining port, on a chain where every few hashes are one, and returns its identifier. `unique`: no body serves two blocks. */
export async function findBlock(miningPort: number, unique: number): Promise<string> {
  const node = new HttpNode(
    {
      ...{ url: `http://127.0.0.1:${miningPort}`, anchors: 'newest', timeoutMillis: 60_000 },
      ...{ payout: formatAddress(developmentKey('alice').address, 'development'), maxTransactions: 100 },
      extranonce: unique.toString(16).padStart(80, '0'),
    },
    nodeTransport(),
  );
  const { header, body } = await node.template(0);
  const candidate = Uint8Array.from(header);
  for (let nonce = 0n; ; nonce++) {
    new DataView(candidate.buffer).setBigUint64(NONCE_OFFSET, nonce, true);
    // The work of a block is a few hashes: the node itself says which nonce has it.
    const { state } = await node.submit(candidate, encodeBody(body));
    if (state === 'accepted') return toHex(blockId(candidate));
    if (state !== 'refused') throw new Error(`the block is ${state}`);
  }
}
