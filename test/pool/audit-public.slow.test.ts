/**
 * `svc-pool audit --public`: what a pool publishes out of a real database, against a node. Honest books have no finding; whatever the pool changes in its
 * database afterwards shows in what it publishes, because the ledger and the payouts stay as they are.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { LedgerReads } from '../../pool/audit/ledger.ts';
import { auditPublic, WITHOUT_A_NODE } from '../../pool/audit/public.ts';
import { publicReportText } from '../../pool/audit/report.ts';
import { insistSliceCuts } from '../../pool/books/slices.ts';
import type { Sql } from '../../pool/database/connect.ts';
import { formatAddress } from '../../protocol/address.ts';
import { ApiError } from '../../protocol/api/client-calls.ts';
import { FIRST_CHAIN, type SliceRecord, sliceChain, windowWork } from '../../protocol/books/books-slice.ts';
import type { PublishedTerms } from '../../protocol/books/books-terms.ts';
import { PoolSilence } from '../../protocol/books/pool-silence.ts';
import { fromHex } from '../../protocol/bytes.ts';
import { targetFromBytes } from '../../protocol/ledger/target.ts';
import { openAuditBed, POOL } from './audit-bed.ts';
import { account, type BooksBed, SLICE_CUTS } from './books-bed.ts';
import { exampleOf, shapeOf } from './books-examples.ts';
import { publishedPool } from './published-pool.ts';

let books: BooksBed;
let ledger: LedgerReads;
beforeAll(async () => {
  ({ books, ledger } = await openAuditBed());
});
afterAll(() => books.close());

const auditOf = (sql: Sql, liar?: (path: string, answer: unknown) => unknown) =>
  auditPublic({ pool: publishedPool(sql, liar), node: ledger as never });

test('an honest pool: every PPLNS list is proven, solo but for the finder, no difference', async () => {
  const report = await auditOf(books.sql);
  expect(report.findings).toEqual([]);
  expect(report).toMatchObject({
    lists: { proven: 5, unchecked: 5, false: 0 },
    missing: { solo_finder: 5 },
    slices: 100,
    commitments: 2,
    height: 200,
    ledger_height: 200,
    differences: 0,
    not_checked: [],
    verdict: 'holds',
    money: { network_fees: '2000', withdrawn: '0', withdrawals: [] },
  });
  expect(report.payments).toBeGreaterThan(0);
  expect(publicReportText(report)).toMatch(
    /5 proven, 5 not to be proven from here, 0 false[\s\S]*Verdict: no difference was found/,
  );
});

test('without a node nothing is called proven', async () => {
  const report = await auditPublic({ pool: publishedPool(books.sql), node: null });
  expect(report).toMatchObject({ lists: { proven: 0, false: 0 }, ledger_height: null, money: null, differences: 0 });
  expect(report).toMatchObject({ verdict: 'unchecked', not_checked: [WITHOUT_A_NODE] });
  expect(publicReportText(report)).toMatch(/Not checked: the ledger: [\s\S]*not everything could be checked/);
});

test('a pool does not start with slices of another length than those that it has', async () => {
  await insistSliceCuts(books.sql, SLICE_CUTS);
  await expect(insistSliceCuts(books.sql, SLICE_CUTS + 1)).rejects.toMatchObject({ code: 'options_disagree' });
});

test('a node that has not read the newest cuts is not held against the pool', async () => {
  const behind = {
    ...ledger,
    // As a node does: the newest cut that it has.
    cuts: async ({ before }: { before: number }) => ledger.cuts({ before: Math.min(before, 150), limit: 1 }),
  };
  const report = await auditPublic({ pool: publishedPool(books.sql), node: behind as never });
  expect(report).toMatchObject({ verdict: 'unchecked', differences: 0 });
  expect(report.not_checked).toContain(
    'targets of 24 slices, the first slice 38 of pplns: the node has not read these cuts',
  );
});

test('books that are late when their audit begins are waited for while they come nearer, and no longer', async () => {
  const auditLate = async (heightAfter: (waits: number) => number) => {
    let waits = 0;
    const liar = (path: string, answer: unknown) => {
      const height = Math.min(200, heightAfter(waits));
      return path === 'terms' && height < 200 ? { ...(answer as PublishedTerms), height } : answer;
    };
    const sources = { pool: publishedPool(books.sql, liar), node: ledger as never };
    const report = await auditPublic(sources, async () => void waits++);
    return { ...report, waits };
  };
  // Two waits are of every audit: before the payments and before the records. A third and fourth are for records that are newer than the terms.
  expect(await auditLate(() => 200)).toMatchObject({ verdict: 'holds', waits: 2 });
  expect(await auditLate((waits) => 150 + 10 * waits)).toMatchObject({ verdict: 'holds', waits: 6 });
  const standing = await auditLate(() => 150);
  expect(standing).toMatchObject({ verdict: 'unchecked', waits: 5 });
  expect(standing.not_checked).toContain('cuts 151 to 200: the pool’s books have not taken them in');
});

test('a pool that names another address beside its lists alone, a slice that is not over, or another total is false', async () => {
  const whats = (report: Awaited<ReturnType<typeof auditOf>>) => report.findings.map(({ what }) => what);
  const other = formatAddress(account('beside'), 'development');
  let last = '';
  const beside = await auditOf(books.sql, (path, answer) => {
    const isBeside = path === 'terms' && last.startsWith('proofs/');
    last = path;
    return isBeside ? { ...(answer as PublishedTerms), address: other } : answer;
  });
  expect(whats(beside)).toContain('the pool’s address');
  const early = (path: string, answer: unknown) =>
    path === 'terms' ? { ...(answer as PublishedTerms), height: 100 } : answer;
  const behind = {
    ...ledger,
    addressChanges: async (asked: Parameters<LedgerReads['addressChanges']>[0]) => ({
      ...(await ledger.addressChanges(asked)),
      indexed_height: 100,
    }),
  };
  const pool = publishedPool(books.sql, early);
  expect((await auditPublic({ pool, node: behind as never })).findings).toContainEqual(
    expect.objectContaining({ what: 'slice 25 of pplns', books: 'closed', computed: 'not before cut 104' }),
  );
  expect((await auditPublic({ pool, node: null })).not_checked).toContain(
    'slice 25 of pplns: closed before the cut that the pool names was reached',
  );
  const total = await auditOf(books.sql, (path, answer) => {
    if (!path.startsWith('slices/pplns?')) return answer;
    const { slices, ...rest } = answer as { slices: SliceRecord[] };
    const changed = slices.map((each) =>
      each.slice === 3 ? { ...each, total_work: String(BigInt(each.total_work) + 1n) } : each,
    );
    return { ...rest, slices: changed };
  });
  expect(whats(total)).toContain('slice 3 of pplns: total');
});

test('the examples of the document have the fields of real answers, and no others', async () => {
  const pool = publishedPool(books.sql);
  const { leaves } = (await pool('slices/pplns/2/leaves')) as { leaves: { address: string }[] };
  const routes = [
    'terms',
    'slices/pplns?limit=1',
    'slices/pplns/3/leaves',
    'slices/pplns/3/blocks',
    'proofs/pplns/3/list',
    'commitments',
    'payments',
  ];
  for (const route of routes) {
    const example = { ...(exampleOf(route) as object) };
    // This pool signs no receipts.
    if ('pool_key' in example) delete example.pool_key;
    // The newest slice that has a list.
    const answer = await pool(route.replace('slices/pplns?limit=1', 'slices/pplns?limit=1&cursor=5-0'));
    expect([route, ...new Set(shapeOf(answer))].sort()).toEqual([route, ...new Set(shapeOf(example))].sort());
  }
  type Proof = { window: { leaf: object }[]; credit: object };
  const stranger = (await pool(`proofs/pplns/3?address=${thief}`)) as Proof;
  const miner = (await pool(`proofs/pplns/3?address=${leaves[0]?.address}`)) as Proof;
  const example = exampleOf('proofs/pplns/3?address=') as Proof;
  expect(new Set(shapeOf({ ...miner, window: null }))).toEqual(new Set(shapeOf({ ...example, window: null })));
  // The example's account is before the first leaf.
  const absent = shapeOf(stranger.window).filter((each) => !each.includes('.before.'));
  expect(new Set(absent)).toEqual(new Set(shapeOf(example.window)));
});

const thief = formatAddress(account('thief'), 'development');
const paidBlock = `(select min(block_id) from blocks where state = 'paid' and service = 0)`;
const EDITS: readonly (readonly [edit: string, names: RegExp])[] = [
  [`update slices set leaves = substring(leaves from 21) where number = 3 and service = 0`, /slice 3 of pplns: root/],
  [
    `update slices set root = set_byte(root, 0, get_byte(root, 0) # 1) where number = 3 and service = 0`,
    /slice 3 of pplns/,
  ],
  [`update slices set fee_ppm = 20000 where number = 3 and service = 0`, /records of pplns/],
  [`update slices set window_work = window_work + 1 where number = 3 and service = 0`, /records of pplns/],
  [`update slices set target = set_byte(target, 31, 7) where number = 3 and service = 1`, /slice 3 of solo: target/],
  [`delete from slices where number = 2 and service = 0`, /records of pplns/],
  [`delete from slices where number = 0 and service = 0`, /slices of pplns|records of pplns/],
  [`update credit_lists set credits = set_byte(credits, 4, get_byte(credits, 4) # 1) where id = 1`, /credits of slice/],
  [`update credit_lists set fee = fee + 1, credited = credited - 1 where service = 0`, /credits of slice/],
  [`update blocks set reward = reward + 1 where block_id = ${paidBlock}`, /credits of slice/],
  [`update blocks set service = 1 where block_id = ${paidBlock}`, /credits of slice/],
  [`update blocks set state = 'expired', reward = null where block_id = ${paidBlock}`, /credits of slice/],
  [`update payout_items set amount = amount + 1`, /payment of \d+ atoms/],
  [
    `update accounts set payload = '\\x${Buffer.from(account('thief')).toString('hex')}', address = '${thief}' where id = (select min(account_id) from payout_items)`,
    /slice|payment/,
  ],
  [`update payouts set transaction_id = set_byte(transaction_id, 0, 1)`, /payout \d: what transaction|payment/],
  [
    `update payouts set books_head = set_byte(books_head, 0, get_byte(books_head, 0) # 1) where number = 1`,
    /payout 1: head/,
  ],
  [`update payouts set number = 7 where number = 2`, /payout 7: the one before/],
  [`delete from payouts where number = 1`, /payout 2: the one before/],
  [`update payouts set final_height = 152 where number = 2`, /payout 2: what transaction|payment/],
];
for (const [edit, names] of EDITS)
  test(`noticed: ${edit.slice(0, 120)}`, async () => {
    await books.sql
      .begin(async (tx) => {
        for (const table of ['slices', 'credit_lists', 'blocks', 'payouts', 'payout_items', 'accounts'])
          await tx.unsafe(`alter table ${table} disable trigger user`);
        await tx.unsafe('alter table payout_items drop constraint payout_items_payout_id_fkey');
        await tx.unsafe(edit);
        const { findings } = await auditOf(tx as unknown as Sql);
        const named = findings.map(({ what }) => what).filter((what) => names.test(what));
        expect(named, JSON.stringify(findings.slice(0, 5))).not.toEqual([]);
        throw new Error('undo');
      })
      .catch((error: Error) => expect(error.message).toBe('undo'));
  });

test('history told anew, consistently in every document, is contradicted by the payouts alone', async () => {
  // Another factor of W for solo, from the first slice on: nothing is divided by it, and every record is made to fit.
  const retold = (records: readonly SliceRecord[]): SliceRecord[] => {
    const totals: bigint[] = [];
    let previous = FIRST_CHAIN;
    return [...records]
      .reverse()
      .map((record) => {
        const target = targetFromBytes(fromHex(record.target));
        const body = { ...record, window_thousandths: 77_000, previous };
        const joined = { ...body, window_work: String(windowWork(target, 77_000n, totals)) };
        totals.unshift(BigInt(record.total_work));
        previous = sliceChain(joined);
        return { ...joined, chain: previous };
      })
      .reverse();
  };
  const { slices } = (await publishedPool(books.sql)('slices/solo?limit=200')) as { slices: SliceRecord[] };
  const told = new Map(retold(slices).map((record) => [record.slice, record]));
  const report = await auditOf(books.sql, (path, answer) => {
    if (path === 'terms') {
      const terms = answer as PublishedTerms;
      const solo = terms.terms.solo.map((each) => ({ ...each, window_thousandths: 77_000 }));
      return { ...terms, terms: { ...terms.terms, solo } };
    }
    if (!path.startsWith('slices/solo?')) return answer;
    const page = answer as { slices: SliceRecord[] };
    return { ...page, slices: page.slices.map((record) => told.get(record.slice)) };
  });
  expect(report.findings.length).toBeGreaterThan(0);
  for (const { computed } of report.findings) expect(computed).toBe('false: commitment');
});

/** The ledger with one more transaction, in cut 160: it spends what the last payout left at the pool's address, and pays these. */
async function spending(
  outputs: readonly { address: string; amount: bigint }[],
  payload_hex = '',
): Promise<LedgerReads> {
  const transaction_id = 'ab'.repeat(48);
  const reads = ledger as Pick<LedgerReads, 'addressChanges' | 'cutTransactions'>;
  const { changes } = await reads.addressChanges({ addresses: [POOL], after_height: 0 });
  const last = changes.at(-1) as (typeof changes)[number];
  const rest = BigInt(last.amount) - outputs.reduce((sum, { amount }) => sum + amount, 0n) - 1_000n;
  const all = [...outputs, { address: POOL, amount: rest }].map(({ address, amount }) => ({
    address,
    amount: String(amount),
  }));
  const made = all.map(({ address, amount }, output_index) => ({
    finalized_height: 160,
    address,
    kind: 'received',
    source: 'regular',
    amount,
    transaction_id,
    outpoint: { transaction_id, output_index },
  }));
  const spent = { ...last, finalized_height: 160, kind: 'spent', transaction_id };
  const document = { transaction_id, outcome: 'finalized', fee: '1000', payload_hex, inputs: [], outputs: all };
  return {
    ...ledger,
    addressChanges: async (asked: Parameters<LedgerReads['addressChanges']>[0]) => {
      const page = await reads.addressChanges(asked);
      const own = [spent, ...made].filter(({ address }) => asked.addresses.includes(address));
      return {
        ...page,
        changes: [...page.changes, ...own.filter((each) => each.finalized_height > asked.after_height)],
      };
    },
    cutTransactions: async (asked: Parameters<LedgerReads['cutTransactions']>[0]) => {
      const page = await reads.cutTransactions(asked);
      return asked.height === 160 ? { ...page, transactions: [...page.transactions, document] } : page;
    },
  } as unknown as LedgerReads;
}
/** The ledger with so many merges in cut 149, before the payouts: each spends 7 atoms at the pool's address, and they return there. */
function merging(count: number): LedgerReads {
  const reads = ledger as Pick<LedgerReads, 'addressChanges' | 'cutTransactions'>;
  const names = Array.from({ length: count }, (_, i) => i.toString(16).padStart(96, '0'));
  const change = (transaction_id: string, kind: 'spent' | 'received') => ({
    finalized_height: 149,
    address: POOL,
    kind,
    source: 'regular',
    amount: '7',
    transaction_id,
    outpoint: { transaction_id, output_index: 0 },
  });
  const changes = names.flatMap((name) => [change(name, 'spent'), change(name, 'received')]);
  const outputs = [{ address: POOL, amount: '7' }];
  const documents = names.map((transaction_id) => ({
    transaction_id,
    outcome: 'finalized',
    fee: '0',
    payload_hex: '',
    inputs: [],
    outputs,
  }));
  return {
    ...ledger,
    addressChanges: async (asked: Parameters<LedgerReads['addressChanges']>[0]) => {
      const page = await reads.addressChanges(asked);
      const own = asked.addresses.includes(POOL) && asked.after_height < 149 ? changes : [];
      return { ...page, changes: [...own, ...page.changes].sort((a, b) => a.finalized_height - b.finalized_height) };
    },
    cutTransactions: async (asked: Parameters<LedgerReads['cutTransactions']>[0]) =>
      asked.height === 149 ? { transactions: documents } : reads.cutTransactions(asked),
  } as unknown as LedgerReads;
}
const auditAgainst = (node: LedgerReads) => auditPublic({ pool: publishedPool(books.sql), node: node as never });

