/** Books rule 13: an honest pool's proofs are proven; a pool that lies, however consistently, never is. */
import { describe, expect, test } from 'vitest';
import { type SliceRecord, sliceChain } from '../../protocol/books-slice.ts';
import {
  type BooksEvidence,
  type BooksVerdict,
  judgeList,
  judgeProof,
  rewardTransaction,
} from '../../protocol/books-verdict.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { type PoolList, type PoolProof, poolListId } from '../../protocol/pool-proof.ts';
import { divideWindow, leavesOf, windowOf } from '../../protocol/pplns.ts';
import { sumTree } from '../../protocol/sum-tree.ts';
import {
  addressOf,
  Books,
  blockIdOf,
  type Decisions,
  honestDecisions,
  keyOf,
  membership,
  SLICE_CUTS,
} from '../../vectors/generate/honest-books.ts';

type Writable<T> = {
  -readonly [K in keyof T]: T[K] extends (infer E)[] | readonly (infer E)[] ? Writable<E>[] : Writable<T[K]>;
};
const copy = <T>(value: T): Writable<T> => structuredClone(value) as Writable<T>;

const honest = new Books(honestDecisions());
const SLICE = 18;
const MINERS = 7;
/** Worked in the newest slice of the window, and stands between two others in its tree. */
const VICTIM = (() => {
  const keys = [...honest.decisions.slices[SLICE - 1 - 3]!.keys()].sort();
  return [...Array(MINERS).keys()].find((miner) => keys.indexOf(keyOf(miner)) === 2)!;
})();

/** The same document with its name made anew, as a liar would. */
const renamed = <T extends PoolProof | PoolList>(document: T): T => ({
  ...document,
  list_id: poolListId(document as never),
});

function lyingBooks(change: (decisions: Decisions) => void): Books {
  const decisions = honestDecisions();
  change(decisions);
  return new Books(decisions);
}

/** A proof over a window of the liar's choice, consistent in itself. */
function proofOver(books: Books, parts: { slice: number; total: bigint }[], w: bigint, miner = VICTIM): PoolProof {
  const base = books.proof(SLICE, miner);
  const window = windowOf(w, parts);
  const at = (slice: number) => slice - books.decisions.firstSlice;
  const slices = new Map(
    books.records.map((record, i) => [
      record.slice,
      { slice: record.slice, total: BigInt(record.total_work), work: books.decisions.slices[i]! },
    ]),
  );
  const credits = divideWindow(BigInt(base.credited), window, slices);
  const tree = sumTree(leavesOf(credits, fromHex));
  return renamed({
    ...base,
    window_work: String(w),
    window: window.parts.map((part) => ({
      slice: part.slice,
      accounts: books.records[at(part.slice)]!.accounts,
      total: String(part.total),
      counted: String(part.counted),
      root: books.records[at(part.slice)]!.root,
      leaf: membership(books.trees[at(part.slice)]!, books.decisions.slices[at(part.slice)]!, miner),
    })),
    credit_accounts: tree.root.count,
    credit_root: toHex(tree.root.hash),
    credit: membership(tree, credits, miner),
  });
}

const before = (books: Books) =>
  books.records
    .filter((record) => record.slice < SLICE)
    .reverse()
    .map((record) => ({ slice: record.slice, total: BigInt(record.total_work) }));

const rechained = (records: readonly SliceRecord[]): SliceRecord[] => {
  let previous = records[0]!.previous;
  return records.map((record) => {
    const joined = { ...record, previous };
    previous = sliceChain(joined);
    return { ...joined, chain: previous };
  });
};

type Lie = { readonly proof: PoolProof; readonly evidence: BooksEvidence };
const proofLie = (change: (proof: Writable<PoolProof>) => void): Lie => {
  const proof = copy(honest.proof(SLICE, VICTIM));
  change(proof);
  return { proof: renamed(proof as PoolProof), evidence: honest.evidence(SLICE) };
};
const recordLie = (change: (records: Writable<SliceRecord>[]) => Writable<SliceRecord>[] | undefined): Lie => {
  const records = copy(honest.records) as Writable<SliceRecord>[];
  const changed = (change(records) ?? records) as SliceRecord[];
  return { proof: honest.proof(SLICE, VICTIM), evidence: { ...honest.evidence(SLICE), records: changed } };
};
const booksLie = (change: (decisions: Decisions) => void, isRecordsToo: boolean): Lie => {
  const books = lyingBooks(change);
  const evidence = honest.evidence(SLICE);
  const proof = books.proof(SLICE, VICTIM);
  return { proof, evidence: isRecordsToo ? { ...evidence, records: books.records } : evidence };
};
const own = (books: Books) => books.records.find((record) => record.slice === SLICE)!;
const part = (proof: Writable<PoolProof>, i = 0) => proof.window[i]!;
const branchOf = (leaf: unknown) =>
  (leaf as { branch: { index: number; siblings: { hash: string; sum: string }[] } }).branch;
