/**
 * The internals of Node beneath `net.Socket` that a byte stream needs. They are not documented, so they are used only
 * where all of them look as expected, in versions of Node that the tests ran on; otherwise `net.Socket` is used. An
 * operator can force that too: SVC_STREAMS=sockets in the environment.
 */
import type { Server } from 'node:net';
import type { Bytes } from '../../protocol/bytes.ts';

/**
 * A request to the system: a write or a shutdown. Its `oncomplete` is called only if it did not complete synchronously.
 */
export type Request = {
  oncomplete: (this: Request, status: number) => void;
  /** Our own fields, for `oncomplete`; Node ignores them. */
  stream: object | null;
  bytes: number;
  data: Bytes | string | null;
};

export interface Handle {
  onread: (this: Handle) => void;
  readStart(): number;
  readStop(): number;
  useUserBuffer(buffer: Uint8Array): void;
  writeBuffer(request: Request, data: Bytes): number;
  writeLatin1String(request: Request, text: string): number;
  writeUtf8String(request: Request, text: string): number;
  shutdown(request: Request): number;
  close(closed: (this: Handle) => void): void;
  getpeername(out: { address?: string }): number;
  setNoDelay(isOn: boolean): number;
}

type ServerHandle = Handle & { onconnection: (status: number, handle: Handle | undefined) => void };

export type HandleParts = {
  readonly WriteWrap: new () => Request;
  readonly ShutdownWrap: new () => Request;
  /** Results of the last call on a handle of this thread, indexed by the numbers below. */
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kBytesWritten: number;
  readonly kLastWriteWasAsync: number;
};

const TESTED_VERSIONS = ['24'];
const FUNCTIONS = ['WriteWrap', 'ShutdownWrap'] as const;
const NUMBERS = ['kReadBytesOrError', 'kBytesWritten', 'kLastWriteWasAsync'] as const;
const METHODS = [
  'readStart',
  'readStop',
  'useUserBuffer',
  'writeBuffer',
  'writeLatin1String',
  'writeUtf8String',
  'shutdown',
  'close',
  'getpeername',
  'setNoDelay',
] as const;

function readParts(): HandleParts | null {
  const { SVC_STREAMS: asked } = process.env;
  if (asked === 'sockets') return null;
  if (!TESTED_VERSIONS.includes(process.versions.node.split('.')[0] as string)) return null;
  const { binding } = process as unknown as { binding?: (name: string) => Partial<HandleParts> };
  try {
    const parts = binding?.('stream_wrap');
    if (parts === undefined || !ArrayBuffer.isView(parts.streamBaseState)) return null;
    const isWhole =
      FUNCTIONS.every((name) => typeof parts[name] === 'function') &&
      NUMBERS.every((name) => typeof parts[name] === 'number');
    return isWhole ? (parts as HandleParts) : null;
  } catch {
    return null;
  }
}

/** Null where this version of Node is not known. */
export const handleParts: HandleParts | null = readParts();

/**
 * Makes a listening server pass its connections to `take` as handles. Returns false, and changes nothing, where that is
 * not possible.
 */
export function takeHandles(server: Server, take: (handle: Handle) => void, refused: () => void): boolean {
  const { _handle: handle } = server as unknown as { _handle?: ServerHandle | null };
  if (handleParts === null || handle == null || typeof handle.onconnection !== 'function') return false;
  if (!METHODS.every((name) => typeof handle[name] === 'function')) return false;
  handle.onconnection = (status, client) => {
    if (status === 0 && client !== undefined) take(client);
    else refused();
  };
  return true;
}