test('a pool that pays itself out of change is found, whatever address it pays and whatever the transaction carries', async () => {
  const { money } = await auditOf(books.sql);
  const earned = BigInt(money?.allowed ?? 0);
  const [miner] = await books.sql<{ address: string }[]>`select address from accounts order by id limit 1`;
  for (const [address, payload] of [
    [thief, ''],
    [miner?.address as string, '00ff'],
  ] as const) {
    const report = await auditAgainst(await spending([{ address, amount: earned }], payload));
    expect(report).toMatchObject({ verdict: 'false', money: { withdrawn: String(earned) } });
    expect(report.findings).toEqual([
      expect.objectContaining({ what: expect.stringContaining(`transaction ${'ab'.repeat(48)} of cut 160`) }),
    ]);
    expect(report.findings[0]?.computed).toContain(address);
  }
});

test('what a pool earned it may take; a merge takes nothing; network fees beyond its own are reported', async () => {
  const { money } = await auditOf(books.sql);
  const earned = BigInt(money?.allowed ?? 0);
  const taken = earned - BigInt(money?.network_fees ?? 0) - 1_000n;
  const own = await auditAgainst(await spending([{ address: thief, amount: taken }]));
  expect(own).toMatchObject({ verdict: 'holds', money: { withdrawn: String(taken) } });
  expect(publicReportText(own)).toContain(`The pool took ${taken} atoms for itself in 1 transaction`);
  const over = await auditAgainst(await spending([{ address: thief, amount: taken + 1n }]));
  expect(over.verdict).toBe('false');
  const merged = await auditAgainst(await spending([]));
  expect(merged).toMatchObject({ verdict: 'holds', money: { withdrawals: [], network_fees: '3000' } });
});

