/**
 * The life of a validator by the lines of docs/validator.md alone: on a network of two separate validators with short days a third is made, joins, earns, is delegated to, rotates
 * its key, moves to another machine, exits, and everybody withdraws. What everybody has at the end is worked out a second time, to the atom.
 */
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { parseAddress } from '../../protocol/address.ts';
import { formatCoins, parseCoins } from '../../protocol/amount.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { selfBondId } from '../../protocol/staking/names.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { WalletRoot } from '../../wallet/keys/derivation.ts';
import { Keyring } from '../../wallet/keys/keyring.ts';
import { isSigning } from '../consensus/is-signing.ts';
import { count } from '../level.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { executedTransactions, replay } from './staking-replay.ts';
import { type Program, run, ValidatorNetwork, type Where } from './validator-network.ts';
import { type Fill, ValidatorPage } from './validator-page.ts';

const COIN = 100_000_000n;
/** Cuts of a day. */
const INTERVAL = count({ full: 24, deep: 48 });
const CUT_MILLIS = 120;
/** More than a third of all stake with it: the chain waits while the validator moves, and misses no window. */
const DELEGATED = '1500000';
const SECOND_KEY = '2147483646';
/** Replaces the work of people, and the system's own service manager. */
const BY_HAND = ['systemctl enable --now svcd', 'systemctl disable --now svcd'];

type Fields = Record<string, unknown>;
const page = new ValidatorPage();

/** A node that is late with its cuts, on a busy machine, refuses before anything is signed: people try again. */
async function whenSynced(act: () => Promise<string>): Promise<string> {
  const look = async () => {
    try {
      return { text: await act() };
    } catch (error) {
      if (!(error as Error).message.includes('"node_not_synced"')) throw error;
      return undefined;
    }
  };
  return (await until(look, { everyMillis: CUT_MILLIS })).text;
}

/** A wallet on a machine of its own: its files stand where the page has them. */
class Owner {
  readonly directory: string;
  firstAddress = '';
  /** Where its daemon is. */
  #session: readonly string[] = [];
  /** What left the wallet for good, by transaction: fees and payments to others. */
  readonly spent = new Map<string, bigint>();

  constructor(directory: string) {
    this.directory = directory;
    mkdirSync(directory);
  }

  async init(): Promise<this> {
    const made = JSON.parse(await this.say('svc-wallet init', {}, ['--json'])) as { words: string[] };
    const keyring = new Keyring(new WalletRoot(made.words.join(' '), '', 'development'));
    this.firstAddress = keyring.addressRecord('receive', 0, 0).address;
    return this;
  }

