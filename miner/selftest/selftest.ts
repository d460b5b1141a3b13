/**
 * The self-test: every backend that is present must reproduce the vectors. The reference is never a kernel, so a difference
 * means that the backend must not be used. A backend reports its first difference and stops.
 */
import { type Bytes, equalBytes, toHex } from '../../protocol/bytes.ts';
import { buildCache, datasetItem, datasetSeed, powParameters, powStages } from '../../protocol/crypto/pow.ts';
import type { PowVector } from './pow-vectors.ts';

export type Verdict =
  | { readonly kind: 'same'; readonly values: number; readonly remark?: string }
  | { readonly kind: 'different'; readonly what: string }
  /** The device or driver is not there; not a failure. */
  | { readonly kind: 'absent'; readonly why: string };

export interface SelfTestBackend {
  readonly name: string;
  check(vectors: readonly PowVector[]): Promise<Verdict>;
}

/** Compares values with their expectation, counts them, and keeps the first difference. */
export class Comparison {
  #values = 0;
  #difference: string | undefined;

  /** False at the first difference: the caller stops there. */
  same(what: string, actual: Bytes, expected: Bytes): boolean {
    if (this.#difference !== undefined) return false;
    this.#values++;
    if (equalBytes(actual, expected)) return true;
    this.#difference = `${what} is ${toHex(actual)}, expected ${toHex(expected)}`;
    return false;
  }

  verdict(): Verdict {
    return this.#difference === undefined
      ? { kind: 'same', values: this.#values }
      : { kind: 'different', what: this.#difference };
  }
}

export const placeOf = (vector: PowVector): string => `${vector.network.name} epoch ${vector.epoch}`;

export const referenceBackend: SelfTestBackend = {
  name: 'reference',
  async check(vectors) {
    const comparison = new Comparison();
    for (const vector of vectors) if (!checkReference(comparison, vector)) break;
    return comparison.verdict();
  },
};

function checkReference(comparison: Comparison, vector: PowVector): boolean {
  const parameters = powParameters(vector.network);
  const place = placeOf(vector);
  const seed = datasetSeed(vector.network.id, vector.epoch);
  if (!comparison.same(`${place} dataset seed`, seed, vector.datasetSeed)) return false;
  const cache = buildCache(seed, parameters.cacheLog2);
  return (
    vector.cache.every(({ index, bytes }) =>
      comparison.same(`${place} cache item ${index}`, cache.subarray(64 * index, 64 * index + 64), bytes),
    ) &&
    vector.items.every(({ index, bytes }) =>
      comparison.same(`${place} dataset item ${index}`, datasetItem(cache, parameters.cacheLog2, index), bytes),
    ) &&
    vector.hashes.every((expected, i) => {
      const stages = powStages(parameters, cache, expected.header);
      const what = `${place} hash ${i}`;
      return (
        comparison.same(`${what} pre_hash`, stages.preHash, expected.preHash) &&
        comparison.same(`${what} seed`, stages.seed, expected.seed) &&
        comparison.same(`${what} mix`, stages.mix, expected.mix) &&
        comparison.same(`${what} pow`, stages.pow, expected.pow)
      );
    })
  );
}

/** The verdict over all vectors, each of them announced: a large one takes a minute. */
async function checkAll(
  { name, check }: SelfTestBackend,
  vectors: readonly PowVector[],
  announce: (line: string) => void,
): Promise<Verdict> {
  let [values, remark, left, why] = [0, undefined as string | undefined, '', ''];
  for (const [i, vector] of vectors.entries()) {
    announce(`${name}: checking ${placeOf(vector)} (${i + 1} of ${vectors.length})`);
    const verdict = await check([vector]);
    if (verdict.kind === 'different') return verdict;
    if (verdict.kind === 'absent') {
      // It may be too large for this machine: the others are compared all the same.
      why ||= verdict.why;
      left ||= `not ${placeOf(vector)}: ${why}`;
      continue;
    }
    values += verdict.values;
    remark ??= verdict.remark;
  }
  if (values === 0) return { kind: 'absent', why };
  remark ??= left || undefined;
  return { kind: 'same', values, ...(remark === undefined ? {} : { remark }) };
}

/** Writes one line per backend as it finishes; false at the first difference. */
export async function selfTest(
  backends: readonly SelfTestBackend[],
  vectors: readonly PowVector[],
  say: (line: string) => void,
  announce: (line: string) => void = () => undefined,
): Promise<boolean> {
  for (const backend of backends) {
    const { name } = backend;
    const verdict = await checkAll(backend, vectors, announce);
    if (verdict.kind === 'same')
      say(
        `${name}: ${verdict.values} values are the same${verdict.remark === undefined ? '' : ` (${verdict.remark})`}`,
      );
    else if (verdict.kind === 'absent') say(`${name}: not present (${verdict.why})`);
    else {
      say(`${name}: DIFFERENT: ${verdict.what} [self_test_difference]`);
      return false;
    }
  }
  return true;
}
