/** Which bans of operators hold follows the operators' log: after a restart, an empty Redis, or news that an instance did not hear. */
import { expect, test } from 'vitest';
import { operatorKey } from '../../bridge/session/operator-ban.ts';
import { followLoggedBans, type LoggedBan } from '../../pool/api/operator/logged-bans.ts';
import { LocalSharedState } from '../../pool/shared/shared-state.ts';
import { addressOf } from '../bridge/stratum-client.ts';
import { seed } from '../level.ts';
import { randomOf } from '../random.ts';

const MINUTE = 60_000;
const WRITTEN = ['203.0.113.5', '203.0.113.0/24', '2001:db8::1', addressOf(1)];

/** What operators do, and the log of it. */
function operated() {
  const clock = { now: 1_000_000 };
  const entries: (Omit<LoggedBan, 'ageMillis'> & { at: number })[] = [];
  const shared = new LocalSharedState({ resumeMillis: 1, resumeSessions: 1 }, () => clock.now);
  const log = async () => entries.map(({ at, ...entry }) => ({ ...entry, ageMillis: clock.now - at }));
  return {
    clock,
    shared,
    follow: (state = shared) => followLoggedBans(state, log, () => clock.now),
    ban: async (key: string, minutes: number) => {
      entries.push({ action: 'ban', key, minutes, at: clock.now });
      await shared.ban({ key, untilMillis: clock.now + minutes * MINUTE });
    },
    unban: async (written: string) => {
      entries.push({ action: 'unban', key: written, minutes: null, at: clock.now });
      await shared.unban(operatorKey(written) as string);
    },
    entries,
  };
}

test('whatever operators did, who starts with nothing has the bans that hold, and no others', async () => {
  const random = randomOf(seed);
  const { clock, shared, follow, ban, unban } = operated();
  for (let i = 0; i < 40; i++) {
    const written = WRITTEN[random(WRITTEN.length)] as string;
    if (random(3) === 0) await unban(written);
    else await ban(operatorKey(written) as string, 1 + random(20));
    clock.now += random(4 * MINUTE);
    const started = new LocalSharedState({ resumeMillis: 1, resumeSessions: 1 }, () => clock.now);
    await follow(started);
    const sorted = async (state: LocalSharedState) => (await state.bans()).toSorted((a, b) => (a.key < b.key ? -1 : 1));
    expect(await sorted(started)).toEqual(await sorted(shared));
  }
});

test('a ban that was lifted does not come back from an instance that did not hear of it, and bans by score stay', async () => {
  const { clock, shared, follow, ban, unban } = operated();
  await ban('203.0.113.0/24', 60);
  await unban('203.0.113.0/24');
  const untilMillis = clock.now + 10 * MINUTE;
  await shared.ban({ key: '203.0.113.0/24', untilMillis });
  for (const key of ['198.51.100.7', '2001:db8:0:0::/64', 'proxied-127.0.0.1', 'unknown'])
    await shared.ban({ key, untilMillis });
  await follow();
  expect((await shared.bans()).map(({ key }) => key)).toEqual([
    '198.51.100.7',
    '2001:db8:0:0::/64',
    'proxied-127.0.0.1',
    'unknown',
  ]);
});

test('entries that nobody can read ban nobody and stop nothing', async () => {
  const { clock, shared, follow, ban, entries } = operated();
  await ban('203.0.113.5/32', 5);
  for (const [key, minutes] of [
    [null, 5],
    ['', 5],
    ['0.0.0.0/0', 5],
    ['198.51.100.7/32', null],
    ['198.51.100.8/32', Number.NaN],
  ] as const)
    entries.push({ action: 'ban', key, minutes, at: clock.now });
  await follow();
  expect((await shared.bans()).map(({ key }) => key)).toEqual(['203.0.113.5/32']);
});
