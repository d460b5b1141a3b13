/** A pool that credits and never pays is a suspicion after a day. Honest pools in odd states are not: paused, slow to pay, with a node that is behind, a miner that was away, a threshold that is the account's wish. */
import { expect, test } from 'vitest';
import { PaymentWatch } from '../../miner/books/payments.ts';
import { poolOptions } from '../../pool/options.ts';
import type { UnpaidEvidence } from '../../protocol/evidence/unpaid-evidence.ts';

const HOUR = 3_600_000;
const ADDRESS = 'dminer';
const PAYER = 'dpool';
const MINIMUM = 100n;

type Payment = {
  payout_id: string;
  state: string;
  address: string;
  amount: string;
  transaction_id: string | null;
  final_height: number | null;
};

/** A pool that credits 30 atoms an hour in one list each, and a node that shows the outputs of its payments. */
class Pool {
  now = 1_800_000_000_000;
  /** By how much the clock of the miner's machine is ahead. */
  clock = 0;
  earlier: { amount: string; until_millis: number }[] = [];
  slice = 0;
  /** The newest closed slice when the miner begins. */
  closed = 0;
  balance = 0n;
  isPaused = false;
  minimum = MINIMUM;
  advanced: bigint | undefined;
  lapse: string | undefined;
  isSilent = false;
  /** Its database fell back: it lists none of its payments. */
  listsNone = false;
  intervalHours = 1;
  /** The first cut and the newest one that the node has. */
  historyFrom = 0;
  height: number | undefined;
  payments: Payment[] = [];
  /** Transactions that the ledger has. */
  readonly ledger = new Set<string>();
  readonly alarms: { what: string; owed: unknown; evidence: UnpaidEvidence }[] = [];
  readonly node: boolean;
  watch: PaymentWatch;

  constructor({ node = true, threshold }: { node?: boolean; threshold?: bigint } = {}) {
    this.node = node;
    this.watch = this.make(threshold);
  }

  make(threshold?: bigint): PaymentWatch {
    const addressChanges = async ({
      after_height: after,
      addresses,
    }: {
      after_height: number;
      addresses: string[];
    }) => ({
      indexed_height: 1_000_000,
      changes: this.payments
        .filter((each) => each.final_height !== null && each.final_height > after)
        .filter(({ transaction_id: id }) => id !== null && this.ledger.has(id))
        .filter((each) => addresses[0] === ADDRESS || !each.transaction_id?.startsWith('own'))
        .map((each) => ({
          kind: addresses[0] === ADDRESS ? 'received' : 'spent',
          finalized_height: each.final_height,
          transaction_id: each.transaction_id,
          amount: each.amount,
        })),
    });
    const answered: typeof addressChanges = (asked) => {
      const isThere = asked.after_height >= 0 && asked.after_height + 1 >= this.historyFrom;
      return isThere ? addressChanges(asked) : Promise.reject(new Error('cut_pruned'));
    };
    return new PaymentWatch(ADDRESS, threshold, {
      pool: async (path) => {
        if (this.isSilent) throw new Error('status 503');
        if (path === 'pool')
          return { payouts: { minimum: '1', interval_seconds: this.intervalHours * 3_600, paused: this.isPaused } };
        if (path === `miners/${ADDRESS}`)
          return {
            payout_minimum: String(this.minimum),
            payout_minimums: this.earlier,
            ...(this.advanced && { advanced: String(this.advanced) }),
          };
        const [, cursor] = /&cursor=(\d+)$/.exec(path) ?? [];
        const newest = this.listsNone ? [] : [...this.payments].reverse();
        const from = Number(cursor ?? 0);
        const rows = newest.slice(from, from + 200);
        return { payments: rows, ...(from + 200 < newest.length ? { next_cursor: String(from + 200) } : {}) };
      },
      node: this.node
        ? ({
            addressChanges: answered,
            cuts: async () => ({ cuts: [{ height: 1_000_000, finalized_at_millis: this.now }] }),
          } as never)
        : null,
      alarm: (_, what, { owed }, evidence) =>
        void this.alarms.push({ what, owed, evidence: evidence as UnpaidEvidence }),
      wallMillis: () => this.now + this.clock,
      nowMillis: () => this.now - 1_800_000_000_000,
    });
  }

