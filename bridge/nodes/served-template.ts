/**
 * A published template inside a listener thread: the header to derive each connection's own from, the job messages of
 * both wire forms prepared for filling in, and the share terms that hold on it. The share target is never harder than the
 * block target (S51): a hash that would be a block is always a share.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { type Bytes, bigintFromBytesBE } from '../../protocol/bytes.ts';
import {
  NONCE_OFFSET,
  REWARD_ROOT_OFFSET,
  registrationWindowEnd,
  TARGET_OFFSET,
} from '../../protocol/ledger/header.ts';
import { targetOfWork, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import { JobFrameTemplate, NotifyTemplate } from '../../protocol/stratum/job-template.ts';
import type { JobTemplate } from '../session/job-book.ts';
import type { PublishedTemplate } from '../threads/hub.ts';
import type { OriginJob } from './origin-job.ts';

export type ShareTerms = { readonly target: Bytes; readonly work: bigint };

/** Connections share few works (and many share one wish), so most jobs need no division. */
const MAX_TERMS = 4_096;

const hardestOf = (target: Bytes): ShareTerms => ({ target, work: workOfTarget(bigintFromBytesBE(target)) });

export class ServedTemplate implements JobTemplate {
  readonly serial: number;
  readonly header: Bytes;
  readonly target: Bytes;
  readonly blockWork: bigint;
  readonly epoch: number;
  readonly draw: number;
  readonly draws: number;
  readonly isFresh: boolean;
  readonly anchorHeight: number;
  readonly cutHeight: number;
  readonly told: number;
  readonly registrationWindowEnd: number;
  readonly origin: OriginJob | undefined;
  /** No share is worth more on it. */
  readonly hardest: ShareTerms;
  readonly #terms = new Map<bigint, ShareTerms>();
  #notify: NotifyTemplate | undefined;
  #frame: JobFrameTemplate | undefined;

  constructor(published: PublishedTemplate) {
    this.serial = published.serial;
    this.header = published.header;
    this.epoch = published.epoch;
    this.draw = published.draw;
    this.draws = published.draws;
    this.isFresh = published.isFresh;
    this.target = published.header.slice(TARGET_OFFSET, TARGET_OFFSET + 32);
    this.blockWork = workOfTarget(bigintFromBytesBE(this.target));
    const view = new DataView(published.header.buffer, published.header.byteOffset);
    this.anchorHeight = Number(view.getBigUint64(8, true));
    this.cutHeight = Math.max(published.cutHeight, this.anchorHeight);
    this.told = published.told;
    this.registrationWindowEnd = registrationWindowEnd(this.anchorHeight);
    this.origin = published.origin;
    this.hardest = hardestOf(this.origin?.shareTarget ?? this.target);
  }

  termsFor(shareWork: bigint): ShareTerms {
    let terms = this.#terms.get(shareWork);
    if (terms === undefined) {
      terms =
        shareWork >= this.hardest.work
          ? this.hardest
          : { target: targetToBytes(targetOfWork(shareWork)), work: workOfTarget(targetOfWork(shareWork)) };
      if (this.#terms.size >= MAX_TERMS) this.#terms.clear();
      this.#terms.set(shareWork, terms);
    }
    return terms;
  }

  /** A connection's own header with a nonce in it, written into `header`. */
  putHeader(header: Uint8Array, rewardRoot: Bytes, nonce: Bytes): void {
    header.set(this.header);
    header.set(rewardRoot, REWARD_ROOT_OFFSET);
    header.set(nonce, NONCE_OFFSET);
  }

  get notify(): NotifyTemplate {
    this.#notify ??= new NotifyTemplate(this.#job(), Buffer.allocUnsafeSlow);
    return this.#notify;
  }

  get frame(): JobFrameTemplate {
    this.#frame ??= new JobFrameTemplate(this.#job(), Buffer.allocUnsafeSlow);
    return this.#frame;
  }

  #job() {
    return {
      jobId: 0,
      header: this.header,
      shareTarget: 0n,
      epoch: this.epoch,
      payout: new Uint8Array(ADDRESS_PAYLOAD_BYTES),
      extranonce: new Uint8Array(0),
      clean: false,
    };
  }
}
