/**
 * A node reached over its mining listener (docs/protocol/mining.md): templates and blocks by HTTP, cuts by WebSocket.
 * A connection that goes quiet, is refused or answers nonsense makes the node `lost` until it is back.
 */
import { parseAtoms } from '../protocol/amount.ts';
import { followCuts } from '../protocol/api/client-events.ts';
import {
  parseFrame,
  type SocketConstructor,
  type SocketEvent,
  type StreamDependencies,
} from '../protocol/api/client-socket.ts';
import type { CutFinalized } from '../protocol/api/frames.ts';
import { decodeBody } from '../protocol/body.ts';
import { type Bytes, fromHex, toHex } from '../protocol/bytes.ts';
import { fromLongHex, toLongHex } from '../runtime/long-hex.ts';
import type { TemplateAnswer } from './template.ts';
import type { CandidateAnswer, CutNews, NodeEvents, NodeSource } from './upstream.ts';

export type HttpNodeOptions = {
  readonly url: string;
  /** Any address: each connection's own is put in its place. */
  readonly payout: string;
  readonly maxTransactions: number;
  /** As long as the longest one a connection can have, so that the body leaves room for it. */
  readonly extranonce: string;
  readonly timeoutMillis: number;
};

export type HttpNodeDependencies = StreamDependencies & {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly deadline: (millis: number) => AbortSignal;
};

/** The fields of the mining listener's answer that a template is made from. */
type TemplateDocument = {
  readonly anchor?: { readonly timestamp_millis?: number };
  readonly header_hex: string;
  readonly body_hex: string;
  readonly fees: string;
  readonly pow: { readonly epoch: number; readonly seed: string; readonly epoch_length?: number };
};

const readTemplate = ({ anchor, header_hex, body_hex, fees, pow }: TemplateDocument): TemplateAnswer => ({
  header: fromHex(header_hex),
  anchorMillis: Number.isSafeInteger(anchor?.timestamp_millis) ? anchor?.timestamp_millis : undefined,
  body: decodeBody(fromLongHex(body_hex)),
  fees: parseAtoms(fees),
  pow: { epoch: pow.epoch, seed: fromHex(pow.seed), epochLength: pow.epoch_length },
});

type ErrorAnswer = { readonly error?: { readonly code?: string; readonly message?: string } };

export const cutNewsOf = ({ cut, rewards }: CutFinalized): CutNews => ({
  height: cut.height,
  cutId: cut.cut_id,
  rewards: rewards.map((reward) => ({
    blockId: reward.block_id,
    transactionId: reward.transaction_id,
    outputIndex: reward.output_index,
    amount: BigInt(reward.amount),
  })),
});

export class HttpNode implements NodeSource {
  readonly name: string;
  readonly #options: HttpNodeOptions;
  readonly #dependencies: HttpNodeDependencies;

  constructor(options: HttpNodeOptions, dependencies: HttpNodeDependencies) {
    this.name = options.url;
    this.#options = options;
    this.#dependencies = dependencies;
  }

  async template(draw: number): Promise<TemplateAnswer> {
    const { payout, maxTransactions, extranonce } = this.#options;
    const request = { payout, max_transactions: maxTransactions, extranonce, draw };
    const { status, answer } = await this.#post('/v1/mining/templates', request);
    if (status !== 200) throw new Error(`the node answered ${status}: ${reasonOf(answer)}`);
    return readTemplate(answer as TemplateDocument);
  }

  async submit(header: Bytes, body: Bytes): Promise<CandidateAnswer> {
    const { status, answer } = await this.#post('/v1/mining/candidates', {
      header_hex: toHex(header),
      body_hex: toLongHex(body),
    });
    if (status === 200) {
      const { status: state } = answer as { status?: string };
      if (state === 'accepted' || state === 'known') return { state };
      throw new Error('the node gave no verdict');
    }
    if (status === 409) return { state: 'late' };
    // Over capacity or stopping: the block is good, so it is sent again.
    if (status >= 500 || status === 429) throw new Error(`the node answered ${status}: ${reasonOf(answer)}`);
    return { state: 'refused', reason: reasonOf(answer) };
  }

  async #post(path: string, document: unknown): Promise<{ status: number; answer: unknown }> {
    const { fetch, deadline } = this.#dependencies;
    const response = await fetch(`${this.#options.url.replace(/\/+$/, '')}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(document),
      signal: deadline(this.#options.timeoutMillis),
    });
    return { status: response.status, answer: await response.json() };
  }

  follow(events: NodeEvents, signal: AbortSignal): void {
    const { WebSocket, sleep, random } = this.#dependencies;
    const stream = followCuts(
      { baseUrl: this.#options.url, signal },
      { WebSocket: watched(WebSocket, events), sleep, random },
    );
    void (async () => {
      for await (const item of stream) if (item.type === 'cut_finalized') events.cut(cutNewsOf(item.data));
    })();
  }

  async close(): Promise<void> {}
}

/** The same socket, which also tells when it is there and when it is gone: the stream of cuts does not. */
function watched(Socket: SocketConstructor, events: NodeEvents): SocketConstructor {
  return class extends Socket {
    constructor(url: string, protocols: string[]) {
      super(url, protocols);
      this.addEventListener('message', ({ data }: SocketEvent) => {
        const frame = parseFrame(data);
        if (frame.type !== 'checkpoint') return;
        const { cut } = frame.data as { cut: { height: number; cut_id: string } };
        events.head(cut.height, cut.cut_id);
      });
      this.addEventListener('close', ({ code }: SocketEvent) => events.lost(`connection closed (${code ?? 0})`));
      this.addEventListener('error', () => events.lost('connection failed'));
    }
  };
}

const reasonOf = (answer: unknown): string => {
  const { error } = answer as ErrorAnswer;
  return error?.code ?? error?.message ?? 'no reason given';
};
