/**
 * The templates that a block can still need, for the main thread: the published ones, and those before them as long as a
 * listener may know a job of theirs and a cut could still register a block. Their bodies share transactions. Bounded:
 *
 * - a template leaves when its jobs are forgotten (grace and memory of docs/bridge.md after a newer one superseded it), or
 *   when its registration window has closed;
 * - all of them together hold at most MAX_BYTES of transactions, else the oldest leave.
 */

import type { Bytes } from '../../protocol/bytes.ts';
import { merkleLeaf } from '../../protocol/crypto/merkle.ts';
import { encodeBody } from '../../protocol/ledger/body.ts';
import { decodeHeader, type Header, registrationWindowEnd } from '../../protocol/ledger/header.ts';
import { transactionMass } from '../../protocol/transactions/fee.ts';
import { MAX_OUTPUTS } from '../../protocol/transactions/transaction.ts';
import { type JobLife, MAX_SERIAL } from '../session/job-book.ts';
import { isSamePart, type OriginJob, type TemplatePart } from './origin-job.ts';
import type { CheckedTemplate } from './template.ts';

/** 64 cuts of four full bodies that have no transaction in common. */
export const MAX_BYTES = 256 * 1024 * 1024;
/** Time for listener threads to receive a publication, and for their earlier messages to be read. */
const MESSAGE_MILLIS = 5_000;

type SharedTransaction = { readonly name: string; readonly wire: Bytes; carriers: number };

/** Buffer's own method, called on any bytes: 48 bytes as a text of 48 characters of one byte each. */
const { latin1Slice } = Buffer.prototype as unknown as {
  latin1Slice(this: Bytes, from: number, to: number): string;
};

/**
 * The transactions of all templates that are kept, each stored once, however many templates carry it. A transaction is
 * identified by the hash of its whole wire form, which its template's root was computed from. Templates of one cut and
 * of the next few carry nearly the same transactions: without this, four draws of a full mempool every half second
 * would be eight megabytes a second.
 */
class SharedTransactions {
  readonly #known = new Map<string, SharedTransaction>();
  #bytes = 0;

  /** Bytes of transactions that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#known.size;
  }

  /**
   * A template's transactions; `leaves` are their hashes. New transactions are copied, so that the body they came in is
   * not retained.
   */
  take(leaves: readonly Bytes[], wires: readonly Bytes[]): readonly SharedTransaction[] {
    return leaves.map((leaf, i) => {
      const name = latin1Slice.call(leaf, 0, leaf.length);
      let shared = this.#known.get(name);
      if (shared === undefined) {
        shared = { name, wire: ownBytes(wires[i] as Bytes), carriers: 0 };
        this.#known.set(name, shared);
        this.#bytes += shared.wire.length;
      }
      shared.carriers++;
      return shared;
    });
  }

  /** Called when a template is dropped. A list that is still in use, for a block being submitted, stays valid. */
  give(transactions: readonly SharedTransaction[]): void {
    for (const shared of transactions) {
      shared.carriers--;
      if (shared.carriers > 0) continue;
      this.#known.delete(shared.name);
      this.#bytes -= shared.wire.length;
    }
  }
}

const ownBytes = (wire: Bytes): Bytes => (wire.buffer.byteLength === wire.length ? wire : new Uint8Array(wire));

/** A checked template without its body's bytes. */
export type KeptTemplate = {
  readonly serial: number;
  readonly anchorHeight: number;
  readonly registrationWindowEnd: number;
  readonly header: Header;
  readonly headerBytes: Bytes;
  readonly epoch: number;
  readonly epochLength: number | undefined;
  readonly fees: bigint;
  readonly parents: readonly Bytes[];
  readonly transactions: readonly SharedTransaction[];
  readonly origin?: OriginJob;
};

/** What a block needs of a template beside its header, as the disk keeps it. */
export type TemplateBody = {
  readonly epochLength: number | undefined;
  readonly fees: bigint;
  readonly parents: readonly Bytes[];
  readonly transactions: readonly Bytes[];
};
export type EarlierTemplate = TemplateBody & {
  readonly serial: number;
  readonly header: Bytes;
  readonly epoch: number;
};

type Entry = { readonly template: KeptTemplate; supersededAtMillis: number | undefined };

export class TemplateStore {
  readonly #life: JobLife;
  readonly #maxBytes: number;
  readonly #shared = new SharedTransactions();
  /** Oldest first. */
  readonly #entries = new Map<number, Entry>();
  #serial = 0;