  credit(atoms = 30n): void {
    this.balance += atoms;
    this.watch.known.credited('pplns', ++this.slice, atoms);
  }

  pay(state = 'finalized', isOnLedger = true): void {
    const number = this.payments.length + 1;
    const [transaction_id, amount] = [`transaction-${number}`, String(this.balance)];
    this.payments.push({
      payout_id: `${number}`,
      state,
      address: ADDRESS,
      amount,
      transaction_id,
      final_height: number,
    });
    if (isOnLedger) this.ledger.add(transaction_id);
    this.balance = 0n;
  }

  async hours(count: number, each: () => void = () => undefined): Promise<void> {
    for (let hour = 0; hour < count; hour++) {
      this.now += HOUR;
      this.credit();
      each();
      await this.watch.round({ lapse: this.lapse, closed: this.closed, height: this.height, payer: PAYER });
    }
  }

  readonly payDue = (): void => {
    if (this.balance >= this.minimum) this.pay();
  };
}

test('a pool that never pays is a suspicion after a day, with evidence; one that calls payments final that the ledger does not have, too', async () => {
  for (const node of [true, false]) {
    const pool = new Pool({ node });
    await pool.hours(29);
    expect(pool.alarms).toEqual([]);
    await pool.hours(4);
    // 26 hours: a day and two intervals. What was credited later is not held against the pool.
    expect(pool.alarms[0]?.owed).toBe(120n);
    expect(pool.alarms[0]?.evidence).toMatchObject({ owed: '120', threshold: '100', for_hours: 26 });
    expect(pool.alarms[0]?.evidence.credits[0]).toEqual({ service: 'pplns', slice: 1, amount: '30' });
  }
  const inventing = new Pool();
  await inventing.hours(1);
  await inventing.hours(40, () => inventing.balance >= MINIMUM && inventing.pay('finalized', false));
  expect(inventing.alarms.length).toBeGreaterThan(0);
  const never = new Pool();
  await never.hours(40, () => never.balance >= MINIMUM && never.pay('submitted', false));
  expect(never.alarms.length).toBeGreaterThan(0);
  // A restart of the miner every hour does not begin the time anew.
  const restarted = new Pool();
  await restarted.hours(40, () => {
    const saved = JSON.parse(JSON.stringify(restarted.watch.known.save()));
    restarted.watch = restarted.make();
    restarted.watch.known.restore(saved);
  });
  expect(restarted.alarms.length).toBeGreaterThan(0);
});

test('honest pools are not accused: paying, below the threshold, late by a day, with a payment from before the first look', async () => {
  const paying = new Pool();
  await paying.hours(200, paying.payDue);
  expect([paying.alarms, paying.watch.lapse]).toEqual([[], undefined]);
  const small = new Pool();
  small.minimum = 10_000n;
  await small.hours(200);
  expect(small.alarms).toEqual([]);
  // The wallet fails for 24 hours, again and again.
  const late = new Pool();
  let hour = 0;
  await late.hours(200, () => ++hour % 24 === 0 && late.pay());
  expect(late.alarms).toEqual([]);
  // More payments before the first look than are read, and more after it than a page holds.
  const old = new Pool();
  for (let i = 0; i < 5_000; i++) old.pay();
  await old.hours(1);
  for (let i = 0; i < 500; i++) old.pay();
  await old.hours(100, old.payDue);
  expect([old.alarms, old.watch.lapse]).toEqual([[], undefined]);
});

test('a pool that fell and cannot ask its wallet omits payments that the ledger has, which is told and is no accusation', async () => {
  const fallen = new Pool();
  await fallen.hours(2);
  fallen.listsNone = true;
  await fallen.hours(60, fallen.payDue);
  expect([fallen.alarms, fallen.watch.lapse]).toEqual([
    [],
    expect.stringMatching(/^the ledger shows payments of \d+ atoms that the pool does not list/),
  ]);
  fallen.listsNone = false;
  await fallen.hours(10, fallen.payDue);
  expect([fallen.alarms, fallen.watch.lapse]).toEqual([[], undefined]);
  // Without a node nobody sees them, and one payment on the ledger covers no more than its amount.
  const blind = new Pool({ node: false });
  blind.listsNone = true;
  await blind.hours(60, blind.payDue);
  const ended = new Pool();
  ended.listsNone = true;
  await ended.hours(5, ended.payDue);
  await ended.hours(60);
  for (const { alarms } of [blind, ended]) expect(alarms.length).toBeGreaterThan(0);
});

