/** Lies about trees, amounts, terms, windows, records and rewards: each is consistent as far as the liar can make it. */
import { type SliceRecord, sliceChain } from '../../protocol/books/books-slice.ts';
import { rewardTransaction } from '../../protocol/books/books-verdict.ts';
import { leavesOf } from '../../protocol/books/pplns.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { sumTree } from '../../protocol/crypto/sum-tree.ts';
import { addressOf, blockIdOf, keyOf, membership } from '../../vectors/generate/honest-books.ts';
import {
  absenceOf,
  before,
  booksLie,
  branchOf,
  honest,
  type Lie,
  lyingBooks,
  MINERS,
  own,
  part,
  proofLie,
  proofOver,
  rechained,
  recordLie,
  renamed,
  SLICE,
  VICTIM,
} from './books-liar.ts';

export const LIES: Readonly<Record<string, () => Lie>> = {
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
  'present, shown absent in a tree that is called empty': () =>
    proofLie((proof) => {
      part(proof).leaf = { absent: { before: null, after: null } } as never;
      part(proof).accounts = 0;
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
  'a window that begins with the own slice': () => {
    const { slice, total_work: total } = own(honest);
    const parts = [{ slice, total: BigInt(total) }, ...before(honest)];
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