  constructor(life: JobLife, maxBytes = MAX_BYTES) {
    this.#life = life;
    this.#maxBytes = maxBytes;
  }

  get(serial: number): KeptTemplate | undefined {
    return this.#entries.get(serial)?.template;
  }

  get figures(): { readonly kept: number; readonly transactions: number; readonly bytes: number } {
    return { kept: this.#entries.size, transactions: this.#shared.count, bytes: this.#shared.bytes };
  }

  /** Those of before a restart, under the serials that jobs on them have. */
  restore(templates: readonly EarlierTemplate[], newest: number): void {
    for (const { serial, header: headerBytes, epoch, epochLength, fees, parents, transactions } of templates) {
      const header = decodeHeader(headerBytes);
      const { anchorHeight } = header;
      const common = { serial, anchorHeight, registrationWindowEnd: registrationWindowEnd(anchorHeight), header };
      const shared = this.#shared.take(transactions.map(merkleLeaf), transactions);
      this.#keep({ ...common, headerBytes, epoch, epochLength, fees, parents, transactions: shared });
    }
    this.#serial = newest;
  }

  put(template: CheckedTemplate): KeptTemplate {
    if (this.#serial >= MAX_SERIAL) throw new RangeError('template serials are used up: restart');
    const { header, headerBytes, epoch, epochLength, fees, anchorHeight, registrationWindowEnd, body, leaves, origin } =
      template;
    return this.#keep({
      serial: ++this.#serial,
      anchorHeight,
      registrationWindowEnd,
      header,
      headerBytes,
      epoch,
      epochLength,
      fees,
      parents: body.parents,
      transactions: this.#shared.take(leaves, body.transactions),
      ...(origin === undefined ? {} : { origin }),
    });
  }

  #keep(template: KeptTemplate): KeptTemplate {
    this.#entries.set(template.serial, { template, supersededAtMillis: undefined });
    return template;
  }

  /** Publishes these templates in place of all earlier ones, or of those of their part. */
  publish(serials: readonly number[], headHeight: number, nowMillis: number, part?: TemplatePart): void {
    const newest = Math.min(...serials);
    const { graceMillis, memoryMillis } = this.#life;
    for (const [serial, entry] of this.#entries) {
      if (serial >= newest) break;
      if (isSamePart(entry.template, part)) entry.supersededAtMillis ??= nowMillis;
      const isForgotten =
        nowMillis - (entry.supersededAtMillis ?? nowMillis) > graceMillis + memoryMillis + MESSAGE_MILLIS;
      const isClosed = entry.template.registrationWindowEnd <= headHeight;
      if (isForgotten || isClosed || this.#shared.bytes > this.#maxBytes) this.forget(serial);
    }
  }

  /** Drops a template that no job was sent for, or that no block can need any more. */
  forget(serial: number): void {
    const entry = this.#entries.get(serial);
    if (entry === undefined) return;
    this.#entries.delete(serial);
    this.#shared.give(entry.template.transactions);
  }
}

/** The body of a connection's block, made only when it was found. */
export const bodyFor = ({ parents, transactions }: KeptTemplate, payout: Bytes, extranonce: Bytes) =>
  encodeBody({ payout, extranonce, parents, transactions: transactions.map(({ wire }) => wire) });

/**
 * A block's share of its transactions' fees, as the node stated with the template, and their maximum weight:
 * transactions are not parsed here, so each counts with the maximum number of outputs.
 */
export type Carried = { readonly fees: bigint; readonly mass: number };

export function carriedBy({ fees, transactions }: KeptTemplate): Carried {
  let mass = 0;
  for (const { wire } of transactions) mass += transactionMass(wire.length, MAX_OUTPUTS);
  return { fees, mass };
}

export type AnchorFigures = {
  /** Templates on the newest cut, and on older ones. */
  readonly newest: number;
  readonly older: number;
  /** Mean age of the anchors of the newest publication, in cuts. */
  readonly meanAge: number;
};

/** How old the anchors of published templates are: with `--anchors best` they are drawn among those of the last 80 cuts. */
export class DrawnAnchors {
  figures: AnchorFigures = { newest: 0, older: 0, meanAge: 0 };

  note(anchorHeights: readonly number[], cutHeight: number): void {
    const ages = anchorHeights.map((height) => cutHeight - height);
    const older = ages.filter((age) => age > 0).length;
    this.figures = {
      newest: this.figures.newest + ages.length - older,
      older: this.figures.older + older,
      meanAge: ages.reduce((sum, age) => sum + age, 0) / Math.max(1, ages.length),
    };
  }
}
