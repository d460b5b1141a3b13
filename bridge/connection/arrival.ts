/** State of a connection before its conversation begins; then `conversation` takes over. Stored on its stream. */
import type { Bytes } from '../../protocol/bytes.ts';
import type { StratumService } from '../service.ts';
import type { Conversation } from './conversation.ts';

export type Arrival = {
  readonly service: StratumService;
  address: string;
  key: string;
  readonly sinceMillis: number;
  /** Set while a PROXY header is still expected. */
  proxied: boolean;
  secure: boolean;
  held: Bytes | null;
  conversation: Conversation | null;
};

export const ARRIVAL = Symbol('arrival');