const absenceOf = (of: number, left: number | null, right: number | null) => {
  const tree = honest.trees[SLICE - 1 - 3]!;
  const work = honest.decisions.slices[SLICE - 1 - 3]!;
  const miners = [...Array(MINERS).keys()]
    .filter((n) => work.has(keyOf(n)) && n !== of)
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const neighbour = (n: number | null) =>
    n === null ? null : { address: addressOf(n), ...(membership(tree, work, n) as { value: string; branch: never }) };
  const smaller = miners.filter((n) => keyOf(n) < keyOf(of));
  const larger = miners.filter((n) => keyOf(n) > keyOf(of));
  return {
    absent: {
      before: left === null ? null : neighbour(smaller.at(left) ?? null),
      after: right === null ? null : neighbour(larger.at(right) ?? null),
    },
  };
};

const LIES: Readonly<Record<string, () => Lie>> = {
  'a leaf of a large tree as one of a small tree': () =>
    proofLie((proof) => {
      part(proof).leaf = absenceOf(VICTIM, -1, 0) as never;
      part(proof).accounts = 2;
    }),
  'present, shown absent between its neighbours': () =>
    proofLie((proof) => {
      part(proof).leaf = absenceOf(VICTIM, -1, 0) as never;
    }),
  'present, shown absent as before the first': () =>
    proofLie((proof) => {
      part(proof).leaf = absenceOf(VICTIM, null, 0) as never;
    }),
  'present, shown absent as after the last': () =>
    proofLie((proof) => {
      part(proof).leaf = absenceOf(VICTIM, -1, null) as never;
    }),
  'present, shown absent in an empty tree': () =>
    proofLie((proof) => {
      part(proof).leaf = { absent: { before: null, after: null } } as never;
    }),
  'a neighbour with another index': () =>
    proofLie((proof) => {
      const absence = absenceOf(VICTIM, -1, 0);
      absence.absent.after!.branch = { ...(absence.absent.after!.branch as object), index: 1 } as never;
      part(proof).leaf = absence as never;
    }),
  'one account more in the count': () =>
    proofLie((proof) => {
      part(proof).accounts += 1;
    }),
  'one account less in the credits': () =>
    proofLie((proof) => {
      proof.credit_accounts -= 1;
    }),
  'credits without the victim': () =>
    proofLie((proof) => {
      const credits = new Map(
        honest
          .list(SLICE)
          .credits.filter((each) => each.address !== addressOf(VICTIM))
          .map((each) => [
            keyOf([...Array(MINERS).keys()].find((n) => addressOf(n) === each.address)!),
            BigInt(each.amount),
          ]),
      );
      const [first] = credits.keys();
      const missing = BigInt(proof.credited) - [...credits.values()].reduce((sum, each) => sum + each, 0n);
      credits.set(first!, credits.get(first!)! + missing);
      const tree = sumTree(leavesOf(credits, fromHex));
      proof.credit_root = toHex(tree.root.hash);
      proof.credit_accounts = tree.root.count;
      proof.credit = membership(tree, credits, VICTIM) as never;
    }),
  'a hundred atoms less for the victim': () =>
    proofLie((proof) => {
      const credits = new Map(
        honest
          .list(SLICE)
          .credits.map((each) => [
            keyOf([...Array(MINERS).keys()].find((n) => addressOf(n) === each.address)!),
            BigInt(each.amount),
          ]),
      );
      const other = [...credits.keys()].find((key) => key !== keyOf(VICTIM))!;
      credits.set(keyOf(VICTIM), credits.get(keyOf(VICTIM))! - 100n);
      credits.set(other, credits.get(other)! + 100n);
      const tree = sumTree(leavesOf(credits, fromHex));
      proof.credit_root = toHex(tree.root.hash);
      proof.credit = membership(tree, credits, VICTIM) as never;
    }),
  'a higher fee, against the published records': () =>
    booksLie((decisions) => {
      decisions.feePpm = 20_000;
    }, false),
  'a higher fee in the records too': () =>
    booksLie((decisions) => {
      decisions.feePpm = 20_000;
    }, true),
  'a lower fee': () =>
    booksLie((decisions) => {
      decisions.feePpm = 9_000;
    }, true),
  'a fee that does not follow from its rate': () =>
    proofLie((proof) => {
      proof.fee = String(BigInt(proof.fee) + 1n);
      proof.credited = String(BigInt(proof.credited) - 1n);
    }),
  'the newest slice of the window left out': () => {
    const proof = proofOver(honest, before(honest).slice(1), BigInt(own(honest).window_work));
    return { proof, evidence: honest.evidence(SLICE) };
  },
  'a slice in the middle of the window left out': () => {
    const parts = before(honest).filter((_, i) => i !== 3);
    return { proof: proofOver(honest, parts, BigInt(own(honest).window_work)), evidence: honest.evidence(SLICE) };
  },
  'every slice in which the victim worked left out': () => {
    const parts = before(honest).filter(({ slice }) => !honest.decisions.slices[slice - 3]!.has(keyOf(VICTIM)));
    return { proof: proofOver(honest, parts, BigInt(own(honest).window_work)), evidence: honest.evidence(SLICE) };
  },
  'a W that is too small': () => ({
    proof: proofOver(honest, before(honest), BigInt(own(honest).window_work) / 3n),
    evidence: honest.evidence(SLICE),
  }),
  'a W that is too large': () => ({
    proof: proofOver(honest, before(honest), BigInt(own(honest).window_work) * 2n),
    evidence: honest.evidence(SLICE),
  }),
  'a W that the window does not reach': () =>
    proofLie((proof) => {
      proof.window_work = String(BigInt(proof.window_work) * 5n);
    }),
  'a small W in the records too': () => {
    const w = BigInt(own(honest).window_work) / 3n;
    const records = rechained(
      honest.records.map((record) => (record.slice === SLICE ? { ...record, window_work: String(w) } : record)),
    );
    return { proof: proofOver(honest, before(honest), w), evidence: { ...honest.evidence(SLICE), records } };
  },
  'another target and the W that follows from it': () => {
    const records = rechained(
      honest.records.map((record) => (record.slice === SLICE ? { ...record, target: 'ff'.repeat(32) } : record)),
    );
    return { proof: honest.proof(SLICE, VICTIM), evidence: { ...honest.evidence(SLICE), records } };
  },
  'another factor of W in the records': () =>
    recordLie(
      (records) => rechained(records.map((record) => ({ ...record, window_thousandths: 1 })) as SliceRecord[]) as never,
    ),
  'other slice lengths in the records': () =>
    recordLie(
      (records) => rechained(records.map((record) => ({ ...record, slice_cuts: 20 })) as SliceRecord[]) as never,
    ),
  'a record left out': () =>
    recordLie((records) => rechained(records.filter((record) => record.slice !== 9) as SliceRecord[]) as never),
  'a record changed without its hash': () =>
    recordLie((records) => {
      records[5]!.total_work = '5';
    }),
  'a record that does not join the one before': () =>
    recordLie((records) => {
      records[5]!.previous = 'ab'.repeat(48);
      records[5]!.chain = sliceChain(records[5] as SliceRecord);
      return undefined;
    }),
  'records of the other service': () =>
    recordLie(
      (records) => rechained(records.map((record) => ({ ...record, service: 'solo' })) as SliceRecord[]) as never,
    ),
  'records that pretend to be the first': () =>
    recordLie((records) => {
      const late = records.slice(12);
      late[0]!.previous = '00'.repeat(48);
      return rechained(late as SliceRecord[]) as never;
    }),
  'another root in the records': () =>
    recordLie(
      (records) =>
        rechained(
          records.map((record) =>
            record.slice === SLICE - 1 ? { ...record, root: 'cd'.repeat(48) } : record,
          ) as SliceRecord[],
        ) as never,
    ),
  'an invented block': () =>
    proofLie((proof) => {
      proof.blocks[0]!.block_id = '0a'.repeat(48);
      proof.blocks[0]!.transaction_id = rewardTransaction('0a'.repeat(48));
    }),
  'an invented transaction': () =>
    proofLie((proof) => {
      proof.blocks[0]!.transaction_id = 'ef'.repeat(48);
    }),
  'another output': () =>
    proofLie((proof) => {
      proof.blocks[0]!.output_index = 1;
    }),
  'a reward smaller than the chain paid': () =>
    booksLie((decisions) => {
      decisions.blocks.find((each) => each.slice === SLICE)!.reward -= 100_000n;
    }, true),
  'a reward larger than the chain paid': () =>
    booksLie((decisions) => {
      decisions.blocks.find((each) => each.slice === SLICE)!.reward += 100_000n;
    }, true),
  'two rewards exchanged': () =>
    booksLie((decisions) => {
      const [a, b] = decisions.blocks.filter((each) => each.slice === SLICE && each.service === 'pplns');
      [a!.reward, b!.reward] = [b!.reward, a!.reward];
    }, true),
  'a block left out': () => {
    const books = lyingBooks((decisions) => {
      const last = decisions.blocks.findLastIndex((each) => each.slice === SLICE && each.service === 'pplns');
      decisions.blocks.splice(last, 1);
    });
    return { proof: books.proof(SLICE, VICTIM), evidence: honest.evidence(SLICE) };
  },
  'a block named twice, in both services': () => {
    const evidence = honest.evidence(SLICE);
    return {
      proof: honest.proof(SLICE, VICTIM),
      evidence: { ...evidence, otherBlocks: [...evidence.otherBlocks!, blockIdOf(SLICE, 'pplns', 0)] },
    };
  },
  'a block repeated': () => proofLie((proof) => void proof.blocks.push(proof.blocks[0]!)),
  'blocks of another slice': () => ({
    proof: renamed({ ...honest.proof(SLICE, VICTIM), slice: SLICE + 1 }),
    evidence: honest.evidence(SLICE + 1),
  }),
  'another network': () => ({
    proof: { ...honest.proof(SLICE, VICTIM), network: 'testnet' },
    evidence: honest.evidence(SLICE),
  }),
  'another version': () =>
    proofLie((proof) => {
      proof.version = 1 as never;
    }),
  'the window in another order': () => proofLie((proof) => void proof.window.reverse()),
  'a part counted more': () =>
    proofLie((proof) => {
      proof.window.at(-1)!.counted = String(BigInt(proof.window.at(-1)!.counted) + 1n);
    }),
  'a total changed': () =>
    proofLie((proof) => {
      part(proof).total = String(BigInt(part(proof).total) + 1n);
    }),
  'a root changed': () =>
    proofLie((proof) => {
      part(proof).root = 'aa'.repeat(48);
    }),
  'another leaf of the tree as the victim’s': () =>
    proofLie((proof) => {
      part(proof).leaf = membership(
        honest.trees[SLICE - 1 - 3]!,
        honest.decisions.slices[SLICE - 1 - 3]!,
        VICTIM === 0 ? 3 : 0,
      ) as never;
    }),
  'a smaller value with the right branch': () =>
    proofLie((proof) => {
      (part(proof).leaf as { value: string }).value = '1';
    }),
  'sums of siblings exchanged': () =>
    proofLie((proof) => {
      const { siblings } = branchOf(part(proof).leaf);
      siblings[0]!.sum = String(BigInt(siblings[0]!.sum) + 5n);
      siblings[1]!.sum = String(BigInt(siblings[1]!.sum) - 5n);
    }),
  'a sibling too many': () =>
    proofLie((proof) => void branchOf(part(proof).leaf).siblings.push({ hash: '00'.repeat(48), sum: '0' })),
  'a fractional index': () =>
    proofLie((proof) => {
      branchOf(part(proof).leaf).index = 0.5;
    }),
  'a negative index': () =>
    proofLie((proof) => {
      branchOf(part(proof).leaf).index = -1;
    }),
  'a count beyond all bounds': () =>
    proofLie((proof) => {
      part(proof).accounts = 2 ** 31;
    }),
  'a sum beyond 128 bits': () =>
    proofLie((proof) => {
      branchOf(part(proof).leaf).siblings[0]!.sum = '9'.repeat(60);
    }),
  'a negative sum': () =>
    proofLie((proof) => {
      branchOf(part(proof).leaf).siblings[0]!.sum = '-5';
    }),
  'the proof of a pool that begins now': () => {
    const proof = proofOver(
      honest,
      [{ slice: SLICE, total: BigInt(own(honest).total_work) }],
      BigInt(own(honest).window_work),
    );
    return { proof, evidence: honest.evidence(SLICE) };
  },
};

