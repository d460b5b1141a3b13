/**
 * Templates without a node, for tests of the server alone: real headers and bodies of the development network, as easy
 * as the test wants, cuts made by hand. What it does wrong is switched on by the test.
 */
import { randomBytes, randomInt } from 'node:crypto';
import type { TemplateAnswer } from '../../bridge/nodes/template.ts';
import type { CandidateAnswer, NodeEvents, NodeSource, WorkReward } from '../../bridge/nodes/upstream.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { datasetSeed } from '../../protocol/crypto/pow.ts';
import { parentsRoot, transactionsRoot } from '../../protocol/ledger/body.ts';
import { encodeHeader } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { NETWORKS } from '../../protocol/network.ts';

export class TemplateSource implements NodeSource {
  readonly name: string;
  readonly submitted: { readonly header: Bytes; readonly body: Bytes }[] = [];
  blockWork = 1n << 40n;
  height = 1_000;
  transactions: Bytes[][] = [[]];
  fees = 0n;
  /** Anchors are drawn among the newest cut and this many before it. */
  olderAnchors = 0;
  answer: CandidateAnswer = { state: 'accepted' };
  isAway = false;
  /** Changes a template before it is handed out. */
  spoil: (answer: TemplateAnswer) => TemplateAnswer = (answer) => answer;
  #events: NodeEvents | null = null;
  #cutId: Bytes = randomBytes(48);
  readonly #earlier: { readonly height: number; readonly cutId: Bytes }[] = [];

  constructor(name = 'source') {
    this.name = name;
  }

  async template(draw: number): Promise<TemplateAnswer> {
    if (this.isAway) throw new Error('away');
    const payout = new Uint8Array(49);
    const extranonce = new Uint8Array(40);
    const body = {
      payout,
      extranonce,
      parents: [],
      transactions: this.transactions[draw % this.transactions.length] ?? [],
    };
    const anchor = this.#drawAnchor();
    const header = encodeHeader({
      networkId: NETWORKS.development.id,
      anchorHeight: anchor.height,
      timestampMillis: Date.now(),
      anchorId: anchor.cutId,
      parentsRoot: parentsRoot(body),
      transactionsRoot: transactionsRoot(body),
      rewardRoot: rewardRoot(payout, extranonce),
      stateRoot: new Uint8Array(48),
      target: targetOfWork(this.blockWork),
      nonce: new Uint8Array(8),
    });
    return this.spoil({
      header,
      anchorMillis: undefined,
      body,
      fees: this.fees,
      pow: { epoch: 0, seed: datasetSeed(NETWORKS.development.id, 0), epochLength: undefined },
    });
  }

  async submit(header: Bytes, body: Bytes): Promise<CandidateAnswer> {
    if (this.isAway) throw new Error('away');
    this.submitted.push({ header, body });
    return this.answer;
  }

  follow(events: NodeEvents): void {
    this.#events = events;
    if (!this.isAway) events.head(this.height, toHex(this.#cutId));
  }

  #drawAnchor(): { readonly height: number; readonly cutId: Bytes } {
    const newest = { height: this.height, cutId: this.#cutId };
    const older = this.olderAnchors === 0 ? [] : this.#earlier.slice(-this.olderAnchors);
    const anchors = [...older, newest];
    return anchors[randomInt(anchors.length)] ?? newest;
  }

  get cutId(): Bytes {
    return this.#cutId;
  }

  /** Goes on from another node's cut. */
  takeUp(height: number, cutId: Bytes): void {
    this.height = height;
    this.#cutId = cutId;
  }

  cut(rewards: readonly WorkReward[] = []): void {
    this.#earlier.push({ height: this.height, cutId: this.#cutId });
    this.height++;
    this.#cutId = randomBytes(48);
    this.#events?.cut({ height: this.height, cutId: toHex(this.#cutId), rewards });
  }

  away(): void {
    this.isAway = true;
    this.#events?.lost('test');
  }

  back(): void {
    this.isAway = false;
    this.#events?.head(this.height, toHex(this.#cutId));
  }

  async close(): Promise<void> {}
}
