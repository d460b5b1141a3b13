/**
 * How a command accesses the wallet: through the daemon if one is running, otherwise by opening it for the duration of
 * the command. Either way a command is a method of the daemon, so both give the same answers.
 */
import { randomBytes } from 'node:crypto';
import { utf8 } from '../../protocol/bytes.ts';
import { wallMillis } from '../../runtime/clock/clock.ts';
import { showListenAddress, type ValuesOf } from '../../runtime/command-line/command-line.ts';
import { createLogger, readLevelFilter, standardErrorSink } from '../../runtime/log/log.ts';
import { httpFetch, textOf } from '../../runtime/node-client/http-fetch.ts';
import { RuntimeError } from '../../runtime/runtime-error.ts';
import { openWallet } from '../open.ts';
import { dispatch, type RpcAnswer } from '../rpc/dispatch.ts';
import { readToken } from '../rpc/token.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import { type sessionOptions, walletFile } from './options.ts';
import type { Prompt } from './prompt.ts';

/** An answer of the daemon, or parameters of a call. */
export type Fields = Record<string, unknown>;

export type Session = {
  /** Throws a CallError when the wallet refuses. */
  call(method: string, params: unknown): Promise<Fields>;
  /** Reads new cuts. A daemon does so anyway. */
  turn(): Promise<void>;
  close(): Promise<void>;
};

export class CallError extends Error {
  readonly rpc: number;
  readonly code: string;
  readonly data: unknown;

  constructor(error: { code: number; message: string; data?: unknown }) {
    super(error.message);
    this.name = 'CallError';
    this.rpc = error.code;
    this.data = error.data;
    const { code } = (error.data ?? {}) as { code?: unknown };
    this.code = typeof code === 'string' ? code : String(error.code);
  }
}

function resultOf(answer: RpcAnswer): Fields {
  if ('error' in answer) throw new CallError(answer.error);
  return answer.result as Fields;
}

/** How long a command waits for its wallet to have read everything the node has. */
const CATCH_UP_MILLIS = 120_000;

type SessionValues = ValuesOf<typeof sessionOptions>;

export async function openSession(values: SessionValues, prompt: Prompt): Promise<Session> {
  const file = walletFile(values);
  try {
    return await localSession(file, values, prompt);
  } catch (error) {
    if (!(error instanceof RuntimeError) || error.code !== 'directory_locked') throw error;
    return remoteSession(file, values);
  }
}

async function localSession(file: string, values: SessionValues, prompt: Prompt): Promise<Session> {
  const log = createLogger(
    'wallet',
    { filter: readLevelFilter('error'), format: 'text' },
    { sink: standardErrorSink, now: wallMillis },
  );
  const wallet = await openWallet(
    { file, passwordFile: values.passwordFile, service: values.service, nodeIdentity: values.nodeIdentity },
    {
      log,
      ask: prompt.interactive ? () => prompt.askHidden('Password: ') : undefined,
      fault: (error) => log.error('the state cannot be written', { error }),
    },
  );
  await catchUp(wallet);
  return {
    call: async (method, params) => resultOf(await dispatch(wallet, { id: 1, method, params })),
    turn: () => wallet.turn(),
    close: () => wallet.close(),
  };
}

async function catchUp(wallet: Wallet): Promise<void> {
  const deadline = performance.now() + CATCH_UP_MILLIS;
  do {
    await wallet.turn();
    if (wallet.follower.node.trouble !== null) return;
  } while (!wallet.follower.caughtUp && performance.now() < deadline);
}

/** Connection refused: no request was sent. Any other error may mean that the daemon did it, and then died or was disconnected. */
function unanswered(url: string, error: unknown): WalletError {
  const { code } = error as { code?: unknown };
  return code === 'ECONNREFUSED'
    ? new WalletError('wallet_locked', `another process holds the wallet, and no daemon answers at ${url}`)
    : new WalletError(
        'outcome_unknown',
        `the daemon at ${url} gave no answer, and may have done what it was asked: repeat that with the same request id`,
      );
}

function readAnswer(url: string, status: number, text: string): Fields {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {}
  const { error, result } = (answer ?? {}) as { error?: Fields; result?: unknown };
  if (status === 200 && typeof result === 'object' && result !== null) return result as Fields;
  const { code, message, data } = error ?? {};
  if (typeof message === 'string' && status === 200 && typeof code === 'number')
    throw new CallError({ code, message, data });
  if (typeof message === 'string' && status !== 200) throw new CallError({ code: status, message, data: { code } });
  throw new WalletError(
    'daemon_unusable',
    `what listens at ${url} is no wallet daemon (status ${status}): give --rpc the address of the daemon that holds the wallet`,
  );
}

/** The daemon may wait for its node. */
const CALL_MILLIS = 300_000;
/** Whole listings of a large wallet. */
const fetchDaemon = httpFetch({ maxBytes: 64 * 1024 * 1024 });

function remoteSession(file: string, values: SessionValues): Session {
  const token = readToken(values.tokenFile ?? `${file}.token`);
  if (token === undefined)
    throw new WalletError('wallet_locked', 'another process holds the wallet, and there is no token to ask it with');
  const url = `http://${showListenAddress(values.rpc)}/v1/rpc`;
  return {
    async call(method, params) {
      const body = JSON.stringify({ jsonrpc: '2.0', id: randomBytes(8).toString('hex'), method, params });
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      let status: number;
      let text: string;
      try {
        const signal = AbortSignal.timeout(CALL_MILLIS);
        const answer = await fetchDaemon(url, { method: 'POST', headers, body: utf8(body), signal });
        status = answer.status;
        text = await textOf(answer);
      } catch (error) {
        throw unanswered(url, error);
      }
      return readAnswer(url, status, text);
    },
    turn: async () => undefined,
    close: async () => undefined,
  };
}
