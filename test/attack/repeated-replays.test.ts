/** A stream replays up to an hour of cuts for one small request: what is read for it counts against the client's allowance, as pages of cuts do. */
import { expect, test } from 'vitest';
import { PUBLIC_LIMITS } from '../../node/api/api-limits.ts';
import { SOCKETS } from '../../protocol/api/routes.ts';
import { ApiBed } from '../api/api-bed.ts';

const CUTS = 80;
const { path, subprotocol } = SOCKETS.events;

test('whoever has cuts replayed again and again has no more of them than an allowance of pages buys', async () => {
  const rate = { ...PUBLIC_LIMITS.rate, perSecond: 1, burst: 12 };
  const bed = await ApiBed.forTest({ api: { limits: { ...PUBLIC_LIMITS, rate } } });
  await bed.bed.seal(CUTS);
  // At the head there is nothing to replay, and what is too old is not sent.
  for (const after of [CUTS, CUTS + 1]) await bed.socket(`${path}?after_height=${after}`, subprotocol).opened();
  const socket = bed.socket(`${path}?after_height=0`, subprotocol);
  await socket.until('checkpoint');
  for (let height = 1; height <= CUTS; height++) await socket.until('cut_finalized');
  const refused = await bed.socket(`${path}?after_height=0`, subprotocol).refused;
  expect([refused.status, JSON.parse(refused.body).error.code]).toEqual([429, 'too_many_requests']);
  bed.bed.now += (CUTS / 8) * 1_000;
  await bed.socket(path, subprotocol).opened();
});