test('however many merges stand before the payouts, lists are proven by all payouts of the ledger, and a head among them that is false is found', async () => {
  const holds = await auditAgainst(merging(70));
  expect(holds.findings).toEqual([]);
  expect(holds).toMatchObject({
    verdict: 'holds',
    lists: { proven: 5, unchecked: 5, false: 0 },
    missing: { solo_finder: 5 },
  });
  expect(publicReportText(holds)).not.toMatch(/Not checked.*payouts/);
  const node = merging(70);
  const lying = {
    ...node,
    cutTransactions: async (asked: Parameters<LedgerReads['cutTransactions']>[0]) => {
      const page = await node.cutTransactions(asked);
      const wrong = page.transactions.map((each) => ({
        ...each,
        payload_hex: each.payload_hex?.replace(/..$/, '30') ?? '',
      }));
      return asked.height === 150 ? { ...page, transactions: wrong } : page;
    },
  } as LedgerReads;
  const lie = await auditAgainst(lying);
  expect(lie.verdict).toBe('false');
  expect(lie.lists).toMatchObject({ proven: 0 });
});

test('a node that lacks something is no proof against the pool', async () => {
  const lacking = { ...ledger, cutTransactions: async () => Promise.reject(new ApiError('pruned', 410, 'pruned')) };
  const report = await auditAgainst(lacking as never);
  expect(report).toMatchObject({ verdict: 'unchecked', differences: 0 });
  expect(report.not_checked.join()).toContain('pruned');
});

