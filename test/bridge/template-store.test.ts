/** What the server keeps of templates: what a block can still need, each transaction once, within a stated number of bytes. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { CheckedTemplate } from '../../bridge/nodes/template.ts';
import { bodyFor, carriedBy, MAX_BYTES, TemplateStore } from '../../bridge/nodes/template-store.ts';
import { JOB_LIFE_DEFAULTS } from '../../bridge/session/job-book.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { merkleLeaf } from '../../protocol/crypto/merkle.ts';
import { decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';

const KIB = 1024;
const WIRE = 4 * KIB;
const PER_BODY = 250;

/** Cheap and distinct: the store looks at hashes and lengths alone. */
const leaves = new Map<number, Bytes>();
function leafOf(n: number): Bytes {
  const leaf = leaves.get(n) ?? createHash('sha384').update(String(n)).digest();
  leaves.set(n, leaf);
  return leaf;
}
/** As from a node: all transactions are parts of one body. */
const buffer = new ArrayBuffer(PER_BODY * WIRE);

function templateOf(anchorHeight: number, numbers: readonly number[]): CheckedTemplate {
  const transactions = numbers.map((_, i) => new Uint8Array(buffer, i * WIRE, WIRE));
  return {
    anchorHeight,
    registrationWindowEnd: anchorHeight + REGISTRATION_WINDOW,
    headerBytes: new Uint8Array(312),
    header: {} as CheckedTemplate['header'],
    body: { payout: new Uint8Array(49), extranonce: new Uint8Array(40), parents: [], transactions },
    leaves: numbers.map(leafOf),
    epoch: 0,
    epochLength: undefined,
    fees: 0n,
  };
}

const range = (from: number, count: number) => Array.from({ length: count }, (_, i) => from + i);

/** Cuts of half a second, four draws each; `first` names the first transaction of a draw. */
function run(store: TemplateStore, cuts: number, first: (cut: number, draw: number) => number) {
  const seen = { bytes: 0, kept: 0 };
  for (let cut = 0; cut < cuts; cut++) {
    const serials = range(0, 4).map((draw) => store.put(templateOf(cut, range(first(cut, draw), PER_BODY))).serial);
    store.publish(serials, cut, cut * 500);
    seen.bytes = Math.max(seen.bytes, store.figures.bytes);
    seen.kept = Math.max(seen.kept, store.figures.kept);
  }
  return seen;
}

test('a full mempool that does not change costs its own bytes, however many templates carry it', () => {
  const store = new TemplateStore(JOB_LIFE_DEFAULTS);
  // The draws overlap by three quarters.
  const { bytes, kept } = run(store, 400, (_, draw) => draw * 60);
  expect(bytes).toBe((PER_BODY + 180) * WIRE);
  expect(kept).toBeLessThanOrEqual(4 * (REGISTRATION_WINDOW + 1));
  expect(store.figures.transactions).toBe(PER_BODY + 180);
});

test('a mempool that changes keeps the transactions of one window of cuts, and not one more', () => {
  const store = new TemplateStore(JOB_LIFE_DEFAULTS);
  // Ten transactions leave and ten come with each cut.
  const { bytes } = run(store, 300, (cut, draw) => cut * 10 + draw * 60);
  expect(bytes).toBeLessThanOrEqual((PER_BODY + 180 + 10 * (REGISTRATION_WINDOW + 1)) * WIRE);
});

test('bodies that have nothing in common are bounded by the bytes, and the published ones are always there', () => {
  const limit = 12 * PER_BODY * WIRE;
  const store = new TemplateStore(JOB_LIFE_DEFAULTS, limit);
  let last: readonly number[] = [];
  for (let cut = 0; cut < 30; cut++) {
    last = range(0, 4).map((draw) => store.put(templateOf(cut, range((cut * 4 + draw) * PER_BODY, PER_BODY))).serial);
    store.publish(last, cut, cut * 500);
    expect(store.figures.bytes).toBeLessThanOrEqual(limit);
  }
  for (const serial of last) expect(store.get(serial)).toBeDefined();
  // Even a single set above the bound is kept: it is what everyone hashes on.
  const tight = new TemplateStore(JOB_LIFE_DEFAULTS, 1);
  const { serial } = tight.put(templateOf(0, range(0, PER_BODY)));
  tight.publish([serial], 0, 0);
  expect(tight.get(serial)).toBeDefined();
  expect(MAX_BYTES).toBe(256 * 1024 * KIB);
});

test('a template lives as long as a job of it is known, and no longer than its window', () => {
  const store = new TemplateStore(JOB_LIFE_DEFAULTS);
  const put = (cut: number, headHeight: number, atMillis: number): number => {
    const { serial } = store.put(templateOf(cut, [cut]));
    store.publish([serial], headHeight, atMillis);
    return serial;
  };
  const known = JOB_LIFE_DEFAULTS.graceMillis + JOB_LIFE_DEFAULTS.memoryMillis;
  const first = put(0, 0, 0);
  // Nothing supersedes it for an hour: it is the current one, however old.
  const second = put(1, 1, 3_600_000);
  expect(store.get(first)).toBeDefined();
  put(2, 2, 3_600_000 + known);
  expect(store.get(first)).toBeDefined();
  put(3, 3, 3_600_000 + known + 6_000);
  expect(store.get(first)).toBeUndefined();
  expect(store.get(second)).toBeDefined();
  // A block on it could not be registered any more.
  put(REGISTRATION_WINDOW + 1, REGISTRATION_WINDOW + 1, 3_600_000 + known + 6_001);
  expect(store.get(second)).toBeUndefined();
});

test('what waits for its dataset is forgotten when something newer comes, and the body of a block is whole', () => {
  const store = new TemplateStore(JOB_LIFE_DEFAULTS);
  const transactions = [3_500, 5_000, 4_000].map((length, i) => new Uint8Array(length).fill(i + 1));
  const parents = [new Uint8Array(48).fill(1), new Uint8Array(48).fill(2)];
  const body = decodeBody(
    encodeBody({ payout: new Uint8Array(49), extranonce: new Uint8Array(40), parents, transactions }),
  );
  const leaves = body.transactions.map(merkleLeaf);
  const kept = store.put({ ...templateOf(5, []), body, leaves, fees: 12n });
  const [payout, extranonce] = [new Uint8Array(49).fill(0, 1), Uint8Array.of(0, 9, 9)];
  const made = decodeBody(bodyFor(kept, payout, extranonce));
  expect(made).toEqual({ payout, extranonce, parents, transactions });
  // Nothing of the answer's own bytes is held.
  for (const { wire } of kept.transactions) expect(wire.buffer.byteLength).toBe(wire.length);
  expect(carriedBy(kept)).toEqual({ fees: 12n, mass: 3_500 + 5_000 + 4_000 + 3 * 8 * 256 });
  store.forget(kept.serial);
  expect(store.figures).toEqual({ kept: 0, transactions: 0, bytes: 0 });
  // A block that is on its way still has its body.
  expect(decodeBody(bodyFor(kept, payout, extranonce)).transactions).toEqual(transactions);
});
