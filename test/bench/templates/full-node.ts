/**
 * A mining listener whose mempool is always full: a mebibyte of transactions, of which some leave and as many come with every cut. The
 * bytes are random: a bridge does not read them, and nothing else would be as dear.
 */
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Template } from '../../../node/full-node.ts';
import { EVENTS_PROTOCOL } from '../../../node/mining/listener.ts';
import { writeTemplate } from '../../../node/mining/requests.ts';
import { type Bytes, toHex } from '../../../protocol/bytes.ts';
import { merkleLeaf, merkleRootOfHashes } from '../../../protocol/crypto/merkle.ts';
import { datasetSeed } from '../../../protocol/crypto/pow.ts';
import { parentsRoot } from '../../../protocol/ledger/body.ts';
import { encodeHeader, registrationWindowEnd } from '../../../protocol/ledger/header.ts';
import { rewardRoot } from '../../../protocol/ledger/reward.ts';
import { targetOfWork } from '../../../protocol/ledger/target.ts';
import { NETWORKS } from '../../../protocol/network.ts';

const WIRE_BYTES = 3_540;
const NETWORK = NETWORKS.development;
const TARGET = targetOfWork(1n << 60n);

type Waiting = { readonly wire: Bytes; readonly leaf: Bytes };

const fresh = (): Waiting => {
  const wire = randomBytes(WIRE_BYTES);
  return { wire, leaf: merkleLeaf(wire) };
};

export class FullNode {
  readonly #mempool: Waiting[];
  readonly #changed: number;
  readonly #server: Server;
  readonly #sockets = new WebSocketServer({ noServer: true, handleProtocols: () => EVENTS_PROTOCOL });
  readonly #seed = datasetSeed(NETWORK.id, 0);
  readonly #zero = '0'.repeat(96);
  #height = 1_000;
  #cutId: Bytes = randomBytes(48);

  /** `perCut` transactions change with every cut. */
  constructor(perCut: number) {
    this.#mempool = Array.from({ length: Math.floor((1024 * 1024 - 600) / (WIRE_BYTES + 4)) }, fresh);
    this.#changed = perCut;
    this.#server = createServer((request, response) => {
      request.on('data', (part: Buffer) => {
        const { draw } = JSON.parse(part.toString()) as { draw: number };
        const json = this.#template(draw);
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': json.length }).end(json);
      });
    });
    this.#server.on('upgrade', (request, socket, head) =>
      this.#sockets.handleUpgrade(request, socket, head, (reader) => reader.send(this.#checkpoint())),
    );
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get #cut() {
    return { height: this.#height, cut_id: toHex(this.#cutId), state_root: this.#zero, validator_set_id: this.#zero };
  }

  #checkpoint(): string {
    return JSON.stringify({
      type: 'checkpoint',
      data: { api_version: 1, finalized_height: this.#height, cut: this.#cut },
    });
  }

  cut(): void {
    this.#height++;
    this.#cutId = randomBytes(48);
    for (let i = 0; i < this.#changed; i++)
      this.#mempool[(this.#height * this.#changed + i) % this.#mempool.length] = fresh();
    const work = { registered_work: 0, executed_work: 0, rewards: [], stake_rewards: '0', stake_payouts: [] };
    const frame = JSON.stringify({ type: 'cut_finalized', data: { api_version: 1, cut: this.#cut, ...work } });
    for (const reader of this.#sockets.clients as Set<WebSocket>) reader.send(frame);
  }

  /** Each draw has the same transactions in another order: another root, another body. */
  #template(draw: number): Buffer {
    const from = (draw * 53) % this.#mempool.length;
    const drawn = [...this.#mempool.slice(from), ...this.#mempool.slice(0, from)];
    const [payout, extranonce, parents] = [new Uint8Array(49), new Uint8Array(40), [] as Bytes[]];
    const transactionsRoot = merkleRootOfHashes(drawn.map(({ leaf }) => leaf));
    const anchor = { height: this.#height, cutId: this.#cutId, stateRoot: new Uint8Array(48) };
    const timestampMillis = Date.now();
    const fields = {
      networkId: NETWORK.id,
      anchorHeight: this.#height,
      timestampMillis,
      anchorId: this.#cutId,
      parentsRoot: parentsRoot({ parents }),
      transactionsRoot,
      rewardRoot: rewardRoot(payout, extranonce),
      stateRoot: anchor.stateRoot,
      target: TARGET,
      nonce: new Uint8Array(8),
    };
    const template = {
      ...fields,
      anchor,
      payout,
      extranonce,
      parents,
      draw,
      fees: 1n,
      target: TARGET,
      header: encodeHeader(fields),
      transactions: drawn.map(({ wire }) => wire),
      transactionCount: drawn.length,
      registrationWindowEnd: registrationWindowEnd(this.#height),
      pow: { epoch: 0, seed: this.#seed, epochLength: 1_036_800 },
      validMillis: 5_000,
    } as unknown as Template;
    return writeTemplate(template, NETWORK.name, new Uint8Array(48), 'none', Buffer.allocUnsafe);
  }

  close(): void {
    for (const reader of this.#sockets.clients) reader.terminate();
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
