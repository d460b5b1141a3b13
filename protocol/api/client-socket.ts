/**
 * A WebSocket as the client's streams use it: opened with a subprotocol, text frames in order through one
 * callback. The WebSocket of browsers, that of Node and the `ws` package all fit `SocketConstructor`.
 */
import { ApiError } from './client-calls.ts';

export type SocketEvent = { readonly data?: unknown; readonly code?: number; readonly reason?: string };
export type SocketLike = {
  send(text: string): void;
  close(code?: number, reason?: string): void;
  addEventListener(type: 'open' | 'message' | 'close' | 'error', listener: (event: SocketEvent) => void): void;
};
export type SocketConstructor = new (url: string, protocols: string[]) => SocketLike;

export type StreamDependencies = {
  readonly WebSocket: SocketConstructor;
  readonly sleep: (millis: number) => Promise<void>;
  readonly random: () => number;
};

/** http://host -> ws://host, https://host -> wss://host. */
export const socketUrl = (baseUrl: string, path: string): string =>
  `${baseUrl.replace(/^http/, 'ws').replace(/\/+$/, '')}${path}`;

export type Frame = { readonly type: string; readonly data: Readonly<Record<string, unknown>> };

export function parseFrame(data: unknown): Frame {
  let value: unknown;
  try {
    value = typeof data === 'string' ? JSON.parse(data) : undefined;
  } catch {
    value = undefined;
  }
  const frame = value as Partial<Frame> | undefined | null;
  const isObject = typeof frame === 'object' && frame !== null;
  if (!isObject || typeof frame.type !== 'string' || typeof frame.data !== 'object' || frame.data === null)
    throw new ApiError('client_bad_answer', 0, 'a frame is not {type, data}');
  return frame as Frame;
}
