/**
 * The bodies of one connection (docs/protocol/stratum.md, S53, S57 and S58). A body is good for one block and has one
 * share work, so new jobs use the connection's current body; after a block on it, or for another share work, they use
 * the next one. A large miner holds a second one in advance, the spare: it moves there as soon as it finds a block,
 * instead of searching a spent body until the answer and the next job have come. Generations only count up. A body that
 * was replaced without having had a block is not spent: a hit on it that arrives later is still a block.
 */

import { headerDigest } from '../../protocol/books/share-identity.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { LAST_FIRST_GENERATION } from '../../protocol/stratum/farm.ts';
import { type OriginJob, originExtranonce } from '../nodes/origin-job.ts';
import { extranonceOf, nextGeneration } from './extranonce.ts';
import { type JobLog, lastGeneration, type Terms } from './job-log.ts';

export type Body = {
  readonly terms: Terms;
  readonly extranonce: Bytes;
  readonly rewardRoot: Bytes;
  /**
   * The digest of its header (protocol/books/share-identity.ts) on the newest template that a share came for. Shares of one
   * job have the same.
   */
  named: { readonly serial: number; readonly digest: Bytes } | null;
  /** The job of another server that its extranonce is from. */
  readonly origin?: OriginJob | undefined;
};

/** What the extranonces of a connection have in common, and whom its blocks pay. */
export type BodyOwner = {
  readonly tag: string;
  readonly owner: Bytes;
  readonly payout: Bytes;
  /** The next of those that all connections share: a body of another server's job has no other name. */
  takeGeneration?(first: number): number | undefined;
  /** How many generations are left out before the next one: nobody is to know it before its share work (extranonce.ts). */
  drawSteps?(): number;
};

/**
 * A template, as far as jobs are concerned. If `isFresh` is set, every job on it uses a body that had no other job.
 * That is so for a template with the same bytes as an earlier one, because its header may have been sent already. It is
 * also so for all templates with drawn anchors: a body contains no anchor, so two blocks with the same body on two
 * anchors would count as one.
 */
export type JobPlace = {
  readonly serial: number;
  readonly isFresh: boolean;
  readonly origin?: OriginJob | undefined;
};

/** The generation of the next body, where the newest has this one; undefined when none is left. */
export function generationAfter(
  newest: number,
  owner: BodyOwner,
  on: JobPlace | undefined,
  steps = 0,
): number | undefined {
  const first = on?.origin?.firstGeneration ?? null;
  return first === null ? nextGeneration(newest, steps) : owner.takeGeneration?.(first);
}

/** Whether a body that was made for the one job can be used for the other. */
const isSameOrigin = (one: OriginJob | undefined, other: OriginJob | undefined): boolean =>
  one === other ||
  (one !== undefined &&
    other !== undefined &&
    (one.firstGeneration === null) === (other.firstGeneration === null) &&
    equalBytes(one.extranonceHead, other.extranonceHead));

/** Each connection has one for as long as it mines: its bytes are kept as text of one byte a character, a fifth of what arrays of them take. */
class HeldBody implements Body {
  readonly terms: Terms;
  readonly origin: OriginJob | undefined;
  named: Body['named'] = null;
  /** The reward root, then the extranonce. */
  readonly #text: string;

  constructor({ tag, owner, payout }: BodyOwner, terms: Terms, origin: OriginJob | undefined) {
    this.terms = terms;
    this.origin = origin;
    const { generation } = terms;
    const extranonce =
      origin === undefined ? extranonceOf(tag, terms.owner ?? owner, generation) : originExtranonce(origin, generation);
    this.#text = Buffer.concat([rewardRoot(payout, extranonce), extranonce]).toString('latin1');
  }

  get rewardRoot(): Bytes {
    return bytesOf(this.#text, 0, ID_BYTES);
  }

  get extranonce(): Bytes {
    return bytesOf(this.#text, ID_BYTES, this.#text.length);
  }
}

function bytesOf(text: string, from: number, to: number): Bytes {
  const bytes = new Uint8Array(to - from);
  for (let i = from; i < to; i++) bytes[i - from] = text.charCodeAt(i);
  return bytes;
}

/** The digest of the header of a body on a template; the nonce in it does not matter. */
export function headerDigestOf(body: Body, serial: number, header: Bytes): Bytes {
  if (body.named?.serial !== serial) body.named = { serial, digest: headerDigest(header) };
  return body.named.digest;
}

/** Bodies of a farm on record after which its next job names a higher first generation: then the old ones are forgotten. */
const MAX_FARM_BODIES = 65_536;

export class Bodies {
  readonly #log: JobLog;
  current: Body;
  spare: Body | null;
  /** A new generation is needed, but all are used up. */
  isOver = false;
  /** Set where jobs are a farm's: the generations that its rigs may be ahead (job-log.ts). */
  room: number | null = null;

  constructor(owner: BodyOwner, log: JobLog, current: Terms, spare: Terms | null, origin?: OriginJob) {
    this.#log = log;
    this.current = new HeldBody(owner, current, origin);
    this.spare = spare === null ? null : new HeldBody(owner, spare, origin);
  }

  find(owner: BodyOwner, terms: Terms, origin?: OriginJob): Body {
    const held = terms === this.current.terms ? this.current : terms === this.spare?.terms ? this.spare : null;
    if (held !== null && isSameOrigin(held.origin, origin)) return held;
    return new HeldBody(owner, terms, origin);
  }

  /** The body for the next job on a template: the current one, or a fresh one if that cannot be used. */
  forJob(owner: BodyOwner, shareWork: bigint, on: JobPlace): Body {
    if (!this.#suits(this.current, shareWork, on)) this.#freshen(owner, shareWork, on);
    return this.current;
  }

  /** The spare for a template; if none is suitable, the current body becomes the spare. */
  keepSpare(owner: BodyOwner, shareWork: bigint, on: JobPlace): Body {
    if (this.spare !== null && this.#suits(this.spare, shareWork, on)) return this.spare;
    this.spare = this.forJob(owner, shareWork, on);
    this.#freshen(owner, shareWork, on);
    return this.spare;
  }

  /** Not spent, of this share work, and its header on this template is still to be sent. */
  #suits({ terms, origin }: Body, shareWork: bigint, on: JobPlace): boolean {
    if (!isSameOrigin(origin, on.origin) || terms.generation < (on.origin?.firstGeneration ?? 0)) return false;
    if ((terms.farm?.room ?? null) !== this.room || (terms.farm?.bodies.size ?? 0) > MAX_FARM_BODIES) return false;
    return !on.isFresh && !terms.isSpent && terms.shareWork === shareWork && !this.#log.isSent(on.serial, terms);
  }

  #freshen(owner: BodyOwner, shareWork: bigint, on: JobPlace): void {
    // The rigs of a farm may make any header anyhow (jobs.ts).
    const steps = this.room === null ? owner.drawSteps?.() : 0;
    const generation = generationAfter(this.newest, owner, on, steps);
    if (generation === undefined || (this.room !== null && generation > LAST_FIRST_GENERATION)) this.isOver = true;
    else this.current = new HeldBody(owner, this.#log.begin(generation, shareWork, this.room), on.origin);
  }

  /** Generations only count up; the current body is the newest. */
  get newest(): number {
    return lastGeneration(this.current.terms);
  }
}