test('payouts that are paused, and a node that is behind: cannot be checked, and no accusation for a day after it', async () => {
  const paused = new Pool();
  await paused.hours(1);
  paused.isPaused = true;
  await paused.hours(100);
  expect([paused.alarms, paused.watch.lapse]).toEqual([[], 'the pool says that its payouts are paused']);
  paused.isPaused = false;
  await paused.hours(20);
  paused.pay();
  await paused.hours(100, paused.payDue);
  expect([paused.alarms, paused.watch.lapse]).toEqual([[], undefined]);
  const behind = new Pool();
  await behind.hours(10, behind.payDue);
  behind.lapse = 'this miner’s node is behind';
  await behind.hours(60, behind.payDue);
  expect([behind.alarms, behind.watch.lapse]).toEqual([[], 'this miner’s node is behind']);
  behind.lapse = undefined;
  await behind.hours(60, behind.payDue);
  expect(behind.alarms).toEqual([]);
  // The pool is away for three days, and pays when it is back.
  const away = new Pool();
  await away.hours(10, away.payDue);
  away.isSilent = true;
  away.now += 72 * HOUR;
  await away.hours(1);
  expect([away.alarms, away.watch.lapse]).toEqual([[], 'status 503']);
  away.isSilent = false;
  await away.hours(20);
  away.pay();
  await away.hours(40, away.payDue);
  expect(away.alarms).toEqual([]);
});

test('a miner that was away for two days, whose other rigs earned meanwhile', async () => {
  const pool = new Pool();
  await pool.hours(30, pool.payDue);
  pool.credit(500n);
  const saved = JSON.parse(JSON.stringify(pool.watch.known.save()));
  pool.now += HOUR;
  pool.pay();
  pool.now += 47 * HOUR;
  pool.watch = pool.make();
  pool.watch.known.restore(saved);
  // All lists of that time are judged at once; the pool pays every few hours.
  for (let i = 0; i < 48; i++) pool.credit();
  await pool.hours(1);
  pool.pay();
  await pool.hours(40, pool.payDue);
  expect(pool.alarms).toEqual([]);
});

test('a clock that goes back and forth makes no time pass, and a restart with a wrong one takes no threshold away', async () => {
  const unpaid = new Pool();
  // The pool pays 25 hours late: within the day and two intervals that it has.
  let hour = 0;
  await unpaid.hours(100, () => {
    unpaid.clock = ++hour % 2 === 0 ? HOUR : -HOUR;
    if (hour % 25 === 0) unpaid.pay();
  });
  expect(unpaid.alarms).toEqual([]);
  const restarted = new Pool();
  restarted.minimum = 100n;
  await restarted.hours(30, () => {
    const saved = JSON.parse(JSON.stringify(restarted.watch.known.save()));
    restarted.clock = -restarted.clock || 2 * HOUR;
    restarted.watch = restarted.make();
    restarted.watch.known.restore(saved);
  });
  // It still counts: the clock was ahead in every second start.
  await restarted.hours(30);
  expect(restarted.alarms.length).toBeGreaterThan(0);
  // While the miner was off the account raised its threshold and lowered it again; its clock is two days ahead since.
  const lowered = new Pool();
  await lowered.hours(24);
  const saved = JSON.parse(JSON.stringify(lowered.watch.known.save()));
  lowered.now += HOUR;
  lowered.earlier = [{ amount: '100000', until_millis: lowered.now }];
  lowered.clock = 48 * HOUR;
  lowered.watch = lowered.make();
  lowered.watch.known.restore(saved);
  await lowered.hours(20);
  lowered.pay();
  await lowered.hours(30, lowered.payDue);
  expect(lowered.alarms).toEqual([]);
});

