/** The validators that a validator connects to and their addresses, from the chain. */
import { isIP } from 'node:net';
import { type Bytes, equalBytes, fromUtf8 } from '../../protocol/bytes.ts';
import { decodeEndpoint, type Route } from '../../protocol/staking/endpoint.ts';
import { ATTENDANCE_WINDOWS } from '../../protocol/staking/limits.ts';
import { type Reach, reachOf } from '../../runtime/clients/address-reach.ts';
import type { ListenAddress } from '../../runtime/command-line/command-line.ts';
import type { Staking } from '../full-node.ts';
import { byStake, isEligible } from '../ledger/staking/committee.ts';
import { asOf, type Validator } from '../ledger/staking/validator.ts';
import type { Listed, Reachable } from './dial-plan.ts';

type ChainRecords = Pick<Staking, 'stake' | 'intervalCuts' | 'validator' | 'activeValidators'>;

/** More than there are seats: members may lapse, and bonds may change, until the epoch ends. */
const NEXT_ONES = 96;
/** How often the chain's data is read, in cuts; more often if an epoch is short. */
const MOST_CUTS_BETWEEN = 24;

const hostOf = ({ kind, host }: Route): string => {
  if (kind === 'name') return fromUtf8(host);
  if (kind === 'ipv4') return host.join('.');
  return Array.from({ length: 8 }, (_, i) =>
    (((host[2 * i] as number) << 8) | (host[2 * i + 1] as number)).toString(16),
  ).join(':');
};

const routesOf = ({ endpoint }: Validator): ListenAddress[] =>
  decodeEndpoint(endpoint).routes.map((route) => ({ host: hostOf(route), port: route.port }));

export const isTimeToLook = (height: number, intervalCuts: number): boolean =>
  (height + 1) % Math.min(MOST_CUTS_BETWEEN, intervalCuts / ATTENDANCE_WINDOWS) === 0;

/** This validator and its own routes; none if it is not registered. */
export function ownReach(
  { stake, validator }: ChainRecords,
  id: Bytes,
): Pick<Reachable, 'id' | 'routes'> & Partial<Pick<Listed, 'overlayKey'>> {
  const found = validator(id);
  if (found === undefined) return { id, routes: [] };
  const record = asOf(found, stake.committee.epoch);
  return { id, routes: routesOf(record), overlayKey: decodeEndpoint(record.endpoint).overlayKey };
}

/**
 * Whether a registered address may be dialled. Anybody with a bond may register any address, so private addresses are
 * dialled only by validators that have one themselves, according to their own routes, and on a development network.
 */
export function mayDial(own: readonly ListenAddress[], isDevelopment: boolean): (ip: string) => boolean {
  const allowed = new Set<Reach>(['public', ...(isDevelopment ? (['inner', 'here'] as const) : [])]);
  for (const { host } of own) if (isIP(host) !== 0) allowed.add(reachOf(host));
  allowed.delete('nowhere');
  return (ip) => allowed.has(reachOf(ip));
}

/** The committee, and in the last window of an epoch those with the most stake that may sit in the next one: it is known only with the epoch's last cut. */
export function reachableValidators(
  { stake, intervalCuts, validator, activeValidators }: ChainRecords,
  height: number,
  isAllowed: (ip: string) => boolean,
): Listed[] {
  const { epoch, members } = stake.committee;
  const found = new Map<string, Listed>();
  const add = (record: Validator, publicKey: Bytes) => {
    const { overlayKey } = decodeEndpoint(record.endpoint);
    const routes = routesOf(record).filter(({ host }) => isIP(host) === 0 || isAllowed(host));
    const name = Buffer.from(publicKey).toString('latin1');
    const now = found.get(name);
    // Until the epoch ends a member uses its current endpoint.
    if (now === undefined) found.set(name, { id: record.id, publicKey, routes, overlayKey });
    else if (!equalBytes(now.overlayKey, overlayKey)) found.set(name, { ...now, nextOverlayKey: overlayKey });
  };
  for (const { validatorId, publicKey } of members) {
    const record = validator(validatorId);
    if (record !== undefined) add(asOf(record, epoch), publicKey);
  }
  const isLastWindow = ((height + 1) % intervalCuts) * ATTENDANCE_WINDOWS >= intervalCuts * (ATTENDANCE_WINDOWS - 1);
  if (!isLastWindow) return [...found.values()];
  const next = [...activeValidators()].filter((each) => isEligible(each, epoch + 1)).sort(byStake);
  for (const each of next.slice(0, NEXT_ONES)) {
    const record = asOf(each, epoch + 1);
    add(record, record.key);
  }
  return [...found.values()];
}
