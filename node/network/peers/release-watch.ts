/**
 * Whether peers run a newer release than this node (`update_announced`), or follow rules that it does not know
 * (`update_required`, while no cuts come). Peers of other rules are disconnected after the hello, so they are counted
 * then and remembered for a while. Anybody can connect and claim a release, so one stranger is not enough: it must come
 * from a peer that this node chose, or from several strangers of different networks.
 */
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { SteadyClock } from '../../../runtime/clock/clock.ts';
import type { PeerInfo, PeerName, RefusedPeer } from '../thread/host-types.ts';
import { isNewer } from './hello.ts';
import { subnetOf } from './inbound-limits.ts';
import { ipOf } from './peer-address.ts';

const STRANGERS = 3;
/** As long as a peer of other rules is not dialled again, and the next attempt after that. */
const REMEMBERED_MILLIS = 2 * 3_600_000;
const MAX_REMEMBERED = 256;

type Seen = Pick<PeerInfo, 'address' | 'direction'>;

const areEnough = (seen: readonly Seen[]): boolean =>
  seen.some(({ direction }) => direction === 'outbound') ||
  new Set(seen.map(({ address }) => subnetOf(ipOf(address) ?? ''))).size >= STRANGERS;

export class ReleaseWatch {
  readonly #own: { readonly release: string; readonly ruleSet: number };
  readonly #steady: SteadyClock;
  readonly #newer = new Map<PeerName, PeerInfo>();
  readonly #refused = new BoundedMap<PeerName, RefusedPeer & { readonly atMillis: number }>(MAX_REMEMBERED);

  constructor(own: { readonly release: string; readonly ruleSet: number }, steady: SteadyClock) {
    this.#own = own;
    this.#steady = steady;
  }

  joined(peer: PeerName, info: PeerInfo): void {
    if (isNewer(info.release, this.#own.release)) this.#newer.set(peer, info);
  }

  left(peer: PeerName): void {
    this.#newer.delete(peer);
  }

  /** A peer of this chain that follows other rules; older ones say nothing. */
  refused(peer: PeerName, info: RefusedPeer): void {
    if (info.ruleSet <= this.#own.ruleSet) return;
    const before = this.#refused.use(peer);
    // One that this node chose stays chosen when it calls back.
    const { address, direction } = before?.direction === 'outbound' ? before : info;
    this.#refused.set(peer, { ...info, address, direction, atMillis: this.#steady() });
  }

  isAnnounced(): boolean {
    return areEnough([...this.#newer.values(), ...this.#withNewRules()]);
  }

  /** Enough peers follow newer rules. Only a claim: a node that gets cuts takes them for no reason to stop. */
  hasNewRules(): boolean {
    return areEnough(this.#withNewRules());
  }

  #withNewRules(): readonly RefusedPeer[] {
    const since = this.#steady() - REMEMBERED_MILLIS;
    return [...this.#refused.values()].filter(({ atMillis }) => atMillis >= since);
  }
}
