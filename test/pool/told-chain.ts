/** A chain with scripted answers, each given once, for tests of the accountant. */
import type { Chain } from '../../pool/accountant/chain.ts';
import type { PaidCut } from '../../pool/accountant/missed-cuts.ts';
import type { Witness } from '../../pool/accountant/reward-statements.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { CutStreamItem } from '../../protocol/api/client-events.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { targetOfWork, targetToBytes } from '../../protocol/ledger/target.ts';
import { workRewardOutpoint } from '../../protocol/ledger/work-reward.ts';

export const TOLD_TARGET = targetOfWork(1_000n);

export const cut = (height: number, rewards: object[] = [], cutId?: string) =>
  ({ type: 'cut_finalized', data: { cut: { height, cut_id: cutId }, rewards } }) as unknown as CutStreamItem;

export type Said = { readonly reward: Record<string, unknown> } & Record<string, unknown>;

export class ToldChain implements Chain {
  items: CutStreamItem[] = [];
  readonly documents = new Map<string, object>();
  head = 0;
  others: Witness[] = [];
  /** Cuts that paid the pool while nobody listened. */
  readonly unheard: CutStreamItem[] = [];
  readonly #payout: string;

  constructor(poolAddress: Bytes) {
    this.#payout = formatAddress(poolAddress, 'development');
  }

  /** The block's document from now on, and its reward as the stream names it. `changes` are what the chain says wrongly. */
  pay(id: Bytes, anchorHeight: number, amount: bigint, extranonce: Bytes = new Uint8Array(1), changes: object = {}) {
    const { transactionId, outputIndex } = workRewardOutpoint(id);
    const outpoint = { transaction_id: toHex(transactionId), output_index: outputIndex };
    const reward = { state: 'paid', amount: String(amount), outpoint, paid_height: anchorHeight + 96, ...changes };
    this.documents.set(toHex(id), {
      block_id: toHex(id),
      payout: this.#payout,
      anchor_height: anchorHeight,
      extranonce: toHex(extranonce),
      target: toHex(targetToBytes(TOLD_TARGET)),
      timestamp_millis: 0,
      reward,
    });
    return { block_id: toHex(id), ...reward.outpoint, amount: reward.amount };
  }

  async *cuts(): AsyncGenerator<CutStreamItem> {
    for (const item of this.items.splice(0)) {
      this.head = Math.max(this.head, item.type === 'missed' ? item.data.to : item.data.cut.height);
      yield item;
    }
  }

  async *cutsThatPaid(_: string, { from, to }: { from: number; to: number }): AsyncGenerator<PaidCut> {
    for (const { type, data } of this.unheard)
      if (type === 'cut_finalized' && data.cut.height >= from && data.cut.height <= to) yield data;
  }

  async targetAt(): Promise<bigint> {
    return TOLD_TARGET;
  }

  async headHeight(): Promise<number> {
    return this.head;
  }

  async block(id: string): ReturnType<Chain['block']> {
    return this.documents.get(id) as never;
  }
}
