/** Everything that a node's doors refuse, or that once did harm behind them, ready to be sent to a running node. */
import { createHash } from 'node:crypto';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentKey, TREASURY } from '../../node/genesis/development.ts';
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { merkleRoot } from '../../protocol/crypto/merkle.ts';
import { decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { decodeHeader, encodeHeader, type Header, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { payment } from '../node/bed.ts';

const payout = formatAddress(developmentKey('mallory').address, 'development');

export type Answer = {
  readonly status: number;
  readonly document: Record<string, never> & { error?: { code: string } };
};
export type Block = { readonly header: Bytes; readonly body: Bytes };

/** The doors of a running node. */
export class NodeDoors {
  api = '';
  mining = '';

  async ask(url: string, document?: unknown): Promise<Answer> {
    const init = document === undefined ? {} : { method: 'POST', body: JSON.stringify(document) };
    const answer = await fetch(url, { ...init, headers: { 'content-type': 'application/json' } });
    return { status: answer.status, document: (await answer.json()) as Answer['document'] };
  }

  async template(): Promise<Block> {
    const { document } = await this.ask(`${this.mining}/v1/mining/templates`, { payout, max_transactions: 100 });
    const { header_hex, body_hex } = document as unknown as { header_hex: string; body_hex: string };
    return { header: fromHex(header_hex), body: fromHex(body_hex) };
  }

  send({ header, body }: Block): Promise<Answer> {
    return this.ask(`${this.mining}/v1/mining/candidates`, { header_hex: toHex(header), body_hex: toHex(body) });
  }

  pay(wire: Bytes): Promise<Answer> {
    return this.ask(`${this.api}/v1/transactions`, { api_version: 1, wire_hex: toHex(wire) });
  }

  async height(): Promise<number> {
    const { document } = await this.ask(`${this.api}/v1/chain/head`);
    return (document as unknown as { finalized_height: number }).finalized_height;
  }
}

export const twin = ({ header, body }: Block, nonce: number): Block => {
  const other = Uint8Array.from(header);
  other[NONCE_OFFSET] = nonce;
  return { header: other, body };
};

export const withHeader = ({ header, body }: Block, change: Partial<Header>): Block => ({
  header: encodeHeader({ ...decodeHeader(header), ...change }),
  body,
});

const cutShort = (bytes: Bytes): Bytes => bytes.subarray(0, bytes.length - 1);
const junk = (bytes: number): Uint8Array<ArrayBuffer> =>
  new Uint8Array(bytes).map((_, i) => createHash('sha256').update(String(i)).digest()[0] as number);

/** A payment out of the treasury, good from now on: a chain of short cuts is soon further than a payment of its beginning lasts. */
export async function treasuryPayment(node: NodeDoors): Promise<Uint8Array<ArrayBuffer>> {
  const { address } = developmentKey(TREASURY);
  const text = formatAddress(address, 'development');
  const { document } = await node.ask(`${node.api}/v1/address/${text}/utxos?limit=1`);
  const { utxos } = document as unknown as {
    utxos: { outpoint: { transaction_id: string; output_index: number }; amount: string }[];
  };
  const [{ outpoint, amount }] = utxos as [(typeof utxos)[number]];
  const spent: UnspentOutput = {
    outpoint: { transactionId: fromHex(outpoint.transaction_id), outputIndex: outpoint.output_index },
    address,
    amount: BigInt(amount),
    source: 'genesis',
  };
  const manifest = (await node.ask(`${node.api}/v1/transactions/manifest`)).document as unknown as { chain_id: string };
  const height = await node.height();
  const chain = { chainId: fromHex(manifest.chain_id), head: () => ({ height }) };
  return payment(chain as never, [spent], [{ address: developmentKey('alice').address, amount: 1n }]);
}

export const spoiled = (wire: Bytes): Uint8Array<ArrayBuffer> => {
  const copy = Uint8Array.from(wire);
  copy[copy.length - 1] = (copy[copy.length - 1] as number) ^ 1;
  return copy;
};

/** Everything a stranger or a miner's program may send. Each gives back the answers; none may be 500. */
export const KINDS: Readonly<Record<string, (node: NodeDoors) => Promise<Answer[]>>> = {
  'two blocks on one body': async (node) => {
    const block = await node.template();
    return await Promise.all(Array.from({ length: 16 }, (_, i) => node.send(twin(block, i))));
  },
  'the same block many times': async (node) => {
    const block = await node.template();
    return await Promise.all(Array.from({ length: 8 }, () => node.send(block)));
  },
  'headers that are wrong': async (node) => {
    const block = await node.template();
    const { timestampMillis, target } = decodeHeader(block.header);
    const wrong: Partial<Header>[] = [
      { networkId: 2 },
      { anchorHeight: 1_000_000 },
      { anchorHeight: Number.MAX_SAFE_INTEGER - 200 },
      { anchorId: junk(48) },
      { stateRoot: junk(48) },
      { target: target - 1n },
      { timestampMillis: 0 },
      { timestampMillis: timestampMillis + 100_000 },
      { timestampMillis: Number.MAX_SAFE_INTEGER },
      { parentsRoot: junk(48) },
      { transactionsRoot: junk(48) },
      { rewardRoot: junk(48) },
    ];
    return await Promise.all(wrong.map((change) => node.send(withHeader(block, change))));
  },
  'bytes that are no block': async (node) => {
    const block = await node.template();
    return await Promise.all([
      node.send({ ...block, header: cutShort(block.header) }),
      node.send({ ...block, header: junk(312) }),
      node.send({ ...block, body: cutShort(block.body) }),
      node.send({ ...block, body: junk(1_000) }),
      node.send({ ...block, body: new Uint8Array(0) }),
      node.ask(`${node.mining}/v1/mining/candidates`, { header_hex: 'zz', body_hex: 7 }),
      node.ask(`${node.mining}/v1/mining/candidates`, []),
      node.ask(`${node.mining}/v1/mining/templates`, { payout: 'nobody', max_transactions: -1 }),
    ]);
  },
  'bodies whose parents and transactions are wrong': async (node) => {
    const block = await node.template();
    const body = decodeBody(block.body);
    const parents = [junk(48)];
    const transactions = [junk(200)];
    return await Promise.all([
      node.send({ ...withHeader(block, { parentsRoot: merkleRoot(parents) }), body: encodeBody({ ...body, parents }) }),
      node.send({
        ...withHeader(block, { transactionsRoot: merkleRoot(transactions) }),
        body: encodeBody({ ...body, transactions }),
      }),
    ]);
  },
  'a block with a spoiled payment': async (node) => {
    const wire = await treasuryPayment(node);
    const block = await node.template();
    const body = { ...decodeBody(block.body), transactions: [spoiled(wire)] };
    const header = withHeader(block, { transactionsRoot: merkleRoot(body.transactions) });
    return [await node.send({ ...header, body: encodeBody(body) }), await node.pay(wire)];
  },
  'transactions that are wrong': async (node) => {
    const wire = await treasuryPayment(node);
    return await Promise.all([spoiled(wire), cutShort(wire), junk(100), junk(60_000)].map((bytes) => node.pay(bytes)));
  },
};
