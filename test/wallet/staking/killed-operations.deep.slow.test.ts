/**
 * Every staking operation while the daemon is killed (-9) at one of its requests to the node, before the node has it or before the answer is back, or right after it has answered: register,
 * heartbeat, commission, endpoint, rotate, reward address, stake, unstake, exit, withdraw. Each happens once, and the coins add up.
 */
import { expect, onTestFinished, test } from 'vitest';
import { parseAddress } from '../../../protocol/address.ts';
import { formatCoins, parseCoins } from '../../../protocol/amount.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { count, repeats, seed } from '../../level.ts';
import { randomOf } from '../../random.ts';
import { anEndpoint } from '../../staking/signed.ts';
import { temporaryDirectory } from '../../temporary.ts';
import { lasts } from '../../watch/limits.ts';
import { ChainBed, COIN, DaemonProcess } from '../wallet-bed.ts';
import { WalletFiles } from '../wallet-files.ts';
import { KillingProxy, type KillPoint } from './killing-proxy.ts';
import { INTERVAL } from './staking-bed.ts';

/** Kill points of each of the ten operations: as many validators. */
const POINTS = repeats({ full: 1, deep: 20 });
/** An operation makes about five requests, and the daemon's own turns come in between. */
const REQUESTS = 7;
const BOND = 100_000n * COIN;
const LAST_INDEX = 2_147_483_647;

type Fields = Record<string, unknown>;

