/** Addresses that rigs of a proxy named themselves: each has a session at the pool, and there is a bound of them. */
import { expect, test } from 'vitest';
import { FarmPlaces } from '../../bridge/farms/farm-places.ts';
import { MOST_PARTS } from '../../bridge/nodes/origin-job.ts';
import type { PoolJob } from '../../miner/client/session-events.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { MAX_RIGS } from '../../protocol/stratum/farm.ts';
import { KEPT_RIGS, KeptAddresses } from '../../proxy/kept-addresses.ts';
import type { PoolLink } from '../../proxy/pool-link.ts';
import { accountOf, addressOf } from '../bridge/stratum-client.ts';

const MINUTE = 60_000;
const jobAt = (address: string, hasFarm = true) =>
  ({ pool: { address, name: '' }, ...(hasFarm ? { farm: {} } : {}) }) as unknown as PoolJob;

function bed(current: PoolJob | undefined = jobAt('pool-1')) {
  const open: { account: string; pool: number; give: (job: PoolJob | undefined) => void }[] = [];
  const served = new Map<number, string>();
  const warned: string[] = [];
  const clock = { now: 0 };
  const jobs = {
    current,
    set: (job: PoolJob | undefined, part?: { draw: number; account: string }) => {
      if (job === undefined) served.delete(part!.draw);
      else served.set(part!.draw, part!.account);
    },
  };
  const kept = new KeptAddresses({
    own: { address: addressOf(77), account: accountOf(77) },
    jobs,
    now: () => clock.now,
    warn: (message) => warned.push(message),
    open: (account: Bytes, pool, give) => {
      const entry = { account: toHex(account), pool, give };
      open.push(entry);
      const stop = (): void => void open.splice(open.indexOf(entry), 1);
      return {
        client: { start: () => undefined },
        stop,
        tick: () => undefined,
      } as unknown as PoolLink;
    },
  });
  kept.follow(current, 0);
  return { kept, open, served, warned, clock, jobs };
}

test('an address has one session however many of its rigs log in, and the address of the proxy none of these', () => {
  const { kept, open } = bed();
  for (const seed of [5, 5, 6, 77, 5]) expect(kept.admit(accountOf(seed))).toBeUndefined();
  expect(open.map(({ account, pool }) => [account, pool])).toEqual([5, 6].map((seed) => [toHex(accountOf(seed)), 0]));
});

test('at a pool there is room for the rigs of the proxy and of as many addresses as it takes', () => {
  const places = new FarmPlaces<number>();
  expect(places.take(0, 'proxy', MAX_RIGS, 0).rigs).toBe(MAX_RIGS);
  for (let taken = 1; taken < MOST_PARTS; taken++)
    expect(places.take(taken, 'proxy', KEPT_RIGS, 0).rigs).toBe(KEPT_RIGS);
});

test('with all places taken a further address is refused, until the one without a share for longest makes room', () => {
  const { kept, open, clock } = bed();
  for (let seed = 100; seed < 100 + MOST_PARTS - 1; seed++) expect(kept.admit(accountOf(seed))).toBeUndefined();
  expect(kept.admit(accountOf(99))).toMatch(/64 addresses/);
  clock.now = 3 * MINUTE;
  kept.worked(toHex(accountOf(100)));
  expect(kept.admit(accountOf(99))).toBeUndefined();
  expect(open.length).toBe(MOST_PARTS - 1);
  const accounts = open.map(({ account }) => account);
  expect(accounts).toContain(toHex(accountOf(100)));
  expect(accounts).not.toContain(toHex(accountOf(101)));
  clock.now = 12 * MINUTE;
  kept.tick();
  expect(open.map(({ account }) => account).sort()).toEqual([99, 100].map((seed) => toHex(accountOf(seed))).sort());
});

test('an address keeps its place by shares: logins cost nothing, so who only logs in gives it to others', () => {
  const { kept, open, clock } = bed();
  for (let seed = 100; seed < 100 + MOST_PARTS - 1; seed++) kept.admit(accountOf(seed));
  clock.now = 3 * MINUTE;
  for (let seed = 100; seed < 100 + MOST_PARTS - 1; seed++) kept.admit(accountOf(seed));
  kept.worked(toHex(accountOf(120)));
  for (let seed = 1; seed < MOST_PARTS - 1; seed++) expect(kept.admit(accountOf(seed))).toBeUndefined();
  expect(open.length).toBe(MOST_PARTS - 1);
  expect(open.map(({ account }) => account)).toContain(toHex(accountOf(120)));
  expect(kept.admit(accountOf(99))).toMatch(/64 addresses/);
});

test('the time in which there is no pool takes no place away', () => {
  const { kept, open, clock, jobs } = bed();
  kept.admit(accountOf(5));
  const { current } = jobs;
  Object.assign(jobs, { current: undefined });
  for (; clock.now < 20 * MINUTE; clock.now += MINUTE) kept.tick();
  Object.assign(jobs, { current });
  kept.tick();
  expect(open.length).toBe(1);
});

test('where the pool has no farm session for an address its rigs are told so, and it is asked again after a minute', () => {
  const { kept, open, served, clock } = bed();
  kept.admit(accountOf(5));
  open[0]!.give(jobAt('pool-1', false));
  expect(kept.admit(accountOf(5))).toMatch(/gives no session for this address now/);
  expect([open.length, served.size]).toEqual([0, 0]);
  clock.now = MINUTE;
  kept.tick();
  expect(kept.admit(accountOf(5))).toBeDefined();
  clock.now = 2 * MINUTE;
  kept.tick();
  expect(kept.admit(accountOf(5))).toBeUndefined();
  open[0]!.give(jobAt('pool-1'));
  expect([...served.values()]).toEqual([toHex(accountOf(5))]);
});

test('they go where the session of the proxy is, and only a farm job of the same pool address becomes work', () => {
  const { kept, open, served, warned, jobs } = bed();
  kept.admit(accountOf(5));
  open[0]!.give(jobAt('pool-1'));
  expect([...served.values()]).toEqual([toHex(accountOf(5))]);
  open[0]!.give(jobAt('pool-2'));
  expect([...served.values()]).toEqual([]);
  expect(warned.length).toBe(1);
  open[0]!.give(jobAt('pool-1'));
  jobs.current = jobAt('pool-2');
  kept.follow(jobs.current, 1);
  expect([...served.values()]).toEqual([]);
  expect(open.map(({ pool }) => pool)).toEqual([1]);
  jobs.current = jobAt('pool-3', false);
  kept.follow(jobs.current, 2);
  expect(open).toEqual([]);
  expect(kept.admit(accountOf(5))).toMatch(/the pool has no farms/);
});