const refusal = () => new ApiError('cut_pruned', 410, 'deleted');

/** A node that has deleted the transactions of these cuts. Its index of addresses stays. */
const pruned = (heights: readonly number[], node: LedgerReads = ledger): LedgerReads => ({
  ...node,
  cutTransactions: async (asked) => {
    if (heights.includes(asked.height)) throw refusal();
    return node.cutTransactions(asked);
  },
});
const publishing = (node: LedgerReads, liar?: (path: string, answer: unknown) => unknown) =>
  auditPublic({ pool: publishedPool(books.sql, liar), node: node as never });
type Rows = { commitments: Record<string, unknown>[]; payments: Record<string, unknown>[] };

test('a cut that the node deleted: its rows alone are not checked, with their number and why', async () => {
  const honest = await publishing(pruned([150]));
  expect(honest).toMatchObject({ verdict: 'unchecked', differences: 0, money: { withdrawn: '0' } });
  expect(honest.not_checked).toEqual([
    '1 payouts (what they carry), the first payout 1: cut_pruned: deleted',
    expect.stringMatching(/^2 payments, the first payment of \d+ atoms to \S+ \(payout \S+1\): cut_pruned: deleted$/),
    expect.stringMatching(/^1 spends of the pool’s address \(whom they paid\), the first transaction \S+ of cut 150: /),
  ]);
  // The rows after it are judged.
  const lied = await publishing(pruned([150]), (path, answer) => {
    if (path.startsWith('payments'))
      for (const row of (answer as Rows).payments)
        if (row.final_height === 151) row.amount = String(BigInt(row.amount as string) - 1n);
    return answer;
  });
  expect(lied.verdict).toBe('false');
  expect(lied.findings.map(({ what }) => what).join()).toContain('payment of');
});

