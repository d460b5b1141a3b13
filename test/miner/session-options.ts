import type { SessionOptions } from '../../miner/client/session-events.ts';
import { parseAddress } from '../../protocol/address.ts';
import { MINER_ADDRESS } from './pool-fixture.ts';

/** A miner's session as tests open it. */
export const sessionOptions = (over: Partial<SessionOptions> = {}): SessionOptions => ({
  network: 'development',
  address: MINER_ADDRESS,
  own: parseAddress(MINER_ADDRESS).payload,
  worker: '',
  password: '',
  agent: 'test/1',
  tag: '',
  pinned: undefined,
  ...over,
});