test(
  `ten operations, ${10 * POINTS} kill points`,
  lasts(600, 'it ends programs many times, and waits for them to come back'),
  async () => {
    const directory = temporaryDirectory();
    const files = new WalletFiles(directory);
    await files.write();
    const { payload } = parseAddress(files.firstAddress, 'development');
    const amounts = Array.from({ length: POINTS }, () => [BOND + COIN, 200n * COIN, ...Array(9).fill(COIN)]).flat();
    const fund = amounts.map((amount: bigint) => ({ address: payload, amount }));
    const chain = await ChainBed.open(
      files.firstAddress,
      { outputs: 0, each: 0n },
      // They sign alone for as long as those of the wallet have a seat.
      { fund, intervalCuts: INTERVAL, validators: count({ full: 2, deep: 8 }) },
    );
    const proxy = await KillingProxy.open(chain.base);
    const daemon = new DaemonProcess(files.file, proxy.base);
    onTestFinished(async () => {
      await daemon.stop('SIGKILL');
      await proxy.close();
      await chain.close();
    });
    await chain.beat();
    await daemon.start();
    const random = randomOf(seed);
    const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis));
    const kills = { before: 0, after: 0, answered: 0 };

    /** Repeated with the same id until it is answered. What is refused but for the node or another operation under way is a fault. */
    async function insist(method: string, params: Fields): Promise<Fields> {
      for (;;) {
        const answer = await daemon.call(method, params).catch(() => undefined);
        if (answer !== undefined && !('error' in answer)) return answer.result as Fields;
        if (answer !== undefined && ![-32001, -32002, -32003].includes(answer.error.code))
          throw new Error(`${method}: ${JSON.stringify(answer)}`);
        await pause(20);
      }
    }

    async function killedAt(point: KillPoint, method: string, params: Fields): Promise<Fields> {
      proxy.arm(point, () => process.kill(daemon.pid, 'SIGKILL'));
      const answer = await daemon.call(method, params).catch(() => undefined);
      // Answered before that request came: the daemon ends all the same, and knows what it has said.
      kills[proxy.disarm() ? point.when : 'answered']++;
      await daemon.crash();
      const result = await insist(method, params);
      if (answer !== undefined && !('error' in answer))
        expect(result).toMatchObject({ transaction: (answer.result as Fields).transaction, duplicate: true });
      return result;
    }

    const done: { method: string; params: Fields; transaction: unknown }[] = [];
    async function phase(method: string, all: readonly Fields[]): Promise<Fields[]> {
      const results: Fields[] = [];
      for (const [i, wish] of all.entries()) {
        const params = { ...wish, request_id: `${method} ${i}` };
        const point: KillPoint = { request: random(REQUESTS), when: random(2) === 0 ? 'before' : 'after' };
        const result = await killedAt(point, method, params);
        results.push(result);
        done.push({ method, params, transaction: result.transaction });
        if (random(2) === 0) await chain.beat();
      }
      await expect
        .poll(async () => {
          await chain.beat();
          return ((await daemon.result('pending')).transactions as unknown[]).length;
        })
        .toBe(0);
      return results;
    }
    const sealToEpoch = (epoch: number) =>
      chain.api.bed.seal(Math.max(0, epoch * INTERVAL - 1 - chain.api.bed.node.chain.head().height));
    const epochNow = async () => (await chain.api.client.stakingValidators({})).epoch;

    const places = Array.from({ length: POINTS }, (_, i) => i);
    const registered = await phase(
      'validator_register',
      places.map((i) => ({
        amount: '100000',
        overlay_endpoint_hex: toHex(anEndpoint(i)),
        consensus_key_index: LAST_INDEX - i,
      })),
    );
    const validators = registered.map(({ validator }) => validator as string);
    const each = (more: (i: number) => Fields) => places.map((i) => ({ validator: validators[i], ...more(i) }));
    const shown = async () =>
      Promise.all(validators.map(async (id) => (await chain.api.client.stakingValidator({ id })).validator));
    await sealToEpoch((await epochNow()) + 1);
    const beating = await epochNow();
    await phase(
      'validator_heartbeat',
      each(() => ({})),
    );
    if (POINTS === 1) expect(await shown()).toMatchObject([{ heartbeat_epoch: beating }]);
    await phase(
      'validator_commission',
      each(() => ({ commission_bps: 300 })),
    );
    await phase(
      'validator_endpoint',
      each((i) => ({ consensus_key_index: LAST_INDEX - i, overlay_endpoint_hex: toHex(anEndpoint(100 + i)) })),
    );
    for (const [i, one] of (await shown()).entries())
      expect(one).toMatchObject({
        pending_commission: { commission_bps: 300 },
        pending_endpoint: { endpoint: toHex(anEndpoint(100 + i)) },
      });
    await sealToEpoch((await epochNow()) + 2);
    await phase(
      'validator_rotate',
      each((i) => ({ consensus_key_index: LAST_INDEX - 1_000 - i, overlay_endpoint_hex: toHex(anEndpoint(200 + i)) })),
    );
    const cold = new WalletFiles(directory, 'cold').firstAddress;
    await phase(
      'reward_address',
      registered.map(({ position }) => ({ position, to: cold })),
    );
    for (const one of await shown())
      expect(one).toMatchObject({ reward_address: cold, pending_consensus_key_epoch: expect.any(Number) });
    const staked = await phase(
      'stake',
      each(() => ({ amount: '150' })),
    );
    const unstaked = await phase(
      'unstake',
      staked.map(({ position }) => ({ position })),
    );
    await phase(
      'validator_exit',
      each(() => ({})),
    );
    for (const one of await shown()) expect(one).toMatchObject({ state: 'exiting', delegations: 1 });
    const positions = async () => (await daemon.result('positions')).positions as Fields[];
    expect(await positions()).toHaveLength(2 * POINTS);
    const releases = (await positions()).map(({ release_height: height }) => height as number);
    await chain.api.bed.seal(Math.max(...releases) - chain.api.bed.node.chain.head().height);
    await phase(
      'withdraw',
      [...registered, ...unstaked.map(({ unbonding_position: position }) => ({ position }))].map(({ position }) => ({
        position,
      })),
    );
    expect(await positions()).toEqual([]);

    // The answer to a repetition is the first one, however often the daemon died.
    let balance = 0n;
    for (const amount of amounts as bigint[]) balance += amount;
    for (const { method, params, transaction } of done) {
      const again = await daemon.result(method, params);
      expect({ method, ...again }).toMatchObject({ duplicate: true, state: 'finalized', transaction });
      balance -= parseCoins(again.fee as string);
    }
    const { entries } = (await daemon.result('history', { limit: 1000 })) as { entries: Fields[] };
    for (const { kind, amount } of entries) if (kind === 'reward') balance += parseCoins(amount as string);
    expect((await daemon.result('balance')).balance).toBe(formatCoins(balance));
    expect(await chain.api.client.supply()).toMatchObject({ unbonding: '0' });
    expect(kills.before + kills.after, JSON.stringify(kills)).toBeGreaterThan(POINTS);
  },
);