test('a threshold that the pool raises is reported; the user’s own word decides', async () => {
  const raising = new Pool();
  await raising.hours(2);
  raising.minimum = 1_000_000n;
  await raising.hours(60);
  expect([raising.alarms, raising.watch.lapse]).toEqual([
    [],
    'the pool pays this address from 1000000 atoms on, 100 before',
  ]);
  const told = new Pool({ threshold: 100n });
  await told.hours(2);
  told.minimum = 1_000_000n;
  await told.hours(60);
  expect(told.alarms.length).toBeGreaterThan(0);
});

test('a threshold that was too high from the first look on is reported after a week, and accuses nobody', async () => {
  const high = new Pool();
  high.minimum = 1_000_000n;
  await high.hours(7 * 24);
  expect([high.alarms, high.watch.lapse]).toEqual([[], undefined]);
  await high.hours(1);
  expect([high.alarms, high.watch.lapse]).toEqual([
    [],
    '30 atoms are not paid after 7 days, and the pool says that it pays this address from 1000000 on',
  ]);
  // It is over with the payment.
  high.pay();
  await high.hours(1);
  expect([high.alarms, high.watch.lapse]).toEqual([[], undefined]);
  const named = new Pool({ threshold: 1_000_000n });
  named.minimum = 1_000_000n;
  await named.hours(9 * 24);
  expect([named.alarms, named.watch.lapse]).toEqual([[], undefined]);
});

test('a list counts once, and a state that cannot be read accuses nobody', async () => {
  const pool = new Pool();
  await pool.hours(2);
  for (let i = 0; i < 50; i++) pool.watch.known.credited('pplns', 1, 30n);
  await pool.hours(1, () => void pool.pay());
  await pool.hours(27, pool.payDue);
  expect(pool.alarms).toEqual([]);
  for (const broken of [null, 5, { credits: [['x', '1', 1]] }, { credits: [['pplns/1', '99999', 1]], payments: 3 }])
    pool.watch.known.restore(broken);
  await pool.hours(30, pool.payDue);
  expect(pool.alarms).toEqual([]);
});

test('honest pools are not accused: lists that were paid before the first look, and an account that lowers its threshold', async () => {
  const before = new Pool();
  before.credit(500n);
  before.pay();
  [before.closed, before.slice] = [5, 5];
  await before.hours(60, before.payDue);
  expect([before.alarms, before.watch.lapse]).toEqual([[], undefined]);
  const lowering = new Pool();
  lowering.minimum = 100_000n;
  await lowering.hours(60);
  lowering.minimum = 100n;
  // The pool pays with its next interval.
  await lowering.hours(1);
  await lowering.hours(60, lowering.payDue);
  expect([lowering.alarms, lowering.watch.lapse]).toEqual([[], undefined]);
});

test('a pool that never pays cannot put it off: a pause or a higher threshold now and then, a miner of some hours a day', async () => {
  const pausing = new Pool();
  let hour = 0;
  await pausing.hours(60, () => {
    pausing.isPaused = ++hour % 5 === 0;
  });
  expect(pausing.alarms.length).toBeGreaterThan(0);
  const raising = new Pool();
  let lapses = 0;
  await raising.hours(60, () => {
    if (raising.watch.lapse !== undefined) lapses++;
    raising.minimum = ++hour % 5 === 0 ? 1_000_000n : 100n;
  });
  // No accusation, but the user hears of it all the time.
  expect([raising.alarms, lapses > 50]).toEqual([[], true]);
  const sometimes = new Pool();
  await sometimes.hours(60, () => {
    if (++hour % 8 === 0) sometimes.now += 16 * HOUR;
  });
  expect(sometimes.alarms.length).toBeGreaterThan(0);
});

test('one transaction counts once, whatever ids the pool lists it under, and only what the pool itself paid', async () => {
  for (const node of [true, false]) {
    const again = new Pool({ node });
    await again.hours(10);
    again.pay();
    await again.hours(60, () => {
      const [first] = again.payments;
      again.payments.push({ ...(first as Payment), payout_id: `again ${again.now}` });
    });
    expect(again.alarms.length).toBeGreaterThan(0);
  }
  const others = new Pool();
  await others.hours(60, () => {
    others.pay();
    const own = others.payments.at(-1) as Payment;
    own.transaction_id = `own-${own.transaction_id}`;
    others.ledger.add(own.transaction_id);
  });
  expect(others.alarms.length).toBeGreaterThan(0);
});