test('a pool cannot hide a payment that it did not make, nor what it took, in a cut that the node deleted', async () => {
  const moved = await publishing(pruned([150, 152]), (_path, answer) => {
    const rows = (answer as Partial<Rows>).payments ?? (answer as Partial<Rows>).commitments ?? [];
    for (const row of rows) if (row.final_height === 151) row.final_height = 152;
    return answer;
  });
  expect(moved.verdict).toBe('false');
  for (const what of [/^payout 2$/, /^payment of/])
    expect(moved.findings).toContainEqual(
      expect.objectContaining({
        what: expect.stringMatching(what),
        computed: 'nothing of the pool was spent by it',
      }),
    );
  const { money } = await auditOf(books.sql);
  const theft = await spending([{ address: thief, amount: BigInt(money?.allowed ?? 0) }]);
  expect((await publishing(pruned([160], theft))).verdict).toBe('false');
  const merge = await publishing(pruned([160], await spending([])));
  expect(merge).toMatchObject({ verdict: 'unchecked', differences: 0 });
});

test('a node without the early history of the address: what it has of payouts and payments is compared', async () => {
  const young: LedgerReads = {
    ...ledger,
    addressChanges: async (asked) => {
      if (asked.after_height < 150) throw refusal();
      return ledger.addressChanges(asked);
    },
    cuts: (async ({ before = 201 }: { before?: number }) =>
      ledger.cuts({ before, limit: 1 })) as unknown as LedgerReads['cuts'],
  };
  const honest = await publishing(pruned([150], young));
  expect(honest).toMatchObject({ verdict: 'unchecked', differences: 0, money: null });
  expect(honest.not_checked).toContainEqual(expect.stringMatching(/^2 payments, the first /));
  const lied = await publishing(pruned([150], young), (path, answer) => {
    if (path.startsWith('commitments'))
      for (const row of (answer as Rows).commitments) if (row.number === 2) row.head = '00'.repeat(48);
    return answer;
  });
  expect(lied.findings).toEqual([expect.objectContaining({ what: 'payout 2: head' })]);
});

