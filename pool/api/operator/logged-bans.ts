/**
 * Bans of operators hold until they end or are lifted. The operators' log in the books says which do, and what the
 * instances share follows it: neither a restart nor an empty Redis ends one, and one that was lifted does not come back
 * from an instance that did not hear of it.
 */
import { coverOf, operatorKey } from '../../../bridge/session/operator-ban.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { Sql } from '../../database/connect.ts';
import type { SharedState } from '../../shared/shared-state.ts';

export const MAX_BAN_MINUTES = 365 * 24 * 60;

/** An entry of the log. Its age is by the clock of the database, whose time it has. */
export type LoggedBan = {
  readonly action: 'ban' | 'unban';
  readonly key: string | null;
  readonly minutes: number | null;
  readonly ageMillis: number;
};

/** The bans that hold, by their keys, with their ends. `entries`: the oldest first. */
export function bansOf(entries: readonly LoggedBan[], nowMillis: number): ReadonlyMap<string, number> {
  const bans = new Map<string, number>();
  for (const { action, key: written, minutes, ageMillis } of entries) {
    const key = operatorKey(written ?? '');
    if (key === undefined) continue;
    const untilMillis = Math.floor(nowMillis - ageMillis + (minutes ?? 0) * 60_000);
    if (action === 'ban' && untilMillis > nowMillis) bans.set(key, untilMillis);
    else bans.delete(key);
  }
  return bans;
}

/** What is shared is read first: each of those was in the log before. */
export async function followLoggedBans(
  shared: Pick<SharedState, 'ban' | 'bans' | 'unban'>,
  log: () => Promise<readonly LoggedBan[]>,
  now: SteadyClock,
): Promise<void> {
  const bans = await shared.bans();
  // There may be very many by score, and they come after those of operators.
  const first = bans.findIndex(({ key }) => coverOf(key) === undefined);
  const held = (first === -1 ? bans : bans.slice(0, first)).map(({ key }) => key);
  const logged = bansOf(await log(), now());
  for (const key of held) if (!logged.has(key)) await shared.unban(key);
  for (const [key, untilMillis] of logged) if (!held.includes(key)) await shared.ban({ key, untilMillis });
}

export const readLoggedBans = async (sql: Sql): Promise<readonly LoggedBan[]> =>
  await sql<LoggedBan[]>`select action, details->>'key' as key,
      case when jsonb_typeof(details->'minutes') = 'number' then (details->>'minutes')::float8 end as minutes,
      (extract(epoch from now() - at) * 1000)::float8 as "ageMillis"
    from operator_log
    where action in ('ban', 'unban') and at > now() - make_interval(mins => ${MAX_BAN_MINUTES}) order by id`;
