/**
 * Choosing the blocks of a cut reads the store once for each parent that does not wait itself, however many blocks wait and however they name each other: after a
 * jump of the hash rate thousands may. The same when blocks are left out that no cut can take.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chooseBlocks, nameOf, type Registrable } from '../../node/ledger/registration.ts';
import { type WaitingBlock, WorkPool } from '../../node/mining/work-pool.ts';
import { type Bytes, compareBytes, utf8 } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';
import { count, seed } from '../level.ts';
import { type Random, randomOf } from '../random.ts';

const idOf = (name: string): Bytes => id('TEST_BLOCK', utf8(name));
const block = (name: string, parents: readonly Bytes[], signatures = 0): Registrable => ({
  id: idOf(name),
  hash: idOf(`hash of ${name}`).subarray(0, 32),
  bodyId: idOf(`body of ${name}`),
  header: { anchorHeight: 0 },
  body: { parents },
  signatures,
});

/** Each names eight before it; the first ones name blocks that do not wait. */
function crowd(size: number): Registrable[] {
  const blocks: Registrable[] = [];
  const ids = Array.from({ length: 8 }, (_, i) => idOf(`registered ${i}`));
  for (let i = 0; i < size; i++) {
    const made = block(`${i}`, ids.slice(-8));
    blocks.push(made);
    ids.push(made.id);
  }
  return blocks;
}

const NONE: ReadonlySet<string> = new Set();

test('choosing among thousands looks each parent up once', () => {
  let lookups = 0;
  const isRegistered = (asked: Bytes) => {
    lookups++;
    return Array.from({ length: 8 }, (_, i) => idOf(`registered ${i}`)).some((one) => compareBytes(one, asked) === 0);
  };
  expect(chooseBlocks(crowd(1_000), 1, isRegistered, NONE).length).toBe(64);
  expect(lookups).toBe(8);
});

test.each([1, 63, 64, 65, 100])(
  'of a line of %i blocks a cut registers none without its parent, and as many as there is room for',
  (length) => {
    const line = Array.from({ length }, (_, i) =>
      block(`line ${i}`, [idOf(i === 0 ? 'registered 0' : `line ${i - 1}`)]),
    );
    const isRegistered = (asked: Bytes) => compareBytes(idOf('registered 0'), asked) === 0;
    const chosen = chooseBlocks(line, 1, isRegistered, NONE);
    expect(chosen.map(({ id }) => nameOf(id))).toEqual(line.slice(0, 64).map(({ id }) => nameOf(id)));
  },
);

const poolOf = (blocks: readonly Registrable[]): WorkPool => {
  const pool = new WorkPool({ maxBlocks: 10_000, maxBytes: 1e9 });
  for (const each of blocks)
    pool.add({ ...each, transactions: [], bodyBytes: new Uint8Array(0) } as unknown as WaitingBlock);
  return pool;
};

test('a line of dead blocks leaves in whatever order it came', () => {
  let lookups = 0;
  const blocks = crowd(2_000);
  const pool = poolOf([...blocks].reverse());
  const dead = pool.leaveOutDead(() => {
    lookups++;
    return false;
  }, NONE);
  expect([dead.length, pool.count, lookups]).toEqual([2_000, 0, 8]);
});

/** As the rule says it: again and again, until nothing changes. */
function plainlyDead(blocks: readonly Registrable[], isRegistered: (id: Bytes) => boolean, used: ReadonlySet<string>) {
  const waiting = new Map(blocks.map((each) => [nameOf(each.id), each]));
  for (let before = -1; before !== waiting.size; ) {
    before = waiting.size;
    for (const [name, each] of waiting)
      if (
        used.has(nameOf(each.bodyId)) ||
        each.body.parents.some((parent) => !waiting.has(nameOf(parent)) && !isRegistered(parent))
      )
        waiting.delete(name);
  }
  return blocks.filter(({ id }) => !waiting.has(nameOf(id)));
}

function drawn(random: Random): Registrable[] {
  const blocks: Registrable[] = [];
  for (let i = 0; i < 40; i++) {
    const parents = Array.from({ length: random(4) }, () =>
      random(6) === 0 ? idOf(`registered ${random(4)}`) : (blocks[random(blocks.length)]?.id ?? idOf('registered 1')),
    );
    blocks.push(block(`${i}`, parents));
  }
  return blocks.sort(() => random(3) - 1);
}

test('those that leave are those of the rule', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1 }), (from) => {
      const random = randomOf(from);
      const blocks = drawn(random);
      const isRegistered = (asked: Bytes) => [1, 2, 3].some((i) => compareBytes(idOf(`registered ${i}`), asked) === 0);
      const used = new Set(random(2) === 0 ? [nameOf(blocks[random(40)]?.bodyId as Bytes)] : []);
      const names = (list: readonly { readonly id: Bytes }[]) => list.map((each) => nameOf(each.id)).sort();
      expect(names(poolOf(blocks).leaveOutDead(isRegistered, used))).toEqual(
        names(plainlyDead(blocks, isRegistered, used)),
      );
    }),
    { numRuns: count({ full: 60, deep: 5_000 }), seed },
  );
});
