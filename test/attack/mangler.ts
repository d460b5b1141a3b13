/**
 * What a hostile sender makes of an honest message: it is lost, repeated, kept for later, cut, lengthened, changed by a bit, mixed with others
 * of its kind, or has an entry of a list twice. Nothing of it knows the formats, but for bodies, which are spoiled in ways
 * that stay readable.
 */

import { type Bytes, concat } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { type Body, decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { type Random, randomOf } from '../random.ts';

/** Sizes of what formats are made of: numbers, names of 8 bytes, identifiers, headers. */
const PIECES = [1, 2, 4, 8, 32, ID_BYTES, 2 * ID_BYTES, 256];
const KEPT = 64;
/** How far before a list its count stands. */
const COUNT_BEFORE = 12;

const flipped = (bytes: Bytes, random: Random): Bytes => {
  const copy = Uint8Array.from(bytes);
  const at = random(copy.length);
  copy[at] = (copy[at] as number) ^ (1 << random(8));
  return copy;
};

const KINDS: Readonly<Record<string, (bytes: Bytes, random: Random, older: Bytes) => Bytes[]>> = {
  lost: () => [],
  repeated: (bytes) => [bytes, bytes, bytes],
  'after an older one': (bytes, _, older) => [bytes, older],
  cut: (bytes, random) => [bytes.subarray(0, random(bytes.length))],
  longer: (bytes, random) => [concat(bytes, new Uint8Array(1 + random(100)).fill(random(256)))],
  'a bit': (bytes, random) => [flipped(bytes, random)],
  'some bits': (bytes, random) => {
    let changed = bytes;
    for (let left = 2 + random(8); left > 0; left--) changed = flipped(changed, random);
    return [changed];
  },
  'a number at its end': (bytes, random) => {
    const copy = Uint8Array.from(bytes);
    const at = random(copy.length);
    copy.fill(random(2) === 0 ? 0 : 255, at, at + (PIECES[random(PIECES.length)] as number));
    return [copy];
  },
  'mixed with an older one': (bytes, random, older) => {
    const at = random(Math.min(bytes.length, older.length) + 1);
    return [concat(bytes.subarray(0, at), older.subarray(at))];
  },
  'pieces in another order': (bytes, random) => {
    const size = PIECES[random(PIECES.length)] as number;
    if (bytes.length < 2 * size + 1) return [bytes];
    const at = 1 + random(bytes.length - 2 * size);
    const [first, second] = [bytes.subarray(at, at + size), bytes.subarray(at + size, at + 2 * size)];
    return [concat(bytes.subarray(0, at), second, first, bytes.subarray(at + 2 * size))];
  },
  'an entry twice': (bytes, random) => {
    const size = PIECES[random(PIECES.length)] as number;
    if (bytes.length < size + 2) return [bytes];
    const at = 2 + random(bytes.length - size - 1);
    const longer = concat(bytes.subarray(0, at + size), bytes.subarray(at, at + size), bytes.subarray(at + size));
    const count = Math.max(1, at - 1 - random(COUNT_BEFORE));
    longer[count] = (longer[count] as number) + 1;
    return [longer];
  },
};

const NAMES = Object.keys(KINDS);

/** How often, by kind of message and then by something else. */
class Counts {
  readonly #kinds = new Map<string, Map<string, number>>();

  add(kind: string, what: string): void {
    const counts = this.#kinds.get(kind) ?? new Map<string, number>();
    this.#kinds.set(kind, counts);
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }

  of(kind: string): number {
    return [...(this.#kinds.get(kind)?.values() ?? [])].reduce((sum, count) => sum + count, 0);
  }

  get total(): number {
    return this.kinds.reduce((sum, kind) => sum + this.of(kind), 0);
  }

  get kinds(): string[] {
    return [...this.#kinds.keys()];
  }

  /** A line for each kind, the most frequent first. */
  lines(): string[] {
    return [...this.#kinds].map(([kind, counts]) => {
      const sorted = [...counts].sort(([, a], [, b]) => b - a).map(([what, count]) => `${what} ${count}`);
      return `${kind}: ${this.of(kind)} (${sorted.join(', ')})`;
    });
  }
}

/** What was changed, and what became of it, in all tests of a run. */
export class Tally {
  readonly changes = new Counts();
  /** What honest ones made of the kinds of messages. */
  readonly verdicts = new Counts();

  report(): string {
    const { changes, verdicts } = this;
    return [`changes: ${changes.total}`, ...changes.lines(), 'verdicts:', ...verdicts.lines()].join('\n');
  }
}

export class Mangler {
  readonly random: Random;
  readonly #tally: Tally;
  readonly #kept = new Map<string, Bytes[]>();

  constructor(seed: number, tally: Tally) {
    this.random = randomOf(seed);
    this.#tally = tally;
  }

  /** What is sent in place of the message. Messages of one kind are mixed with each other. */
  mangle(bytes: Bytes, kind: string): Bytes[] {
    const kept = this.#kept.get(kind) ?? [];
    this.#kept.set(kind, kept);
    const older = kept[this.random(kept.length)] ?? bytes;
    kept[kept.length < KEPT ? kept.length : this.random(KEPT)] = Uint8Array.from(bytes);
    if (bytes.length === 0) return [bytes];
    const name = NAMES[this.random(NAMES.length)] as string;
    this.#tally.changes.add(kind, name);
    return KINDS[name]?.(bytes, this.random, older) ?? [];
  }

  /** The same for one answer: nothing where it is lost. */
  mangleOne(bytes: Bytes, kind: string): Bytes | undefined {
    return this.mangle(bytes, kind).at(-1);
  }

  /** A text with a number or an identifier in it that can be read and is another. */
  otherDigit(text: Bytes, kind: string): Bytes {
    this.#tally.changes.add(kind, 'another digit');
    const copy = Uint8Array.from(text);
    const values = [
      ...Buffer.from(text)
        .toString('latin1')
        .matchAll(/(?<![a-z_])[0-9a-f]*[0-9][0-9a-f]*/g),
    ];
    const value = values[this.random(values.length)];
    if (value !== undefined) copy[value.index + this.random(value[0].length)] = 0x30 + this.random(10);
    return copy;
  }

  /** A body that can be read and is not that of its header, or, where it cannot be spoiled so, other bytes. */
  spoilBody(bytes: Bytes, kind: string): Bytes {
    this.#tally.changes.add(kind, 'a spoiled body');
    const body = decodeBody(bytes);
    const twice = <T>(list: readonly T[]): T[] => [...list, ...list.slice(-1 - this.random(list.length))];
    const spoils: readonly ((body: Body) => Body)[] = [
      (of) => ({ ...of, transactions: twice(of.transactions) }),
      (of) => ({ ...of, transactions: of.transactions.slice(1) }),
      (of) => ({ ...of, transactions: of.transactions.toReversed() }),
      (of) => ({ ...of, parents: twice(of.parents) }),
      (of) => ({ ...of, parents: of.parents.slice(1) }),
      (of) => ({ ...of, payout: flipped(of.payout, this.random) }),
      (of) => ({ ...of, extranonce: flipped(of.extranonce, this.random) }),
    ];
    try {
      return encodeBody((spoils[this.random(spoils.length)] as (of: Body) => Body)(body));
    } catch {
      return flipped(bytes, this.random);
    }
  }
}
