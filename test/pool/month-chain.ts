/** The chain of the simulated month: it knows every block that was found and what became of it, and goes on when told to. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../../pool/journal/journal-record.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { BlockDocument } from '../../protocol/api/documents.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import { workRewardOutpoint } from '../../protocol/ledger/work-reward.ts';
import { MONTH, type MonthCuts, type MonthReward } from './month-edge.ts';

export type MonthBlock = {
  readonly id: string;
  /** Undefined for a block of somebody else, which pays somebody else. */
  readonly finder: { readonly service: Service; readonly account: string; readonly worker: string } | undefined;
  readonly anchor: number;
  readonly target: bigint;
  readonly extranonce: Bytes;
  /** Undefined for one that expires. */
  readonly reward: { readonly amount: bigint; readonly height: number } | undefined;
};

/** Cuts of one answer. */
const MAX_CUTS = 2_000;
const WAIT_MILLIS = 100;

export class MonthChain {
  readonly blocks = new Map<string, MonthBlock>();
  readonly #paying = new Map<number, MonthReward[]>();
  readonly #poolAddress: string;
  #wake = Promise.withResolvers<void>();
  #head = 0;
  /** Cuts at and below cannot be replayed. */
  #forgotten = -1;
  #isGone = false;
  /** How far the clock is wrong. */
  skewMillis = 0;
  /** What holds up to a height, ascending. */
  readonly #targets: { readonly through: number; readonly target: bigint }[];

  constructor(poolAddress: Bytes, target: bigint) {
    this.#poolAddress = formatAddress(poolAddress, 'development');
    this.#targets = [{ through: 0, target }];
  }

  get head(): number {
    return this.#head;
  }

  get nowMillis(): number {
    return MONTH.startMillis + this.#head * MONTH.cutMillis + this.skewMillis;
  }

  /** The chain goes on to a height; `isForgotten` when nobody can read the cuts in between any more. */
  goOn(height: number, target: bigint, isForgotten = false): void {
    this.#head = height;
    this.#targets.push({ through: height, target });
    if (isForgotten) this.#forgotten = height;
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  add(block: MonthBlock): void {
    this.blocks.set(block.id, block);
    if (block.reward === undefined) return;
    const { amount, height } = block.reward;
    const paying = this.#paying.get(height) ?? [];
    this.#paying.set(height, paying);
    const { transaction_id, output_index } = outpointOf(block.id);
    paying.push({ block_id: block.id, transaction_id, output_index, amount: String(amount) });
  }

  /** The node does not answer for a while. */
  async leaveFor(millis: number): Promise<void> {
    this.#isGone = true;
    await sleep(millis);
    this.#isGone = false;
  }

  #answer<T>(value: T): T {
    if (this.#isGone) throw new Error('no answer from the node');
    return value;
  }

  async cuts(after: number): Promise<MonthCuts> {
    if (after >= this.#head) await Promise.race([this.#wake.promise, sleep(WAIT_MILLIS)]);
    if (after < this.#forgotten) return this.#answer({ to: this.#forgotten, isMissed: true, paying: [] });
    const to = Math.max(after, Math.min(this.#head, after + MAX_CUTS));
    const paying: MonthCuts['paying'] = [];
    for (let height = after + 1; height <= to; height++) {
      const rewards = this.#paying.get(height);
      if (rewards !== undefined) paying.push([height, rewards]);
    }
    return this.#answer({ to, isMissed: false, paying });
  }

  async targetAt(height: number): Promise<bigint> {
    const found = this.#targets.find(({ through }) => through >= height);
    if (found === undefined) throw new Error(`no cut ${height} yet`);
    return this.#answer(found.target);
  }

  async headHeight(): Promise<number> {
    return this.#answer(this.#head);
  }

  async block(id: string): Promise<BlockDocument | undefined> {
    const block = this.blocks.get(id);
    if (block === undefined) return this.#answer(undefined);
    const isPaid = block.reward !== undefined && block.reward.height <= this.#head;
    return this.#answer({
      block_id: id,
      payout: block.finder === undefined ? 'somebody else' : this.#poolAddress,
      extranonce: toHex(block.extranonce),
      anchor_height: block.anchor,
      target: toHex(targetToBytes(block.target)),
      timestamp_millis: MONTH.startMillis + block.anchor * MONTH.cutMillis,
      reward: isPaid
        ? {
            state: 'paid',
            amount: String(block.reward.amount),
            outpoint: outpointOf(id),
            paid_height: block.reward.height,
          }
        : { state: 'pending', amount: null, outpoint: null, paid_height: null },
    } as unknown as BlockDocument);
  }
}

function outpointOf(blockId: string) {
  const { transactionId, outputIndex } = workRewardOutpoint(fromHex(blockId));
  return { transaction_id: toHex(transactionId), output_index: outputIndex };
}
