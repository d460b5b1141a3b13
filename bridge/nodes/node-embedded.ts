/** The node inside this process: without HTTP, and its cuts arrive as soon as they are final. */
import type { FullNode, Template as NodeTemplate } from '../../node/full-node.ts';
import type { WorkReward } from '../../node/ledger/effects.ts';
import type { AnchorPolicy } from '../../node/mining/anchor-choice.ts';
import { statusOf } from '../../node/node-error.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import type { TemplateAnswer } from './template.ts';
import type { CandidateAnswer, CutNews, NodeEvents, NodeSource } from './upstream.ts';

export type EmbeddedNodeOptions = {
  readonly payout: Bytes;
  readonly maxTransactions: number;
  readonly extranonce: Bytes;
  readonly anchors: AnchorPolicy;
};

/** The body is encoded only when a block is found. */
const answerOf = (template: NodeTemplate): TemplateAnswer => {
  const { header, anchor, payout, extranonce, parents, transactions, fees, pow } = template;
  return {
    header,
    anchorMillis: anchor.timestampMillis,
    body: { payout, extranonce, parents, transactions },
    fees,
    pow,
  };
};

/** A reward of not one atom has no output. */
const rewardNews = ({ blockId, amount, outpoint }: WorkReward): CutNews['rewards'] =>
  outpoint === undefined
    ? []
    : [
        {
          blockId: toHex(blockId),
          transactionId: toHex(outpoint.transactionId),
          outputIndex: outpoint.outputIndex,
          amount,
        },
      ];

export class EmbeddedNode implements NodeSource {
  readonly name = 'embedded';
  readonly #options: EmbeddedNodeOptions;
  readonly #node: FullNode;

  constructor(options: EmbeddedNodeOptions, node: FullNode) {
    this.#options = options;
    this.#node = node;
  }

  async template(draw: number): Promise<TemplateAnswer> {
    return answerOf(this.#node.template({ ...this.#options, draw }));
  }

  async submit(header: Bytes, body: Bytes): Promise<CandidateAnswer> {
    const outcome = await this.#node.submitBlock(header, body);
    if (outcome.status !== 'refused') return { state: outcome.status };
    const status = statusOf(outcome.error);
    if (status === 409) return { state: 'late' };
    if (status >= 500) throw new Error(outcome.error.message);
    return { state: 'refused', reason: outcome.error.code };
  }

  follow(events: NodeEvents, signal: AbortSignal): void {
    const head = this.#node.chain.head();
    const stop = this.#node.on('cut', ({ header, cutId, rewards }) =>
      events.cut({ height: header.height, cutId: toHex(cutId), rewards: rewards.flatMap(rewardNews) }),
    );
    const stopFault = this.#node.on('fault', (error) => events.lost(error.message));
    signal.addEventListener('abort', () => {
      stop();
      stopFault();
    });
    queueMicrotask(() => events.head(head.height, toHex(head.cutId)));
  }

  /** The caller that started the node closes it. */
  async close(): Promise<void> {}
}
