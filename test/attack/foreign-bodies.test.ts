/**
 * The identifier of a block covers only its header, so anybody can send another body with it. Whatever is changed, the verdict is 'wrong_body': it
 * says nothing about the block, and a certified cut that names it stays valid.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { type Bytes, ByteWriter, compareBytes } from '../../protocol/bytes.ts';
import type { ProposedCut } from '../../protocol/consensus/proposal.ts';
import { merkleRoot } from '../../protocol/crypto/merkle.ts';
import { type Body, decodeBody, encodeBody, MIN_TRANSACTION_BYTES } from '../../protocol/ledger/body.ts';
import { blockId, decodeHeader, encodeHeader } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { count, seed } from '../level.ts';
import { Bed, searchNonce } from '../node/bed.ts';

const PAYMENTS = 5;
const PARENTS = 3;
const [alice, mallory] = ['alice', 'mallory'].map((name) => developmentKey(name).address) as [Bytes, Bytes];

let bed: Bed;
let wires: Bytes[];
let parents: Bytes[];
beforeAll(async () => {
  bed = await Bed.open();
  await bed.seal();
  wires = Array.from({ length: PAYMENTS }, (_, i) => bed.payment([bed.treasury(i)], [{ address: alice, amount: 5n }]));
  parents = [];
  for (let i = 0; i < PARENTS; i++) parents.push(await bed.mine(alice, 0));
  parents.sort(compareBytes);
});
afterAll(() => bed.close());

/** As it stands: no rule of the encoder is in the way. */
function bytesOf({ payout, extranonce, parents: ids, transactions }: Body): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(65_536).u8(1).raw(payout).u8(extranonce.length).raw(extranonce).u8(ids.length);
  for (const id of ids) writer.raw(id);
  writer.u32(transactions.length);
  for (const wire of transactions) writer.u32(wire.length).raw(wire);
  return writer.done();
}

function blockOf(body: Body): { header: Bytes; cut: ProposedCut } {
  const template = bed.node.template({ payout: alice, maxTransactions: 0 });
  const header = searchNonce(
    encodeHeader({
      ...decodeHeader(template.header),
      parentsRoot: merkleRoot(body.parents),
      transactionsRoot: merkleRoot(body.transactions),
      rewardRoot: rewardRoot(body.payout, body.extranonce),
    }),
    template.target,
  );
  const head = bed.node.chain.head();
  const cut = { header: { height: head.height + 1, timestampMillis: bed.now + 2_500 } };
  return { header, cut: { ...cut, blockIds: [...body.parents, blockId(header)] } as unknown as ProposedCut };
}

/** By numbers, so that a counterexample can be read. */
const shapes = fc.record({
  isAlice: fc.boolean(),
  unique: fc.array(fc.nat({ max: 255 }), { minLength: 1, maxLength: 20 }),
  parentsAt: fc.subarray([...Array(PARENTS).keys()]),
  wiresAt: fc.shuffledSubarray([...Array(PAYMENTS).keys()]),
});
type Shape = typeof shapes extends fc.Arbitrary<infer T> ? T : never;

const bodyOf = ({ isAlice, unique, parentsAt, wiresAt }: Shape): Body => ({
  payout: isAlice ? alice : mallory,
  extranonce: Uint8Array.of(0, ...unique),
  parents: parentsAt.map((i) => parents[i] as Bytes),
  transactions: wiresAt.map((i) => wires[i] as Bytes),
});

type Mutation = (body: Body, other: Body, at: number, more: number) => Uint8Array;
type ListName = 'parents' | 'transactions';
const pick = <T>(list: readonly T[], at: number): T | undefined => list[at % Math.max(1, list.length)];
const repeated = (list: readonly Bytes[], at: number, to: number): Bytes[] => {
  const copy = pick(list, at);
  return copy === undefined ? [] : list.toSpliced(to % (list.length + 1), 0, copy);
};
const inList =
  (
    of: ListName,
    change: (list: readonly Bytes[], other: readonly Bytes[], at: number, more: number) => readonly Bytes[],
  ): Mutation =>
  (body, other, at, more) =>
    bytesOf({ ...body, [of]: change(body[of], other[of], at, more) });
