/**
 * A connection as the client sees it: bytes of a stream, or frames of a WebSocket. The forms for Node are in
 * transport-node.ts, those for a page in transport-browser.ts.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { Refusal } from '../miner-error.ts';
import type { Endpoint } from './pool-url.ts';

export type TransportEvents = {
  onOpen(): void;
  onData(data: Bytes | string): void;
  /** Called once, after which nothing more comes. */
  onClose(why: Refusal): void;
};

export interface Transport {
  send(data: Bytes | string): void;
  /** Ends the connection; no event follows. */
  close(): void;
}

export type Connect = (endpoint: Endpoint, events: TransportEvents) => Transport;

/** Whether a message is a frame of its own. */
export const isFramed = (endpoint: Endpoint): boolean => endpoint.transport === 'ws' || endpoint.transport === 'wss';
