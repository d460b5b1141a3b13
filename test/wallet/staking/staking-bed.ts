/** Wallets on a real node whose days have 24 cuts: tests live through stake, reward and release in seconds. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { developmentKey, validatorName } from '../../../node/genesis/development.ts';
import { parseAddress } from '../../../protocol/address.ts';
import { toHex } from '../../../protocol/bytes.ts';
import { validatorId } from '../../../protocol/staking/names.ts';
import { WalletRoot } from '../../../wallet/keys/derivation.ts';
import { Keyring } from '../../../wallet/keys/keyring.ts';
import { phraseOfEntropy } from '../../../wallet/keys/phrase.ts';
import { ApiBed } from '../../api/api-bed.ts';
import { openTestWallet, secretsOf, type TestWallet } from '../open-wallet.ts';
import { ChainBed } from '../wallet-bed.ts';
import { WalletFiles } from '../wallet-files.ts';

export const COIN = 100_000_000n;
export const INTERVAL = 24;
/** Validators of the development genesis, by place. */
export const validatorAt = (member: number): string =>
  toHex(validatorId(developmentKey(validatorName(member)).publicKey));
const miner = developmentKey('miner of the test').address;

export const ownAddress = (name: string, branch: 'receive' | 'change' = 'receive'): string =>
  new Keyring(new WalletRoot(phraseOfEntropy(secretsOf(name).entropy), '', 'development')).addressRecord(branch, 0, 0)
    .address;

export type Funds = { readonly name?: string; readonly amounts: readonly bigint[] };

export class StakingBed {
  readonly api: ApiBed;
  #draw = 0;

  private constructor(api: ApiBed) {
    this.api = api;
  }

  static async open(...funds: Funds[]): Promise<StakingBed> {
    const fund = funds.flatMap(({ name = 'test', amounts }) =>
      amounts.map((amount) => ({ address: parseAddress(ownAddress(name), 'development').payload, amount })),
    );
    const genesis = { fund, validators: 2, intervalCuts: INTERVAL };
    return new StakingBed(await ApiBed.forTest({ bed: { genesis } }));
  }

  /** A wallet that has read everything. */
  async wallet(options: Parameters<typeof openTestWallet>[1] = {}): Promise<TestWallet> {
    const wallet = await openTestWallet({ client: this.api.client }, { answerMillis: 10_000, ...options });
    if (this.height === 0) await this.beat();
    await wallet.turn();
    return wallet;
  }

  get height(): number {
    return this.api.bed.node.chain.head().height;
  }

  /** Executes what waits: a block with all of it, and its cut. */
  async beat(): Promise<void> {
    await this.api.bed.mine(miner, 1_000, this.#draw++ % 16);
    await this.api.bed.seal();
  }

  /** Cuts until the next one is at `height`. */
  async sealTo(height: number): Promise<void> {
    await this.api.bed.seal(height - 1 - this.height);
  }

  /** The first cut of this epoch is next. */
  async sealToEpoch(epoch: number): Promise<void> {
    await this.sealTo(epoch * INTERVAL);
  }

  async balanceOf(address: string): Promise<bigint> {
    return BigInt((await this.api.client.addressBalance({ address })).balance);
  }
}

/** A bed with one funded wallet, and how it calls, seals and reads. */
export async function stakingWallet(amounts: readonly bigint[] = [5_000n * COIN, 10n * COIN, 10n * COIN]) {
  const bed = await StakingBed.open({ amounts });
  const wallet = await bed.wallet();
  const settle = async () => {
    await bed.beat();
    await wallet.turn();
  };
  const staked = async (amount = '1000', request_id = 'stake') => {
    const result = await wallet.call('stake', { validator: validatorAt(0), amount, request_id });
    await settle();
    return result.position as string;
  };
  const positions = async () => (await wallet.call('positions')).positions as Record<string, unknown>[];
  return { bed, wallet, settle, staked, positions };
}

/** A wallet file with funds on a chain of two validators, for commands that run as an operator types them. */
export async function operatorWallet() {
  const directory = mkdtempSync(join(tmpdir(), 'svc-wallet-'));
  const files = new WalletFiles(directory);
  await files.write();
  const funds = { outputs: 3, each: 80_000n * COIN };
  const chain = await ChainBed.open(files.firstAddress, funds, { intervalCuts: INTERVAL, validators: 2 });
  onTestFinished(async () => {
    await chain.close();
    rmSync(directory, { recursive: true, force: true });
  });
  await chain.beat();
  return { directory, files, chain, session: ['--file', files.file, '--service', chain.base] };
}