const lists = (['parents', 'transactions'] as const).flatMap((of): [string, Mutation][] => [
  [`${of}: one twice`, inList(of, (list, _, at, more) => repeated(list, at, more))],
  // The trees of Bitcoin repeat a last entry without a sibling.
  [`${of}: the last again`, inList(of, (list) => [...list, ...list.slice(-1)])],
  [`${of}: all again`, inList(of, (list) => [...list, ...list])],
  [`${of}: one less`, inList(of, (list, _, at) => list.toSpliced(at % Math.max(1, list.length), 1))],
  [`${of}: turned`, inList(of, (list, _, at) => [...list.slice(at % 4), ...list.slice(0, at % 4)])],
  [
    `${of}: one of another body`,
    inList(of, (list, other, at, more) => {
      const foreign = pick(other, more);
      return foreign === undefined ? list : list.toSpliced(at % Math.max(1, list.length), 1, foreign);
    }),
  ],
  [`${of}: of another body`, inList(of, (_, other) => other)],
]);
const MUTATIONS: readonly (readonly [string, Mutation])[] = [
  ['nothing', (body) => bytesOf(body)],
  [
    'a bit',
    (body, _, at) => {
      const bytes = bytesOf(body);
      const place = Math.floor(at / 8) % bytes.length;
      bytes[place] = (bytes[place] as number) ^ (1 << (at % 8));
      return bytes;
    },
  ],
  ['shorter', (body, _, at) => bytesOf(body).subarray(0, at % bytesOf(body).length)],
  ['longer', (body, _, at, more) => Uint8Array.from([...bytesOf(body), ...new Uint8Array(1 + (at % 64)).fill(more)])],
  ['junk', (_, __, at, more) => new Uint8Array(at % 4_096).fill(more)],
  ['another body', (_, other) => bytesOf(other)],
  [
    'half of another body',
    (body, other, at) => {
      const [own, foreign] = [bytesOf(body), bytesOf(other)];
      const place = at % own.length;
      return Uint8Array.from([...own.subarray(0, place), ...foreign.subarray(place)]);
    },
  ],
  ['the payout of another body', (body, other) => bytesOf({ ...body, payout: other.payout })],
  ['the extranonce of another body', (body, other) => bytesOf({ ...body, extranonce: other.extranonce })],
  [
    'a witness of another transaction',
    (body, other, at) => {
      const [wire, foreign] = [pick(body.transactions, at), pick(other.transactions, at)];
      if (wire === undefined || foreign === undefined) return bytesOf(body);
      const swapped = Uint8Array.from([...wire.subarray(0, -100), ...foreign.subarray(-100)]);
      return bytesOf({ ...body, transactions: body.transactions.with(at % body.transactions.length, swapped) });
    },
  ],
  ...lists,
];

test('no change of a body makes its block impossible: it is the body, or a wrong one', async () => {
  const { ledger } = bed.node as ConsensusNode;
  const seen = new Map<string, number>();
  const runs = fc.asyncProperty(
    fc.tuple(shapes, shapes, fc.nat({ max: MUTATIONS.length - 1 }), fc.nat(), fc.nat({ max: 255 })),
    async ([shape, otherShape, which, at, more]) => {
      const [body, other] = [bodyOf(shape), bodyOf(otherShape)];
      const [name, mutate] = MUTATIONS[which] as readonly [string, Mutation];
      const { header, cut } = blockOf(body);
      const mutated = mutate(body, other, at, more);
      const isSame = Buffer.compare(mutated, encodeBody(body)) === 0;
      if (!isSame) seen.set(name, (seen.get(name) ?? 0) + 1);
      expect([name, await ledger.admit(header, mutated, cut)]).toEqual([name, isSame ? 'here' : 'wrong_body']);
      // Each is a write to the disk.
      if (!isSame && at % 8 !== 0) return;
      // The right one is taken afterwards, whatever came before it.
      expect(await ledger.admit(header, encodeBody(body), cut)).toBe('here');
      await ledger.forget([blockId(header)]);
      expect(ledger.isHere(blockId(header))).toBe(false);
    },
  );
  await fc.assert(runs, { numRuns: count({ full: 600, deep: 20_000 }), seed });
  // Every way was tried with a body that is another one by it.
  expect(MUTATIONS.filter(([name]) => name !== 'nothing' && !seen.has(name))).toEqual([]);
});

test('a header that commits to what no block may carry is impossible, and says by which rule', async () => {
  const { ledger } = bed.node as ConsensusNode;
  const [wire] = wires as [Bytes];
  const plain = decodeBody(bed.node.template({ payout: alice, maxTransactions: 0 }).body);
  const body = { ...plain, parents: [] };
  const verdict = async (bad: Body, alter: (cut: ProposedCut) => ProposedCut = (cut) => cut) => {
    const { header, cut } = blockOf(bad);
    return await ledger.admit(header, encodeBody(bad), alter(cut));
  };
  const impossible = (code: string) => ({
    impossible: expect.stringMatching(new RegExp(`^${code}: .* block [0-9a-f]{96}$`)),
  });
  expect(await verdict({ ...body, transactions: [wire, wire] })).toEqual(impossible('block_transaction_invalid'));
  expect(await verdict({ ...body, transactions: [new Uint8Array(MIN_TRANSACTION_BYTES)] })).toEqual(
    impossible('block_transaction_invalid'),
  );
  const orphan = { ...body, parents: [new Uint8Array(48).fill(7)] };
  const naming = (ids: readonly Bytes[]) => (cut: ProposedCut) => ({ ...cut, blockIds: ids });
  expect(await verdict(orphan, naming([]))).toEqual(impossible('parent_unknown'));
  // The parent is in the cut and not here: it may have been evicted, which says nothing.
  expect(await verdict(orphan)).toBe('later');
  // Judged for the cut after the head alone.
  const early = (cut: ProposedCut) => ({ ...cut, header: { ...cut.header, height: cut.header.height + 1 } });
  expect(await verdict({ ...body, transactions: [wire, wire] }, early)).toBe('later');
});