/** One audit for each kind of request, in which the last of that kind is lost. */
async function eachLost(
  run: (lost: (name: string) => void) => Promise<{ readonly verdict: string; readonly findings: readonly unknown[] }>,
) {
  const counts = new Map<string, number>();
  const kindOf = (name: string) => name.replaceAll(/\d+/g, 'N');
  await run((name) => counts.set(kindOf(name), (counts.get(kindOf(name)) ?? 0) + 1));
  for (const [kind, last] of counts) {
    let count = 0;
    const { verdict, findings } = await run((name) => {
      if (kindOf(name) === kind && ++count === last) throw new PoolSilence(`${kind} is lost`);
    });
    expect([kind, verdict === 'false', findings]).toEqual([kind, false, []]);
  }
  return [...counts.keys()];
}

test('one lost answer of an honest pool, whichever it is: what rests on it is not checked, and nothing is false', async () => {
  const kinds = await eachLost((lost) =>
    auditOf(books.sql, (path, answer) => {
      if (path !== 'terms') lost(path.split('?')[0] as string);
      return answer;
    }),
  );
  expect(kinds).toContain('payments');
  expect(kinds).toContain('proofs/solo/N/list');
});

test('one lost answer of the node, whichever it is: nothing is false', async () => {
  const kinds = await eachLost((lost) => {
    const calls = Object.entries(ledger).map(([name, call]) => [
      name,
      async (asked: never) => {
        lost(name);
        return (call as (asked: never) => Promise<unknown>)(asked);
      },
    ]);
    return auditAgainst(Object.fromEntries(calls) as never);
  });
  expect(kinds).toContain('addressChanges');
});