test('a height at the first look that no pool can have is told of, and payments of before the node’s history are not asked for', async () => {
  const ahead = new Pool({ node: false });
  ahead.closed = 1_000_000;
  await ahead.hours(1);
  ahead.closed = 3;
  await ahead.hours(40);
  expect(ahead.watch.lapse).toMatch(/behind what they were/);
  // The node began with a snapshot, and the pool names payments of before it, or of no cut at all.
  for (const height of [0, 5]) {
    const pool = new Pool();
    pool.historyFrom = 500;
    pool.height = 600;
    await pool.hours(1);
    pool.pay('finalized', false);
    (pool.payments[0] as { final_height: number }).final_height = height;
    await pool.hours(40);
    expect([pool.alarms.length > 0, pool.watch.lapse]).toEqual([true, undefined]);
  }
});

test('a pool with the longest interval that its options allow is not accused when it pays more often from now on', async () => {
  const read = (word: string) => poolOptions.payoutInterval.read([word], '--payout-interval');
  expect(() => read('25h')).toThrow('at most 1d');
  const accusedAfter = async (hours: number): Promise<boolean> => {
    const pool = new Pool();
    pool.intervalHours = hours;
    for (let round = 0; round < 2; round++) {
      await pool.hours(hours - 1);
      await pool.hours(1, pool.payDue);
    }
    await pool.hours(hours - 1);
    // The next look comes before the payment that the restart made is final.
    pool.intervalHours = 1;
    await pool.hours(1);
    await pool.hours(1, pool.payDue);
    return pool.alarms.length > 0;
  };
  expect(await accusedAfter(read('1d') / HOUR)).toBe(false);
  expect(await accusedAfter(48)).toBe(true);
});

test('a pool that keeps what it once paid too much is not accused, and one that only says so is reported after a week', async () => {
  for (const threshold of [undefined, MINIMUM]) {
    const honest = new Pool(threshold === undefined ? {} : { threshold });
    honest.balance = 5_000n;
    honest.pay();
    honest.balance = -5_000n;
    honest.advanced = 5_000n;
    await honest.hours(300, honest.payDue);
    expect(honest.payments.length).toBeGreaterThan(1);
    expect(honest.alarms).toEqual([]);
    const lying = new Pool(threshold === undefined ? {} : { threshold });
    lying.balance = 1_000_000n;
    lying.pay();
    lying.advanced = 1_000_000n;
    await lying.hours(9 * 24);
    expect([lying.alarms, lying.watch.lapse]).toEqual([
      [],
      expect.stringContaining(
        'pays this address from 100 on, and that it once paid it 1000000 more than it had credited',
      ),
    ]);
  }
});

test('a pool that loses paid income twice, and names both together, is not accused', async () => {
  const accused = async (advanced: bigint): Promise<boolean> => {
    const pool = new Pool();
    for (const sum of [1_000n, advanced]) {
      await pool.hours(50, pool.payDue);
      pool.balance -= 1_000n;
      pool.advanced = sum;
      await pool.hours(150, pool.payDue);
    }
    return pool.alarms.length > 0;
  };
  expect([await accused(2_000n), await accused(1_000n)]).toEqual([false, true]);
});

test('a pool that names an advance above all that it ever paid is accused as if it named none above that', async () => {
  const pool = new Pool();
  pool.balance = 500n;
  pool.pay();
  // Listed again under another id, it is still one payment.
  pool.payments.push({ ...(pool.payments[0] as Payment), payout_id: 'again' });
  // Nor is one that never becomes final, which nobody can look for on the ledger.
  for (const id of [null, 'fe'.repeat(48)])
    pool.payments.push({
      ...(pool.payments[0] as Payment),
      payout_id: `promised ${id}`,
      state: 'submitted',
      amount: String(10n ** 12n),
      transaction_id: id,
      final_height: null,
    });
  pool.advanced = 10n ** 12n;
  // It credits 30 an hour and pays from 100 on; what it lists covers 500 more.
  await pool.hours(45);
  expect(pool.alarms).toEqual([]);
  await pool.hours(6);
  expect(pool.alarms.length).toBeGreaterThan(0);
});
