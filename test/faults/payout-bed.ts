/**
 * Payouts with everything real that money depends on: PostgreSQL that can fall back to an older copy, the wallet and its listener as the daemon has them, a
 * node with its chain. Income is a list that the test writes; the books take it from where they stand, as they take journals and cuts.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import type { Chain } from '../../pool/accountant/chain.ts';
import { TermRunner } from '../../pool/accountant/term-runner.ts';
import { connectDatabase, type Sql } from '../../pool/database/connect.ts';
import { migrate } from '../../pool/database/migrate.ts';
import { NOTHING } from '../../pool/feed/entry-source.ts';
import { createWalletClient } from '../../pool/payout/wallet-client.ts';
import { formatAddress, parseAddress } from '../../protocol/address.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { openWallet } from '../../wallet/open.ts';
import { dispatch } from '../../wallet/rpc/dispatch.ts';
import { WalletServer } from '../../wallet/rpc/server.ts';
import { readOrCreateToken } from '../../wallet/rpc/token.ts';
import type { Wallet } from '../../wallet/wallet.ts';
import { type PostgresServer, startPostgresServer } from '../pool/postgres-server.ts';
import { quietLog } from '../quiet-log.ts';
import { temporaryDirectory } from '../temporary.ts';
import { ChainBed, COIN } from '../wallet/wallet-bed.ts';
import { WalletFiles } from '../wallet/wallet-files.ts';
import { creditAccount } from './credit-account.ts';

export const MINIMUM = COIN / 10n;
const CUT_MILLIS = 200;
const PAYOUT_MILLIS = 250;
const INCOME_MILLIS = 100;

export const payloadOf = (account: number): Uint8Array => Uint8Array.of(0, ...pattern(`payout account ${account}`, 48));
export const addressOf = (account: number): string => formatAddress(payloadOf(account), 'development');

type Income = { readonly account: number; readonly amount: bigint };

/** A chain on which this pool finds nothing. */
const quietChain: Chain = {
  async *cuts(_after, signal) {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  },
  headHeight: async () => 0,
  targetAt: async () => 1n << 250n,
  block: async () => undefined,
} as Chain;

/** What `svc-wallet daemon` runs. */
class Daemon {
  readonly #wallet: Wallet;
  readonly #server: WalletServer;
  /** Where it listens. */
  readonly rpc: string;

  private constructor(wallet: Wallet, server: WalletServer, port: number) {
    this.#wallet = wallet;
    this.#server = server;
    this.rpc = `127.0.0.1:${port}`;
  }

  static async start(file: string, service: string): Promise<Daemon> {
    const fault = (error: Error) => {
      throw error;
    };
    const wallet = await openWallet(
      { file, passwordFile: undefined, service, validityCuts: 200 },
      { log: quietLog, ask: undefined, fault },
    );
    const token = await readOrCreateToken(`${file}.token`);
    const server = new WalletServer(wallet, { listen: { host: '127.0.0.1', port: 0 }, allowRemote: false, token });
    const { port } = await server.start();
    wallet.start();
    return new Daemon(wallet, server, port);
  }

  status(): Promise<unknown> {
    return dispatch(this.#wallet, { id: 1, method: 'status', params: {} });
  }

  async stop(): Promise<void> {
    await this.#server.close();
    await this.#wallet.close();
  }
}

export class PayoutBed {
  readonly files: WalletFiles;
  readonly server: PostgresServer;
  readonly chain: ChainBed;
  readonly daemon: Daemon;
  readonly sql: Sql;
  readonly income: Income[] = [];
  #pool: { readonly runner: TermRunner; readonly sql: Sql } | undefined;
  #taking: Promise<void> | undefined;
  #isTaking = false;

  private constructor(files: WalletFiles, server: PostgresServer, chain: ChainBed, daemon: Daemon) {
    this.files = files;
    this.server = server;
    this.chain = chain;
    this.daemon = daemon;
    this.sql = connectDatabase(server.url, { max: 4, name: 'test' });
  }

