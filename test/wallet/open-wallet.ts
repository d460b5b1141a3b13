/** A wallet on a fake node, with a clock and randomness of the test's own, closed when the test ends. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createLogger, type Logger, readLevelFilter } from '../../runtime/log/log.ts';
import { dispatch } from '../../wallet/rpc/dispatch.ts';
import { Wallet, type WalletOptions } from '../../wallet/wallet.ts';
import { temporaryDirectory } from '../temporary.ts';
import type { FakeNode } from './fake-node.ts';

export const secretsOf = (name: string) => ({
  entropy: new Uint8Array(createHash('sha256').update(name).digest()),
  passphrase: '',
});

export function recordingLog(lines: string[] = []): Logger {
  const sink = { write: (line: string) => void lines.push(line), flush: () => undefined, close: () => undefined };
  return createLogger('wallet', { filter: readLevelFilter('debug'), format: 'text' }, { sink, now: Date.now });
}

export type TestWallet = {
  readonly wallet: Wallet;
  readonly directory: string;
  readonly log: string[];
  /** The result of a call, or its error thrown as an object. */
  call(method: string, params?: unknown): Promise<Record<string, unknown>>;
  /** The error of a call that must fail. */
  refusal(
    method: string,
    params?: unknown,
  ): Promise<{ code: number; word: string; message: string; data: Record<string, unknown> }>;
  /** One turn of the wallet's loop. */
  turn(): Promise<void>;
};

export async function openTestWallet(
  node: Pick<FakeNode, 'client'>,
  given: Partial<WalletOptions> & {
    name?: string;
    directory?: string;
    now?: () => number;
    fault?: (error: Error) => void;
  } = {},
): Promise<TestWallet> {
  const { name = 'test', directory = temporaryDirectory(), now = Date.now, ...rest } = given;
  const {
    fault = (error: Error) => {
      throw error;
    },
    ...options
  } = rest;
  const log: string[] = [];
  let counter = 0;
  const wallet = await Wallet.open(
    secretsOf(name),
    { network: 'development', stateDirectory: join(directory, 'store'), answerMillis: 60_000, ...options },
    {
      client: node.client,
      log: recordingLog(log),
      now,
      randomBytes: (length) =>
        new Uint8Array(createHash('shake256', { outputLength: length }).update(`${name} ${counter++}`).digest()),
      fault,
    },
  );
  let closed = false;
  const close = wallet.close.bind(wallet);
  wallet.close = async () => {
    if (!closed) await close();
    closed = true;
  };
  onTestFinished(() => wallet.close());
  const answer = (method: string, params: unknown) => dispatch(wallet, { id: 1, method, params });
  return {
    wallet,
    directory,
    log,
    async call(method, params = {}) {
      const found = await answer(method, params);
      if ('error' in found) throw new Error(`${method}: ${JSON.stringify(found.error)}`);
      return found.result as Record<string, unknown>;
    },
    async refusal(method, params = {}) {
      const found = await answer(method, params);
      if (!('error' in found)) throw new Error(`${method} was not refused: ${JSON.stringify(found.result)}`);
      const data = (found.error.data ?? {}) as Record<string, unknown>;
      return { code: found.error.code, word: String(data.code), message: found.error.message, data };
    },
    turn: () => wallet.turn(),
  };
}

/** For tests in which the node does not answer; elsewhere an answer is waited for, however busy the machine is. */
export const IMPATIENT = { answerMillis: 200 };

/** A wallet that holds these amounts, in one output each, and has read them. */
export async function fundedWallet(
  node: FakeNode,
  amounts: readonly bigint[],
  options: Parameters<typeof openTestWallet>[1] = {},
): Promise<TestWallet> {
  const opened = await openTestWallet(node, options);
  const { address } = await opened.call('new_address', {});
  for (const amount of amounts) node.reward(String(address), amount);
  node.seal();
  await opened.turn();
  return opened;
}