describe('an honest pool', () => {
  test('has its proofs proven, of every slice and every miner, present or absent', () => {
    for (const { slice } of honest.records)
      for (let miner = 0; miner < MINERS + 2; miner++)
        expect([slice, miner, judgeProof(honest.proof(slice, miner), honest.evidence(slice))]).toMatchObject([
          slice,
          miner,
          { verdict: 'proven' },
        ]);
  });

  test('has its lists proven', () => {
    for (const { slice } of honest.records)
      expect(judgeList(honest.list(slice), honest.evidence(slice))).toMatchObject({
        verdict: 'proven',
        credit: BigInt(honest.list(slice).credited),
      });
  });

  test('is not called proven where something was not checked', () => {
    const all = honest.evidence(SLICE);
    const judged = (change: Partial<BooksEvidence>) => judgeProof(honest.proof(SLICE, VICTIM), { ...all, ...change });
    const missing = (verdict: BooksVerdict) => (verdict.verdict === 'unchecked' ? verdict.missing : verdict);
    expect(missing(judged({ terms: null }))).toEqual(['terms']);
    expect(missing(judged({ records: null }))).toEqual(['records']);
    expect(missing(judged({ records: all.records!.slice(14) }))).toEqual(['records_reach']);
    expect(missing(judged({ records: all.records!.slice(0, 10) }))).toEqual(['records_reach']);
    expect(missing(judged({ targets: null }))).toEqual(['target']);
    expect(missing(judged({ rewards: null }))).toEqual(['rewards']);
    expect(missing(judged({ otherBlocks: null }))).toEqual(['other_service']);
  });

  test('is not called proven on its word that a later list credits a block', () => {
    const books = lyingBooks((decisions) => {
      const last = decisions.blocks.findLastIndex((each) => each.slice === SLICE && each.service === 'pplns');
      decisions.blocks.splice(last, 1);
    });
    const left = honest.evidence(SLICE);
    const listed = new Set(books.proof(SLICE, VICTIM).blocks.map((block) => block.block_id));
    const movedBlocks = honest
      .proof(SLICE, VICTIM)
      .blocks.flatMap((block) => (listed.has(block.block_id) ? [] : [block.block_id]));
    expect(movedBlocks).toHaveLength(1);
    expect(judgeProof(books.proof(SLICE, VICTIM), { ...left, movedBlocks })).toMatchObject({
      verdict: 'unchecked',
      missing: ['later_list'],
    });
  });

  test('may credit a late reward with a later list, which the chain confirms', () => {
    const late = lyingBooks(
      (decisions) => void decisions.blocks.push({ slice: SLICE, service: 'pplns', reward: 1_234n, finder: 1 }),
    );
    const evidence = honest.evidence(SLICE);
    const third = rewardTransaction(blockIdOf(SLICE, 'pplns', 2));
    const lateRewards = new Map([[third, { amount: '1234', height: SLICE * SLICE_CUTS }]]);
    expect(judgeProof(late.proof(SLICE, VICTIM), { ...evidence, lateRewards })).toMatchObject({ verdict: 'proven' });
    expect(judgeProof(late.proof(SLICE, VICTIM), evidence)).toEqual({ verdict: 'false', reason: 'reward_unknown' });
  });
});