  static async open(): Promise<PayoutBed> {
    const directory = temporaryDirectory();
    const files = new WalletFiles(directory);
    await files.write();
    const server = await startPostgresServer(40);
    const chain = await ChainBed.open(files.firstAddress, { outputs: 64, each: 1000n * COIN });
    const daemon = await Daemon.start(files.file, chain.base);
    const bed = new PayoutBed(files, server, chain, daemon);
    onTestFinished(() => bed.#close());
    await migrate(bed.sql, quietLog);
    chain.start(CUT_MILLIS);
    await expect.poll(() => daemon.status()).toMatchObject({ result: { caught_up: true } });
    return bed;
  }

  wallet() {
    const address = this.files.firstAddress;
    return createWalletClient({ url: `http://${this.daemon.rpc}`, tokenFile: `${this.files.file}.token`, address });
  }

  /** An accountant that pays several times a second what is due, on connections of its own. */
  startPool(): void {
    const sql = connectDatabase(this.server.url, { max: 6 });
    const runner = new TermRunner(
      {
        network: NETWORKS.development,
        poolAddress: parseAddress(this.files.firstAddress).payload,
        sliceCuts: 240,
        windowThousandths: 8000n,
        services: [0, 1],
        feePpm: new Map([
          [0, 0n],
          [1, 0n],
        ]),
        databaseUrl: this.server.url,
        holder: 'test',
        payoutMin: MINIMUM,
        payoutIntervalMillis: PAYOUT_MILLIS,
        shareDays: 7,
        chartDays: 7,
        silentMillis: 1e9,
        webhooks: { urls: [], secret: '' },
      } as never,
      {
        sql,
        source: {
          begin: async () => undefined,
          take: async (_most: number, wait: number) => {
            await sleep(wait);
            return NOTHING;
          },
          isCaughtUp: async () => (await this.#taken()) >= this.income.length,
          close: async () => undefined,
        },
        chain: quietChain,
        wallet: this.wallet(),
        log: quietLog,
        now: Date.now,
        wall: Date.now,
      } as never,
    );
    this.#pool = { runner, sql };
  }

  /** Takes income into the books for as long as it runs: each once, from where the books stand, whatever they fall back to. */
  startIncome(): void {
    this.#isTaking = true;
    this.#taking = (async () => {
      while (this.#isTaking) {
        await this.#takeIncome().catch(() => undefined);
        await sleep(INCOME_MILLIS);
      }
    })();
  }

  async #taken(): Promise<number> {
    const [row] = await this.sql<{ value: string }[]>`select value from settings where name = 'test_income'`;
    return Number(row?.value ?? 0);
  }

  async #takeIncome(): Promise<void> {
    await this.sql.begin(async (transaction) => {
      // As every transaction of the books: one after the other, so that two never wait for each other's accounts.
      await transaction`select number from term for update`;
      const [row] = await transaction<
        { value: string }[]
      >`select value from settings where name = 'test_income' for update`;
      const from = Number(row?.value ?? 0);
      const part = this.income.slice(from, from + 20);
      for (const { account, amount } of part)
        await creditAccount(transaction, { payload: payloadOf(account), address: addressOf(account), amount });
      const through = from + part.length;
      await transaction`insert into settings values ('test_income', ${String(through)})
        on conflict (name) do update set value = excluded.value`;
    });
  }

  async paymentsMade(): Promise<number> {
    const answer = await this.wallet().payments('payout-');
    return answer.kind === 'ok' ? answer.value.length : 0;
  }

  /** Nothing is left to be taken in, reserved, sent or settled. */
  async settled(): Promise<void> {
    const open = async () => {
      const [row] = await this.sql<{ taken: number; open: number; due: number }[]>`select
        (select value::int from settings where name = 'test_income') as taken,
        (select count(*)::int from payouts where state in ('reserved', 'submitting', 'submitted')) as open,
        (select count(*)::int from accounts where balance >= ${MINIMUM}) as due`;
      return { left: this.income.length - (row?.taken ?? 0), open: row?.open, due: row?.due };
    };
    await expect.poll(() => open().catch(() => undefined), { interval: 100 }).toEqual({ left: 0, open: 0, due: 0 });
  }

  /** Everybody has on the chain what the books say was paid, and no more than was earned. */
  async expectPaidOnce(): Promise<void> {
    const earned = new Map<number, bigint>();
    for (const { account, amount } of this.income) earned.set(account, (earned.get(account) ?? 0n) + amount);
    for (const [account, total] of earned) {
      const address = addressOf(account);
      const onChain = BigInt((await this.chain.api.client.addressBalance({ address })).balance);
      const [row] = await this.sql<
        { paid: bigint; balance: bigint; in_flight: bigint }[]
      >`select paid, balance, in_flight
        from accounts where address = ${address}`;
      expect({ account, onChain, ...row }).toEqual({ account, onChain: row?.paid, ...row });
      expect({ account, total: (row?.paid ?? 0n) + (row?.balance ?? 0n) }).toEqual({ account, total });
    }
  }

  async stopPool(): Promise<void> {
    await this.#pool?.runner.close();
    await this.#pool?.sql.end({ timeout: 1 });
    this.#pool = undefined;
  }

  async #close(): Promise<void> {
    this.#isTaking = false;
    await this.#taking;
    await this.stopPool();
    await this.daemon.stop();
    await this.chain.close();
    await this.sql.end({ timeout: 1 });
    await this.server.stop();
  }
}
