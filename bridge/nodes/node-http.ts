/**
 * A node reached over its mining listener (docs/protocol/mining.md): templates and blocks by HTTP, cuts by WebSocket. A
 * connection that goes silent, is refused or answers nonsense makes the node `lost` until it works again.
 */
import type { AnchorPolicy } from '../../node/mining/anchor-choice.ts';
import { parseAtoms } from '../../protocol/amount.ts';
import type { ClientDependencies } from '../../protocol/api/client.ts';
import { parseAnswer, type RawAnswer } from '../../protocol/api/client-calls.ts';
import { followCuts } from '../../protocol/api/client-events.ts';
import type { StreamDependencies } from '../../protocol/api/client-socket.ts';
import type { CutFinalized } from '../../protocol/api/frames.ts';
import { type Pin, PinnedNode } from '../../protocol/api/pinned-node.ts';
import { ANSWER_HEADERS, NONCE_BYTES } from '../../protocol/api/signed-answer.ts';
import { type Bytes, fromHex, toHex, utf8 } from '../../protocol/bytes.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import { fromNativeHex, nativeHex } from '../../runtime/native/native-hex.ts';
import type { TemplateAnswer } from './template.ts';
import type { CandidateAnswer, CutNews, NodeEvents, NodeSource } from './upstream.ts';

export type HttpNodeOptions = {
  readonly url: string;
  /** A placeholder: it is replaced by each connection's own address. */
  readonly payout: string;
  readonly maxTransactions: number;
  /** As long as the longest one a connection can have, so that the body leaves room for it. */
  readonly extranonce: string;
  readonly anchors: AnchorPolicy;
  readonly timeoutMillis: number;
  /** If set, only answers signed with this key are accepted. Cuts are not signed: they only trigger a new request. */
  readonly pin?: Pin | undefined;
};

/** `fetch` bounds what it reads and follows no redirect (runtime/node-client/node-transport.ts). */
export type HttpNodeDependencies = StreamDependencies &
  Pick<ClientDependencies, 'fetch' | 'deadline' | 'randomBytes' | 'verify'>;

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
  body: decodeBody(fromNativeHex(body_hex)),
  fees: parseAtoms(fees),
  pow: { epoch: pow.epoch, seed: fromHex(pow.seed), epochLength: pow.epoch_length },
});

type ErrorAnswer = { readonly error?: { readonly code?: unknown; readonly message?: unknown } | null };

const RESTART_MILLIS = 1_000;

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
  readonly #pinned: PinnedNode | undefined;

  constructor(options: HttpNodeOptions, dependencies: HttpNodeDependencies) {
    this.name = options.url;
    this.#options = options;
    this.#dependencies = dependencies;
    const { pin } = options;
    const fetchIdentity = async () => parseAnswer((await this.#fetch('GET', '/v1/node/identity')).bytes);
    this.#pinned = pin === undefined ? undefined : new PinnedNode(pin, fetchIdentity, dependencies.verify);
  }

  async template(draw: number): Promise<TemplateAnswer> {
    const { payout, maxTransactions, extranonce, anchors } = this.#options;
    const request = {
      payout,
      max_transactions: maxTransactions,
      extranonce,
      draw,
      ...(anchors === 'newest' ? {} : { anchors }),
    };
    const { status, answer } = await this.#post('/v1/mining/templates', request);
    if (status !== 200) throw new Error(`the node answered ${status}: ${reasonOf(answer)}`);
    return readTemplate(answer as TemplateDocument);
  }

  async submit(header: Bytes, body: Bytes): Promise<CandidateAnswer> {
    const { status, answer } = await this.#post('/v1/mining/candidates', {
      header_hex: toHex(header),
      body_hex: nativeHex(body),
    });
    if (status === 200) {
      const { status: state } = answer as { status?: string };
      if (state === 'accepted' || state === 'known') return { state };
      throw new Error('the node gave no verdict');
    }
    if (status === 409) return { state: 'late' };
    // Over capacity, stopping, or not a node's own answer: the block is good, so it is sent again.
    const isRefusal = status >= 400 && status < 500 && status !== 429;
    if (!isRefusal) throw new Error(`the node answered ${status}: ${reasonOf(answer)}`);
    return { state: 'refused', reason: reasonOf(answer) };
  }

  async #post(path: string, document: unknown): Promise<{ status: number; answer: unknown }> {
    const requestBody = utf8(JSON.stringify(document));
    const nonce = this.#pinned === undefined ? undefined : this.#dependencies.randomBytes?.(NONCE_BYTES);
    const answer = await this.#fetch('POST', path, requestBody, nonce);
    const { status, bytes } = answer;
    // Answers such as 'overloaded' are not signed, and do not count as a verdict.
    const isStatement = status < 500 && status !== 429;
    if (this.#pinned !== undefined && isStatement)
      await this.#pinned.prove({ method: 'POST', target: path, requestBody, nonce: nonce as Bytes }, answer);
    return { status, answer: status === 200 || bytes.length > 0 ? parseAnswer(bytes) : undefined };
  }

  async #fetch(method: string, path: string, body?: Uint8Array<ArrayBuffer>, nonce?: Bytes): Promise<RawAnswer> {
    const { fetch, deadline } = this.#dependencies;
    const response = await fetch(`${this.#options.url.replace(/\/+$/, '')}${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(nonce === undefined ? {} : { [ANSWER_HEADERS.nonce]: toHex(nonce) }),
      },
      ...(body === undefined ? {} : { body }),
      signal: deadline(this.#options.timeoutMillis),
    });
    return {
      status: response.status,
      header: (name) => response.headers.get(name),
      bytes: new Uint8Array(await response.arrayBuffer()),
    };
  }

  follow(events: NodeEvents, signal: AbortSignal): void {
    const options = {
      baseUrl: this.#options.url,
      signal,
      onConnected: ({ height, cut_id }: { height: number; cut_id: string }) => events.head(height, cut_id),
      onLost: (reason: string) => events.lost(reason),
    };
    const follow = async () => {
      for await (const item of followCuts(options, this.#dependencies))
        if (item.type === 'cut_finalized') events.cut(cutNewsOf(item.data));
    };
    const goOn = async () => {
      // An error while handling one cut must not end the subscription.
      while (!signal.aborted)
        await follow().catch(async (error: unknown) => {
          events.lost(String(error));
          await this.#dependencies.sleep(RESTART_MILLIS);
        });
    };
    void goOn();
  }

  async close(): Promise<void> {}
}

/** Shortened, because it is shown to people and written into the pool's database. */
const MAX_REASON = 120;

const reasonOf = (answer: unknown): string => {
  const error = (answer as ErrorAnswer | null | undefined)?.error;
  const reason = error?.code ?? error?.message;
  return typeof reason === 'string' ? reason.slice(0, MAX_REASON) : 'no reason given';
};
