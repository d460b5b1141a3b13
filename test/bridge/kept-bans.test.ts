import { expect, test } from 'vitest';
import { BAN_DEFAULTS, BanList } from '../../bridge/session/ban-score.ts';
import { operatorKey } from '../../bridge/session/operator-ban.ts';
import { LocalSharedState } from '../../pool/shared/shared-state.ts';

const OPERATORS = ['192.0.2.0/24', '2001:db8::/32', '198.51.100.7'].map((written) => operatorKey(written) as string);
const strangers = (count: number) =>
  Array.from({ length: count }, (_, i) => `2a00:${(i >> 16).toString(16)}:${(i & 0xffff).toString(16)}:0::/64`);

test('addresses of strangers that are banned by score displace no ban of the operator', () => {
  const list = new BanList({ ...BAN_DEFAULTS, capacity: 100 });
  for (const key of OPERATORS) list.ban(key, 1_000);
  for (const key of strangers(1_000)) list.ban(key, 1_000);
  expect(list.bans(0).map(({ key }) => key)).toEqual(expect.arrayContaining(OPERATORS));
  expect(list.bans(0).length).toBe(100 + OPERATORS.length);
  for (const key of OPERATORS) expect(list.unban(key)).toBe(true);
});

test('bans that nobody looks at are bounded in a pool of one instance', async () => {
  const shared = new LocalSharedState({ resumeMillis: 1, resumeSessions: 1 }, () => 0);
  for (const key of OPERATORS) await shared.ban({ key, untilMillis: 1_000 });
  for (const key of strangers(BAN_DEFAULTS.capacity + 1_000)) await shared.ban({ key, untilMillis: 1_000 });
  const bans = await shared.bans();
  expect(bans.length).toBe(BAN_DEFAULTS.capacity + OPERATORS.length);
  expect(bans.map(({ key }) => key)).toEqual(expect.arrayContaining(OPERATORS));
});