  /** A line of the page, with more words. */
  say(start: string, names: Fill, more: readonly string[] = [], ...also: string[]): Promise<string> {
    const words = page.words(start, { mainnet: 'development', ...names }, ...also);
    return whenSynced(() => run([...words, ...(start.endsWith('export') ? [] : this.#session), ...more], this.where));
  }

  get where(): Where {
    return { cwd: this.directory, env: { HOME: this.directory } };
  }

  /** The wallet's daemon: commands ask it, and none has to open the wallet itself. */
  async serve(network: ValidatorNetwork, port: number): Promise<void> {
    const listen = `127.0.0.1:${port}`;
    const daemon = network.start(
      ['svc-wallet', 'daemon', '--service', network.service, '--listen', listen],
      this.where,
    );
    while (!daemon.output.includes('wallet daemon ready')) await sleep(50);
    this.#session = ['--rpc', listen];
  }

  /** Once the daemon has read that cut. */
  async balanceAt(height: number): Promise<string> {
    for (;;) {
      const text = await run(['svc-wallet', 'balance', '--json', ...this.#session], this.where);
      const { balance, indexed_height: read } = JSON.parse(text) as { balance: string; indexed_height: number };
      if (read >= height) return balance;
    }
  }

  async ask(start: string, names: Fill = {}, more: readonly string[] = [], ...also: string[]): Promise<Fields> {
    return JSON.parse(await this.say(start, names, ['--json', ...more], ...also)) as Fields;
  }

  /** What signs: with a yes. What it spends is noted. */
  async order(start: string, names: Fill, more: readonly string[] = [], ...also: string[]): Promise<Fields> {
    const result = await this.ask(start, names, ['--yes', ...more], ...also);
    expect(result).toMatchObject({ submitted: true });
    const paid = start === 'svc-wallet send' ? parseCoins(result.amount as string) : 0n;
    this.spent.set(result.transaction as string, paid + parseCoins(result.fee as string));
    return result;
  }
}

/** A machine of the validator: what the page has under /var/lib/svc and /etc/svc. */
class Machine {
  readonly directory: string;
  readonly names: Fill;
  readonly #network: ValidatorNetwork;
  readonly #mining: number;
  readonly #listen: string;
  node: Program | undefined;

  constructor(directory: string, network: ValidatorNetwork, [overlay = 0, mining = 0]: readonly number[]) {
    this.directory = directory;
    mkdirSync(directory);
    this.#network = network;
    this.#mining = mining;
    this.#listen = `127.0.0.1:${overlay}`;
    this.names = {
      mainnet: 'development',
      '/etc/svc/genesis.json': network.genesisFile,
      '/etc/svc': directory,
      '/var/lib/svc': directory,
      'validator.example.org': this.#listen,
    };
  }

  async endpoint(): Promise<string> {
    return (await run(page.words('svcd validator-endpoint', this.names), { cwd: this.directory })).trim();
  }

  /** The page: move the four files, owned by the node's user, mode 600. */
  takeKeys(from: Owner): void {
    renameSync(join(from.directory, 'keys'), join(this.directory, 'keys'));
    for (const file of ['consensus.json', 'consensus.password', 'fee.json', 'fee.password'])
      chmodSync(join(this.directory, 'keys', file), 0o600);
  }

  /** `node.json` of the page, with this machine's ports and the network's pace, and what its unit runs. */
  start(validator: string): void {
    const { validator_overlay: overlay, ...config } = page.nodeConfig({ ...this.names, VALIDATOR_ID: validator });
    expect(Object.keys(overlay)).toEqual(['listen_addrs', 'neighbours']);
    const ports = { 'api-bind': 'off', 'mining-bind': `127.0.0.1:${this.#mining}` };
    const here = { listen_addrs: this.#listen, neighbours: this.#network.neighbours };
    const text = JSON.stringify({ ...config, ...ports, ...this.#network.pace, validator_overlay: here });
    writeFileSync(join(this.directory, 'node.json'), text);
    this.node = this.#network.start(page.words('svcd run', this.names), { cwd: this.directory });
    this.#network.mineAt(this.#mining);
  }

  /** The command fails while the node starts and while the validator does not sign: what it asks is asked first, which starts no program. */
  async signs(): Promise<void> {
    const words = page.words('svcd validator status', this.names);
    const dataDir = resolve(this.directory, words[words.indexOf('--data-dir') + 1] as string);
    await until(() => isSigning(dataDir), { everyMillis: CUT_MILLIS });
    expect(await run(words, { cwd: this.directory })).toMatch(/^signs +yes$/m);
  }
}

test(
  'a third validator from nothing to its last atom, by the lines of docs/validator.md',
  lasts(600, 'a validator goes through all its states, epoch by epoch'),
  async () => {
    const directory = temporaryDirectory();
    const at = (name: string) => join(directory, name);
    const [operator, delegator] = await Promise.all([new Owner(at('wallet')).init(), new Owner(at('friend')).init()]);
    const coins = (owner: Owner, ...amounts: bigint[]) =>
      amounts.map((amount) => ({
        address: parseAddress(owner.firstAddress, 'development').payload,
        amount: amount * COIN,
      }));
    const network = await ValidatorNetwork.start(directory, {
      validators: 2,
      intervalCuts: INTERVAL,
      cutMillis: CUT_MILLIS,
      fund: [...coins(operator, 100_050n, 50n, 50n, 50n, 50n), ...coins(delegator, 1_500_050n, 50n, 50n, 50n)],
    });
    onTestFinished(() => network.stop());
    const free = await freePorts(8);
    await Promise.all([operator.serve(network, free[6] as number), delegator.serve(network, free[7] as number)]);
    const machines = [0, 1, 2].map((i) => new Machine(at(`machine-${i}`), network, free.slice(2 * i)));
    const [first, second, third] = machines as [Machine, Machine, Machine];

    // From nothing to a seat.
    const endpoint = await first.endpoint();
    const register = { ENDPOINT_HEX: endpoint };
    expect(await operator.ask('svc-wallet validator-register', register, [], '--dry-run')).toMatchObject({
      submitted: false,
      amount: '100000.00000000',
    });
    const registered = await operator.order('svc-wallet validator-register', register, [], '--wait');
    expect(registered).toMatchObject({ state: 'finalized' });
    const validator = registered.validator as string;
    const mine: Fill = { VALIDATOR_ID: validator };
    const shown = async () => (await network.client.stakingValidator({ id: validator })).validator;
    const attends = async () => {
      while (!((await shown()).attended_windows ?? 0)) await sleep(CUT_MILLIS);
    };
    const seat = (await shown()).seat_from_epoch;
    const exportKeys = async (...also: string[]) => {
      await operator.ask('svc-wallet validator-key-export', {}, [], ...also);
      const fee = await operator.ask('svc-wallet validator-heartbeat-fee-key-export', {}, [], ...also);
      await operator.order('svc-wallet send', { FEE_ADDRESS: fee.heartbeat_fee_address as string });
    };
    const [staked] = await Promise.all([
      delegator.order('svc-wallet stake', { ...mine, '--amount 1000': `--amount ${DELEGATED}` }),
      exportKeys(),
    ]);
    first.takeKeys(operator);
    first.start(validator);
    // Registration counts as the heartbeat of its epoch; afterwards one can be sent by hand.
    await network.reachedEpoch(seat - 1);
    const byHand = operator.order('svc-wallet validator-heartbeat', mine).catch((error: Error): undefined => {
      // Its node was quicker.
      expect(error.message).toMatch(/heartbeat_repeated|operation_conflict|validator_busy/);
    });

    // A new machine with keys of its own, while the first waits for its seat.
    const secondEndpoint = await second.endpoint();
    const beat = await byHand;
    await exportKeys(SECOND_KEY);
    second.takeKeys(operator);
    second.start(validator);
    await attends();
    await first.signs();
    expect(await shown()).toMatchObject({ state: 'committee', committee: true });
    expect(await operator.say('svc-wallet validators', {})).toMatch(new RegExp(`^${validator} +committee `, 'm'));
    await operator.order('svc-wallet validator-rotate', { ...mine, ENDPOINT_HEX: secondEndpoint }, ['--wait']);
    const { pending_consensus_key_epoch: rotated } = await shown();
    const position = toHex(selfBondId(fromHex(validator)));
    expect(await operator.say('svc-wallet positions', {})).toContain(position);
    const { address: elsewhere } = (await operator.ask('svc-wallet new-address')) as { address: string };
    await operator.order('svc-wallet reward-address', { POSITION_ID: position, ' ADDRESS': ` ${elsewhere}` });
    await operator.order('svc-wallet validator-commission', mine);
    const part = await delegator.order('svc-wallet unstake', { POSITION_ID: staked.position as string });
    await network.reachedEpoch(rotated as number);
    await attends();
    await second.signs();
    await first.node?.end();
    rmSync(join(first.directory, 'keys'), { recursive: true });
    await operator.order('svc-wallet validator-endpoint', { ...mine, KEY_INDEX: SECOND_KEY, ENDPOINT_HEX: endpoint });

    // The same key on a third machine.
    await second.node?.end();
    const stood = await network.height();
    for (const [machine, start] of [
      [second, 'tar -C /var/lib/svc -cf'],
      [third, 'tar -C /var/lib/svc -xpf'],
    ] as const)
      await run(page.words(start, { ...machine.names, 'validator.tar': at('validator.tar') }), {
        cwd: machine.directory,
      });
    third.start(validator);
    // One cut may have been on its way; without it there is no other.
    await network.reached(stood + 3);
    await third.signs();
    await network.reachedEpoch((await network.epoch()) + 1);

    const left = await operator.order('svc-wallet validator-exit', mine, ['--wait']);
    expect(left).toMatchObject({ state: 'finalized', position });
    const { exit_height: exit } = await shown();
    await network.reachedEpoch(Math.floor((exit as number) / INTERVAL) + 1);
    await third.node?.end();
    await network.reached((exit as number) + 10 * INTERVAL - 1);
    await Promise.all([
      operator.order('svc-wallet withdraw', { POSITION_ID: position }),
      (async () => {
        for (const id of [staked.position, part.unbonding_position])
          await delegator.order('svc-wallet withdraw', { POSITION_ID: id as string });
      })(),
    ]);
    while ((await network.client.supply()).unbonding !== '0') await sleep(CUT_MILLIS);
    for (const owner of [operator, delegator])
      expect(await owner.ask('svc-wallet positions')).toMatchObject({ positions: [] });

    const end = await network.height();
    const balances = await Promise.all([operator.balanceAt(end), delegator.balanceAt(end)]);
    const executed = await executedTransactions(network.client);
    const bonded = (await network.client.supply()).bonded;
    await network.stop('SIGTERM');
    const { payments, operations } = await replay(network.genesis, join(network.dataOf(0), 'store'), executed);
    const paid = (address: string): bigint => {
      let sum = 0n;
      for (const payment of payments)
        if (payment.address === toHex(parseAddress(address, 'development').payload)) sum += payment.amount;
      return sum;
    };
    const final = new Set([...executed.executed.values()].flat().map(({ id }) => id));
    const spentBy = ({ spent }: Owner): bigint => {
      let sum = 0n;
      for (const [transaction, amount] of spent) {
        // A heartbeat by hand may be overtaken by the end of its epoch, and costs nothing then.
        if (final.has(transaction)) sum += amount;
        else expect(transaction).toBe(beat?.transaction);
      }
      return sum;
    };
    const earned = paid(operator.firstAddress) + paid(elsewhere);
    const delegation = payments.filter((payment) => payment.position === staked.position);
    let delegated = 0n;
    for (const { amount } of delegation) delegated += amount;
    expect(paid(operator.firstAddress)).toBeGreaterThan(0n);
    expect(paid(elsewhere)).toBeGreaterThan(0n);
    expect(delegation.length).toBeGreaterThan(2);
    expect(balances).toEqual([
      formatCoins(100_250n * COIN + earned - spentBy(operator)),
      formatCoins(1_500_200n * COIN + delegated - spentBy(delegator)),
    ]);
    expect(bonded).toBe((2_000_000n * COIN).toString());
    for (const name of ['register', 'bond', 'unbond', 'rotate', 'endpoint', 'commission', 'reward_address', 'exit'])
      expect(operations.filter((one) => one === name)).toEqual([name]);
    expect(operations.filter((one) => one === 'withdraw')).toHaveLength(3);
    expect(operations).not.toContain('evidence');
    for (const { output } of network.programs) expect(output).not.toMatch(/voted twice|runs in another process/);
    expect(page.notRun.filter((line) => !BY_HAND.includes(line))).toEqual([]);
  },
);
