/**
 * Records which slice the entries of a journal counted in (books rule 2), stored beside the journal: for each slice
 * that closed, the last sequence of the boot that is in it. The first answer of the books counts: if the database is
 * replaced by an older copy, the entries are sent again with the slice they were in, and every slice closes as it did.
 */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { readThroughDamage } from '../journal/damaged-blocks.ts';
import { ifMissing, SLICES_FILE } from '../journal/journal.ts';

/** Everything of the boot up to `through`, and after the mark before, is in the slice. */
export type SliceMark = { readonly slice: number; readonly through: number };

/** A closed slice; without `through` if the books had nothing new of the boot. */
export type SliceEnd = { readonly slice: number; readonly through: number | undefined };

/** Reads from the books the slices that closed after the last known one of each boot; oldest first. */
export type SliceEnds = (
  known: ReadonlyMap<string, number | undefined>,
) => Promise<ReadonlyMap<string, readonly SliceEnd[]>>;

/** Marks of one boot kept in memory: two weeks of slices of ten minutes. */
const MAX_MARKS = 2_000;

const fileOf = (directory: string, bootId: string): string => join(directory, bootId, SLICES_FILE);

const checkOf = (text: string): string => crc32(text).toString(16).padStart(8, '0');

/** `slice through checksum`: a flipped digit would put shares that the books still lack into a slice of years to come. */
const lineOf = ({ slice, through }: SliceMark): string => `${slice} ${through} ${checkOf(`${slice} ${through}`)}\n`;

/** Complete lines, both numbers increasing; others are ignored, such as one truncated by a crash or a full disk: the next line break ends it too. */
export function readMarks(text: string): SliceMark[] {
  const marks: SliceMark[] = [];
  for (const line of text.split('\n').slice(0, -1)) {
    const match = /^((\d{1,10}) (-1|\d{1,15})) ([0-9a-f]{8})$/.exec(line);
    const [, numbers = '', slice, through, check] = match ?? [];
    const mark = { slice: Number(slice), through: Number(through) };
    const last = marks.at(-1);
    const isDamaged = match === null || check !== checkOf(numbers);
    if (isDamaged || (last !== undefined && (mark.slice <= last.slice || mark.through < last.through))) continue;
    marks.push(mark);
  }
  return marks;
}

export class SliceMarks {
  readonly #directory: string;
  readonly #marks = new Map<string, SliceMark[]>();
  #looking: Promise<void> = Promise.resolve();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Reads the marks of a boot. */
  async know(bootId: string): Promise<void> {
    const found = await readThroughDamage(fileOf(this.#directory, bootId)).catch(ifMissing(Buffer.alloc(0)));
    this.#marks.set(bootId, readMarks(found.toString()).slice(-MAX_MARKS));
  }

  drop(bootId: string): void {
    this.#marks.delete(bootId);
  }

  /**
   * Reads newly closed slices from the books and stores their marks. Serialized: two at once would store the same
   * twice, or in the wrong order.
   */
  look(ends: SliceEnds): Promise<void> {
    const look = this.#looking.then(() => this.#look(ends));
    this.#looking = look.catch(() => undefined);
    return look;
  }

  async #look(ends: SliceEnds): Promise<void> {
    const known = new Map([...this.#marks].map(([bootId, marks]) => [bootId, marks.at(-1)?.slice]));
    const newest = Math.max(-1, ...[...known.values()].map((slice) => slice ?? -1));
    const told = await ends(known);
    for (const [bootId, slice] of known) {
      const found = told.get(bootId) ?? [];
      // A boot begins after every slice that this machine knows to be closed, even if the books were just replaced by
      // an older copy: it had no entries in them.
      const isBehind = slice === undefined && (found.at(-1)?.slice ?? -1) < newest;
      await this.#keep(bootId, isBehind ? [...found, { slice: newest, through: undefined }] : found);
    }
  }

  async #keep(bootId: string, ends: readonly SliceEnd[]): Promise<void> {
    const marks = this.#marks.get(bootId);
    if (marks === undefined || ends.length === 0) return;
    const added: SliceMark[] = [];
    for (const { slice, through } of ends) {
      const before = added.at(-1)?.through ?? marks.at(-1)?.through ?? -1;
      added.push({ slice, through: Math.max(before, through ?? before) });
    }
    // The leading line break ends a line that a crash may have truncated.
    const file = await open(fileOf(this.#directory, bootId), 'a');
    try {
      await file.appendFile(`\n${added.map(lineOf).join('')}`);
      await file.datasync();
    } finally {
      await file.close();
    }
    marks.push(...added);
    if (marks.length > 2 * MAX_MARKS) marks.splice(0, marks.length - MAX_MARKS);
  }

  /** The marks of a boot, oldest first; the start of the entries before the first mark is not known. */
  of(bootId: string): readonly SliceMark[] {
    return this.#marks.get(bootId) ?? [];
  }

  /** The slice of an entry, undefined where it is not known, and the last sequence of which the same is true. */
  sliceOf(bootId: string, sequence: number): { readonly slice: number | undefined; readonly until: number } {
    const marks = this.#marks.get(bootId) ?? [];
    const [first, last] = [marks[0], marks.at(-1)];
    if (first === undefined || last === undefined) return { slice: undefined, until: Number.MAX_SAFE_INTEGER };
    // Where the entries before the first mark began is not known.
    if (sequence <= first.through) return { slice: undefined, until: first.through };
    if (sequence > last.through) return { slice: last.slice + 1, until: Number.MAX_SAFE_INTEGER };
    let [low, high] = [0, marks.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((marks[middle] as SliceMark).through < sequence) low = middle + 1;
      else high = middle;
    }
    const { slice, through } = marks[low] as SliceMark;
    return { slice, until: through };
  }
}
