/** Every staking operation with one atom less than it costs: refused before anything is signed, with what is needed. With exactly as much it is done, and the wallet is empty. */
import { expect, test } from 'vitest';
import { formatCoins, parseCoins } from '../../../protocol/amount.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { level } from '../../level.ts';
import { anEndpoint } from '../../staking/signed.ts';
import type { TestWallet } from '../open-wallet.ts';
import { INTERVAL, ownAddress, StakingBed, validatorAt } from './staking-bed.ts';

type Fields = Record<string, unknown>;
/** What earlier operations of the wallet gave, by method. */
type Made = Readonly<Record<string, Fields>>;
type Wish = (made: Made) => Fields;

const LAST_INDEX = 2_147_483_647;
const HEX = toHex(anEndpoint(3));
const validatorOf = (made: Made) => ({ validator: made.validator_register?.validator });
const WISHES: Readonly<Record<string, Wish>> = {
  validator_register: () => ({ amount: '100000', overlay_endpoint_hex: HEX }),
  validator_heartbeat: validatorOf,
  validator_commission: (made) => ({ ...validatorOf(made), commission_bps: 300 }),
  validator_endpoint: (made) => ({
    ...validatorOf(made),
    consensus_key_index: LAST_INDEX,
    overlay_endpoint_hex: toHex(anEndpoint(4)),
  }),
  validator_rotate: (made) => ({
    ...validatorOf(made),
    consensus_key_index: LAST_INDEX - 1,
    overlay_endpoint_hex: HEX,
  }),
  validator_exit: validatorOf,
  reward_address: (made) => ({ position: made.validator_register?.position, to: ownAddress('cold') }),
  stake: () => ({ validator: validatorAt(0), amount: '100' }),
  unstake: (made) => ({ position: made.stake?.position }),
  withdraw: (made) => ({ position: made.unstake?.unbonding_position }),
};
/** All are refused by the same rule: at the usual level the largest, a delegation, and what pays from what it withdraws. */
const ROWS = level === 'deep' ? Object.keys(WISHES) : ['validator_register', 'stake', 'withdraw'];
/** What an operation follows. */
const before = (method: string): string[] => {
  if (method === 'validator_register' || method === 'stake') return [];
  if (method === 'unstake') return ['stake'];
  return method === 'withdraw' ? ['stake', 'unstake'] : ['validator_register'];
};
/** A chain each: where validators of these wallets have a seat nobody signs for them, so no second epoch comes. */
const GROUPS = [ROWS.filter((method) => method !== 'withdraw'), ['withdraw']];
const atomsOf = (needed: unknown): bigint => parseCoins(needed as string);

/** Each wallet's operations up to the last one of its way, which is left to the test; all of a step share its cut. */
async function lead(bed: StakingBed, wallets: ReadonlyMap<string, { wallet: TestWallet; way: readonly string[] }>) {
  const made = new Map<string, Record<string, Fields>>([...wallets.keys()].map((name) => [name, {}]));
  for (const step of [0, 1]) {
    for (const [name, { wallet, way }] of wallets) {
      const method = way[step];
      if (method === undefined || step === way.length - 1) continue;
      await wallet.turn();
      const known = made.get(name) as Record<string, Fields>;
      known[method] = await wallet.call(method, { ...WISHES[method]?.(known), request_id: method });
    }
    await bed.beat();
  }
  // Registration counts as the heartbeat of its own epoch.
  await bed.sealToEpoch(1);
  for (const { wallet } of wallets.values()) await wallet.turn();
  return made;
}

/** What was unstaked can be withdrawn. It was staked and unstaked in one epoch, and has no rewards. */
async function ripen(bed: StakingBed, method: string, ...wallets: TestWallet[]): Promise<void> {
  if (method !== 'withdraw') return;
  await bed.sealTo(bed.height + 10 * INTERVAL + 1);
  for (const wallet of wallets) await wallet.turn();
}

/** Costs of the operations, as refusals tell them to wallets with one atom left, and of those before them. */
async function costs(): Promise<Map<string, bigint>> {
  const known = new Map<string, bigint>();
  // What comes first is learned first.
  for (const round of [ROWS.filter((method) => before(method).length === 0), ['unstake'], ...GROUPS]) {
    const open = round.filter((method) => !known.has(method));
    const funds = open.map((method) => ({
      name: `learns ${method}`,
      amounts: [...before(method).map((one) => known.get(one) as bigint), 1n],
    }));
    const bed = await StakingBed.open(...funds);
    const wallets = await openAll(bed, open, (method) => `learns ${method}`);
    const made = await lead(bed, wallets);
    for (const method of open) {
      const { wallet } = wallets.get(`learns ${method}`) as { wallet: TestWallet };
      await ripen(bed, method, wallet);
      const wish = WISHES[method]?.(made.get(`learns ${method}`) as Made);
      const refusal = await wallet.refusal(method, { ...wish, request_id: method, dry_run: true });
      expect({ method, ...refusal }).toMatchObject({ code: -32000, word: 'insufficient_funds' });
      known.set(method, atomsOf(refusal.data.needed));
    }
  }
  return known;
}

async function openAll(bed: StakingBed, methods: readonly string[], nameOf: (method: string) => string) {
  const wallets = new Map<string, { wallet: TestWallet; way: readonly string[] }>();
  for (const method of methods)
    wallets.set(nameOf(method), {
      wallet: await bed.wallet({ name: nameOf(method) }),
      way: [...before(method), method],
    });
  return wallets;
}

test(`${ROWS.length} operations with one atom less than they cost, and with exactly as much`, async () => {
  const known = await costs();
  const fundsOf = (method: string, less: bigint) => ({
    name: `${method} ${less}`,
    amounts: [...before(method), method].map(
      (one, i, way) => (known.get(one) as bigint) - (i === way.length - 1 ? less : 0n),
    ),
  });
  for (const group of GROUPS) {
    const bed = await StakingBed.open(...group.flatMap((method) => [fundsOf(method, 0n), fundsOf(method, 1n)]));
    const wallets = new Map([
      ...(await openAll(bed, group, (method) => `${method} 0`)),
      ...(await openAll(bed, group, (method) => `${method} 1`)),
    ]);
    const made = await lead(bed, wallets);
    for (const method of group) {
      const params = (name: string) => ({ ...WISHES[method]?.(made.get(name) as Made), request_id: method });
      const { wallet: less } = wallets.get(`${method} 1`) as { wallet: TestWallet };
      const { wallet: exact } = wallets.get(`${method} 0`) as { wallet: TestWallet };
      await ripen(bed, method, less, exact);
      const needed = known.get(method) as bigint;
      expect({ method, ...(await less.refusal(method, params(`${method} 1`))) }).toMatchObject({
        method,
        code: -32000,
        word: 'insufficient_funds',
        data: { needed: formatCoins(needed), spendable: formatCoins(needed - 1n) },
      });
      expect((await less.call('pending')).transactions).toEqual([]);
      expect((await less.call('requests', { prefix: method })).requests).toEqual([]);
      expect(await exact.call(method, params(`${method} 0`))).toMatchObject({ submitted: true });
      await bed.beat();
      await exact.turn();
      const { requests } = (await exact.call('requests', { prefix: method })) as { requests: Fields[] };
      expect({ method, requests }).toMatchObject({ method, requests: [{ state: 'finalized' }] });
      // All that is left is what was withdrawn.
      const balance = method === 'withdraw' ? '100.00000000' : '0.00000000';
      expect({ method, ...(await exact.call('balance')) }).toMatchObject({ method, balance });
    }
  }
});