describe('a pool that lies is never called proven', () => {
  test('there are more than fifty lies', () => expect(Object.keys(LIES).length).toBeGreaterThanOrEqual(50));

  for (const [name, lie] of Object.entries(LIES))
    test(name, () => {
      const { proof, evidence } = lie();
      expect(judgeProof(JSON.parse(JSON.stringify(proof)) as PoolProof, evidence).verdict).toBe('false');
    });

  test('two lies at once', () => {
    const lies = Object.values(LIES).map((lie) => lie());
    const truth = JSON.stringify(honest.proof(SLICE, VICTIM));
    const proofs = lies.filter(({ proof }) => JSON.stringify(proof) !== truth);
    expect(proofs.length).toBeGreaterThan(40);
    for (const { proof } of proofs)
      for (const { evidence } of lies) expect(judgeProof(proof, evidence).verdict).not.toBe('proven');
  });

  test('one atom moved in a list', () => {
    const list = copy(honest.list(SLICE));
    list.credits[0]!.amount = String(BigInt(list.credits[0]!.amount) + 1n);
    list.credits[1]!.amount = String(BigInt(list.credits[1]!.amount) - 1n);
    expect(judgeList(list as PoolList, honest.evidence(SLICE))).toEqual({ verdict: 'false', reason: 'credit_amount' });
  });
});
