/**
 * JSON-RPC 2.0 (specification: Wallet daemon): one request object in, one answer object out. `params` is an object. A
 * request without an id is refused: the answer to a payment must reach the caller.
 */
import type { Logger } from '../../runtime/log/log.ts';
import type { Wallet } from '../wallet.ts';
import { WalletError } from '../wallet-error.ts';
import { chatMethods } from './chat-methods.ts';
import { incomingMethods } from './incoming-methods.ts';
import type { Method } from './method.ts';
import { multisigMethods } from './multisig-methods.ts';
import { outgoingMethods } from './outgoing-methods.ts';
import { ownershipMethods } from './ownership-methods.ts';
import { stakingMethods } from './staking-methods.ts';
import { validatorMethods } from './validator-methods.ts';
import { walletMethods } from './wallet-methods.ts';

export const RPC_ERRORS = { parse: -32700, request: -32600, method: -32601, params: -32602, internal: -32603 } as const;

export type RpcId = string | number;
export type RpcAnswer =
  | { readonly jsonrpc: '2.0'; readonly id: RpcId; readonly result: unknown }
  | {
      readonly jsonrpc: '2.0';
      readonly id: RpcId | null;
      readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
    };

export type RpcRequest = { readonly id: RpcId; readonly method: string; readonly params: unknown };

export const rpcError = (id: RpcId | null, code: number, message: string, data?: unknown): RpcAnswer => ({
  jsonrpc: '2.0',
  id,
  error: data === undefined ? { code, message } : { code, message, data },
});

const FIELDS = new Set(['jsonrpc', 'id', 'method', 'params']);

export function readRequest(body: string): RpcRequest | RpcAnswer {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return rpcError(null, RPC_ERRORS.parse, 'the body is not JSON');
  }
  const refuse = (why: string, id: RpcId | null = null) => rpcError(id, RPC_ERRORS.request, why);
  if (Array.isArray(json)) return refuse('batches are not offered: send one request at a time');
  if (typeof json !== 'object' || json === null) return refuse('a request is an object');
  const { jsonrpc, id, method, params } = json as Record<string, unknown>;
  const named = (typeof id === 'string' && id.length <= 256) || Number.isSafeInteger(id);
  if (!named) return refuse('id must be a text or a whole number');
  for (const field of Object.keys(json))
    if (!FIELDS.has(field)) return refuse(`unknown field '${field.slice(0, 64)}'`, id as RpcId);
  if (jsonrpc !== '2.0') return refuse('jsonrpc must be "2.0"', id as RpcId);
  if (typeof method !== 'string') return refuse('method must be a text', id as RpcId);
  return { id: id as RpcId, method, params: params ?? {} };
}

/** The answer of a failed call: refusals keep their code, everything else is a bug and says no more than that. */
export function failure(id: RpcId, method: string, error: unknown, log: Logger): RpcAnswer {
  if (error instanceof WalletError) {
    log.info('call refused', { method, code: error.code });
    return rpcError(id, error.rpc, error.message, { code: error.code, ...error.fields });
  }
  log.error('call failed', { method, error });
  return rpcError(id, RPC_ERRORS.internal, 'internal error: see the log of the daemon');
}

/** Every method of the daemon by name. `subscribe` and `unsubscribe` exist on the WebSocket alone (sockets.ts). */
export const METHODS = {
  ...walletMethods,
  ...incomingMethods,
  ...outgoingMethods,
  ...stakingMethods,
  ...validatorMethods,
  ...multisigMethods,
  ...chatMethods,
  ...ownershipMethods,
};
type MethodName = keyof typeof METHODS;

const findMethod = (name: string): Method | undefined =>
  Object.hasOwn(METHODS, name) ? METHODS[name as MethodName] : undefined;

export async function dispatch(wallet: Wallet, request: RpcRequest): Promise<RpcAnswer> {
  const { id, method: name, params } = request;
  const found = findMethod(name);
  if (found === undefined)
    return rpcError(
      id,
      RPC_ERRORS.method,
      name === 'subscribe' || name === 'unsubscribe'
        ? 'offered on the WebSocket /v1/ws'
        : 'method not found: the methods are listed in docs/wallet.md',
    );
  try {
    return { jsonrpc: '2.0', id, result: await found.call(wallet, params) };
  } catch (error) {
    return failure(id, name, error, wallet.log);
  }
}
