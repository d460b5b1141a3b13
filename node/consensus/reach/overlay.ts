/**
 * The network of separate validators (docs/decisions/0005-validators-over-plain-tcp.md): a listener, and connections to
 * the neighbours that the operator named and to the validators that registered a route. Strangers may connect: all
 * relevant messages are signed, the cost of one connection or address is bounded, and members and named neighbours have
 * places that strangers cannot take (inbound-places.ts).
 */
import { randomBytes, randomInt } from 'node:crypto';
import { isIP, type LookupFunction } from 'node:net';
import { type Bytes, equalBytes, toHex } from '../../../protocol/bytes.ts';
import { validatorId } from '../../../protocol/staking/names.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import { clientKey, isLoopback } from '../../../runtime/clients/client-address.ts';
import { FairShare } from '../../../runtime/clients/fair-share.ts';
import { type Bucket, fullBucket, give, take } from '../../../runtime/clients/token-bucket.ts';
import type { LedgerClock, SteadyClock } from '../../../runtime/clock/clock.ts';
import { type ListenAddress, showListenAddress } from '../../../runtime/command-line/command-line.ts';
import type { BindAddress } from '../../../runtime/listen-address.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { nameOf } from '../../ledger/registration.ts';
import { verifyMessage } from '../../ml-dsa.ts';
import type { DialOrder, Listing } from '../../validator/dial-plan.ts';
import type { RememberedMembers } from '../../validator/remembered-members.ts';
import type { Peer } from '../engine/effects.ts';
import { MAX_KNOWN, ReadingAllowance, SharedReading } from '../link/allowance.ts';
import { CHALLENGE_BYTES, type Identity, NO_VALIDATOR } from '../link/frames.ts';
import { type Claim, LINK_LIMITS, type LinkLimits, OverlayLink } from '../link/overlay-link.ts';
import { processName } from '../link/process-name.ts';
import type { OverlaySocket } from '../link/quic-socket.ts';
import { type OwnCircuit, type ProvenLink, Relaying } from '../relays/relaying.ts';
import { Dialler, type Ending, LOOK_MILLIS, type Target } from './dialler.ts';
import { admit, placeFor, RELAYED } from './inbound-places.ts';
import { OverlayIdentities, type Verdict } from './overlay-identities.ts';
import {
  BARRED_FORGER_MILLIS,
  BARRED_MILLIS,
  CHECK_AGAIN_MILLIS,
  CONNECTIONS,
  FIRST_RETRY_MILLIS,
  LAST_RETRY_MILLIS,
  MAX_BARRED,
  MAX_COUNTED,
  NEWCOMERS,
  SENT_TO_STRANGERS,
  STRANGER,
  STRANGERS,
} from './overlay-limits.ts';
import { accountByWay, accountOf, type Link, limitKeyOf, OverlayLinks } from './overlay-links.ts';
import { type OverlayAddress, OverlayListeners } from './overlay-listeners.ts';
import type { OverlayQuic } from './overlay-quic.ts';
import { RegisteredRoutes } from './registered-routes.ts';
import type { Companion, Proven, Transport, TransportEvents } from './transport.ts';

const KIBIBYTE = 1024;

export type OverlaySettings = {
  readonly chainId: Bytes;
  readonly binds: readonly BindAddress[];
  readonly neighbours: readonly ListenAddress[];
  readonly limits?: LinkLimits;
};

export type OverlayDependencies = {
  readonly log: Logger;
  readonly steady: SteadyClock;
  /** Milliseconds since 1970, not monotonic. */
  readonly now?: LedgerClock | undefined;
  /** This node's identity; without it, it only follows. */
  readonly signer?: { readonly publicKey: Bytes; readonly sign: (message: Bytes) => Promise<Bytes> } | undefined;
  /** Keys of the current committee. */
  readonly members?: () => readonly { readonly publicKey: Bytes }[];
  /** Where they proved them in earlier runs, and what is done with it when it has changed. */
  readonly remembered?: RememberedMembers | undefined;
  readonly remember?: ((members: RememberedMembers) => void) | undefined;
  /** Resolves the names of registered routes, instead of the system. */
  readonly lookup?: LookupFunction | undefined;
  /** Closed with the transport. */
  readonly quic?: OverlayQuic | undefined;
  /** This machine: not limited by address, never barred. */
  readonly isNear?: (address: string) => boolean;
};

export class Overlay implements Transport {
  readonly #settings: OverlaySettings;
  readonly #with: OverlayDependencies;
  readonly process: Bytes;
  readonly #validator: Bytes;
  readonly #isNear: (address: string) => boolean;
  readonly #links = new OverlayLinks();
  readonly #barred = new BoundedMap<string, number>(MAX_BARRED);
  /** Proven keys that broke a rule: a member may have any number of addresses. */
  readonly #barredKeys = new BoundedMap<string, number>(MAX_KNOWN);
  readonly #connections = new BoundedMap<string, Bucket>(MAX_COUNTED);
  #newcomers: Bucket;
  /** Addresses of neighbours named by the operator: given directly, or resolved from names. */
  readonly #named = new Map<ListenAddress, string>();
  /** By neighbour: a new connection is no new allowance. */
  readonly #reading: SharedReading;
  readonly #strangers: ReadingAllowance;
  readonly #sentToStrangers: FairShare;
  readonly #dialler: Dialler;
  readonly #routes: RegisteredRoutes;
  readonly #listeners: OverlayListeners;
  readonly #relaying: Relaying;
  readonly #identities: OverlayIdentities;
  #timers: readonly NodeJS.Timeout[] = [];
  #events: TransportEvents | undefined;
  #count = 0;
  #closed = false;

  constructor(settings: OverlaySettings, dependencies: OverlayDependencies) {
    this.#settings = settings;
    this.#with = dependencies;
    this.#isNear = dependencies.isNear ?? isLoopback;
    const now = dependencies.steady();
    this.process = processName(now);
    this.#identities = new OverlayIdentities(dependencies);
    const { signer } = dependencies;
    this.#validator = signer === undefined ? NO_VALIDATOR : validatorId(signer.publicKey);
    this.#newcomers = fullBucket(NEWCOMERS, now);
    this.#sentToStrangers = new FairShare(SENT_TO_STRANGERS, now);
    const { bytes, messages } = settings.limits ?? LINK_LIMITS;
    this.#reading = new SharedReading(bytes, messages, now);
    this.#strangers = new ReadingAllowance(STRANGERS.bytes, STRANGERS.messages, now, STRANGERS.mostMillis);
    this.#dialler = new Dialler(dependencies.steady, dependencies.quic);
    this.#routes = new RegisteredRoutes({
      dialler: this.#dialler,
      steady: dependencies.steady,
      lookup: dependencies.lookup,
      hasQuic: dependencies.quic !== undefined,
      isConnected: (key) => this.#links.isConnected(key),
      connected: (socket, address, key, ended) => this.#dialled(socket, address, key, ended),
    });
    this.#listeners = new OverlayListeners(dependencies.log, (socket) => this.#accept(socket), dependencies.quic);
    this.#relaying = new Relaying({
      chainId: settings.chainId,
      log: dependencies.log,
      steady: dependencies.steady,
      now: dependencies.now ?? ((): number => dependencies.steady()),
      links: () => [...this.#links.keys()].flatMap((peer) => this.#provenLink(peer) ?? []),
      link: (peer) => this.#provenLink(peer),
      send: (peer, bytes) => this.send(peer, bytes),
      connected: (socket, circuit) => this.#circuit(socket, circuit),
    });
    for (const neighbour of settings.neighbours)
      if (isIP(neighbour.host) !== 0) this.#named.set(neighbour, clientKey(neighbour.host));
  }

  /** Opens the listeners and returns their addresses. Before `start` all connections are refused. */
  async listen(): Promise<OverlayAddress[]> {
    const addresses: OverlayAddress[] = [];
    for (const bind of this.#settings.binds) addresses.push(...(await this.#listeners.open(bind)));
    return addresses;
  }

  start(events: TransportEvents): void {
    this.#events = events;
    for (const neighbour of this.#settings.neighbours) this.#dialler.keep(this.#neighbour(neighbour));
    const failed = (error: unknown) => this.#with.log.error('neighbours could not be checked again', { error });
    this.#timers = [
      setInterval(() => void this.#checkAgain().catch(failed), CHECK_AGAIN_MILLIS),
      setInterval(() => this.#relaying.tick(), LOOK_MILLIS),
    ];
  }

  /** Replaces the registered validators to connect to. */
  reach(orders: readonly DialOrder[]): void {
    if (!this.#closed) this.#routes.set(orders);
  }

  /** The chain's data about this validator and others, for those without a route (rule 24). */
  know(listing: Listing): void {
    this.#identities.know(listing.validators);
    this.#relaying.know(listing);
  }

  peers(): readonly Peer[] {
    return this.#links.ready();
  }

  known(): readonly Peer[] {
    return this.#links.known();
  }

  isKnown(peer: Peer): boolean {
    return this.#links.isKnown(peer);
  }

  limitKey(peer: Peer): string {
    return limitKeyOf(this.#links.get(peer)?.address ?? String(peer).replace(/#\d+$/, ''));
  }

  accountOf(peer: Peer): string {
    const found = this.#links.get(peer);
    return found === undefined ? this.limitKey(peer) : accountOf(found);
  }

  accountByWay(peer: Peer): string {
    const found = this.#links.get(peer);
    return found === undefined ? this.limitKey(peer) : accountByWay(found);
  }

  nearest(peer: Peer): Peer {
    return this.#links.nearest(peer);
  }

  company(): readonly Companion[] {
    return this.#links.company();
  }

  proven(peer: Peer): Proven | undefined {
    const found = this.#links.get(peer);
    const process = found?.link.process;
    return found?.isReady && found.key !== undefined && process !== undefined ? { key: found.key, process } : undefined;
  }

  send(peer: Peer, bytes: Bytes): void {
    this.#links.get(peer)?.link.send(bytes);
  }

  drop(peer: Peer, reason: string): void {
    const found = this.#links.get(peer);
    if (found === undefined) return;
    const { key, address } = found;
    this.#bar(address, BARRED_MILLIS);
    found.link.end(reason);
    if (key === undefined || this.#isNear(address)) return;
    this.#barredKeys.set(nameOf(key), this.#with.steady() + BARRED_MILLIS);
    for (const other of this.#links.of(key)) other.link.end(reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#identities.keep();
    for (const timer of this.#timers) clearInterval(timer);
    this.#dialler.close();
    this.#relaying.close();
    for (const { link } of [...this.#links.values()]) link.end();
    await this.#listeners.close();
    await this.#with.quic?.close();
  }

  #bar(address: string, millis: number): void {
    if (!this.#isNear(address)) this.#barred.set(limitKeyOf(address), this.#with.steady() + millis);
  }

  /** Whether this address may connect now. */
  #admits(address: string): boolean {
    if (this.#closed || this.#events === undefined) return false;
    const [key, now, isNear] = [limitKeyOf(address), this.#with.steady(), this.#isNear(address)];
    if (!isNear) {
      if ((this.#barred.get(key) ?? 0) > now) return false;
      const bucket = take(this.#connections.get(key) ?? fullBucket(CONNECTIONS, now), CONNECTIONS, now);
      if (bucket === undefined || !this.#admitsNewcomer(key)) return false;
      this.#connections.set(key, bucket);
    }
    const found = admit(this.#links.places(this.#isNear), { address: key, isNear }, randomInt);
    if (found.admitted && found.evict !== undefined) this.#links.get(found.evict)?.link.end('others wait');
    return found.admitted;
  }

  /** Addresses that are known do not count. */
  #admitsNewcomer(key: string): boolean {
    if (key.startsWith(RELAYED) || this.#identities.isFamiliar(key) || this.#isNamed(key)) return true;
    const bucket = take(this.#newcomers, NEWCOMERS, this.#with.steady());
    if (bucket !== undefined) this.#newcomers = bucket;
    return bucket !== undefined;
  }

  #isNamed(key: string): boolean {
    return [...this.#named.values()].includes(key);
  }

  #accept(socket: OverlaySocket): void {
    const address = socket.remoteAddress ?? '';
    if (this.#admits(address)) this.#link(socket, address, true, () => undefined);
    else {
      socket.on('error', () => undefined);
      socket.destroy();
    }
  }

  #link(socket: OverlaySocket, address: string, isInbound: boolean, ended: Ending, expected?: Bytes): void {
    const { remoteAddress: host, remotePort: port } = socket;
    const isDialled = !isInbound && !address.startsWith(RELAYED) && host !== undefined && port !== undefined;
    const peer = `${address}#${++this.#count}`;
    const { log, steady } = this.#with;
    const { chainId, limits = LINK_LIMITS } = this.#settings;
    const own = {
      chainId,
      process: this.process,
      challenge: randomBytes(CHALLENGE_BYTES),
      validator: this.#validator,
    };
    // A link may end while it is being made.
    let known: Link | undefined;
    let verdict: Verdict = 'unknown';
    const identify = async (message: Bytes, claim: Claim | undefined) => {
      if (!isInbound) return this.#identity(message);
      verdict = await this.#identities.verify(claim, limitKeyOf(address));
      if (verdict === 'true' || (verdict === 'unknown' && this.#identities.mayProve())) return this.#identity(message);
      if (known !== undefined) known.isWithheld = true;
      return undefined;
    };
    const link = new OverlayLink(
      socket,
      {
        own,
        limits,
        role: isInbound ? 'dialled' : 'dialler',
        identify,
        expects: expected && validatorId(expected),
        mayWait: (bytes) => known === undefined || this.#links.mayWait(known, bytes),
      },
      {
        ready: (claim) => {
          if (known === undefined) return;
          // The other end of a circuit must be the expected validator.
          if (isInbound && expected !== undefined && verdict !== 'true') return link.end('it did not prove its key');
          if (!(isInbound ? this.#place(peer, known, claim, verdict) : this.#isWho(known, claim, expected))) return;
          known.isReady = true;
          if (known.standing !== 'stranger') link.countWith(this.#readingOf(known));
          log.debug('a neighbour joined', { peer, standing: known.standing });
          this.#relaying.joined(peer);
          this.#events?.joined(peer);
        },
        message: (bytes) => this.#relaying.take(peer, bytes) || this.#events?.message(peer, bytes),
        ...(isInbound &&
          expected === undefined && {
            circuit: {
              isExpected: (token) => this.#relaying.isExpected(token),
              begin: (half, token) => {
                this.#links.delete(peer);
                this.#relaying.arrived(half, token);
                // It was invited: circuits requested by others do not count against its address.
                const bucket = this.#connections.get(limitKeyOf(address));
                if (bucket !== undefined) this.#connections.set(limitKeyOf(address), give(bucket, CONNECTIONS, 1));
              },
            },
          }),
        ended: (reason) => {
          const wasReady = known?.isReady ?? false;
          this.#links.delete(peer);
          this.#relaying.left(peer);
          // Strangers come and go: their faults are not worth a log line for operators.
          const isKnown = wasReady ? known?.standing !== 'stranger' : !(isInbound || expected);
          if (reason !== undefined) log[isKnown ? 'info' : 'debug']('a neighbour was dropped', { peer, reason });
          if (wasReady) this.#events?.left(peer);
          ended(wasReady, reason);
        },
      },
      steady,
    );
    const at = isDialled ? { host, port } : undefined;
    known = { link, address, isInbound, at, isReady: false, standing: isInbound ? 'waiting' : 'named' };
    this.#links.set(peer, known);
  }

  async #identity(message: Bytes): Promise<Identity | undefined> {
    const { signer } = this.#with;
    return signer && { publicKey: signer.publicKey, signature: await signer.sign(message) };
  }

  /** For a dialled connection. Without proof it is still a neighbour, but not at a registered route. */
  #isWho(known: Link, claim: Claim | undefined, expected: Bytes | undefined): boolean {
    if (expected !== undefined && (claim === undefined || !equalBytes(claim.identity.publicKey, expected))) {
      known.link.end('it did not prove the key of the validator that registered this route');
      return false;
    }
    if (claim === undefined) return true;
    const { publicKey, signature } = claim.identity;
    if (verifyMessage(publicKey, claim.message, signature)) known.key = publicKey;
    else known.link.end('its identity is false');
    return known.key !== undefined;
  }

  /** Assigns a place to an identified connection; false if it must be closed. */
  #place(peer: Peer, known: Link, claim: Claim | undefined, verdict: Verdict): boolean {
    if (verdict === 'false') {
      this.#bar(known.address, BARRED_FORGER_MILLIS);
      known.link.end('its identity is false');
      return false;
    }
    const [address, isNear] = [limitKeyOf(known.address), this.#isNear(known.address)];
    const key = verdict === 'true' ? (claim?.identity.publicKey ?? known.key) : undefined;
    if (key !== undefined && (this.#barredKeys.get(nameOf(key)) ?? 0) > this.#with.steady()) {
      known.link.end('it broke a rule a moment ago');
      return false;
    }
    // A key stays proven when its seat is lost; its place is a stranger's then.
    const member = key !== undefined && this.#identities.isMember(key) ? nameOf(key) : undefined;
    const places = this.#links.places(this.#isNear, peer);
    const isNamed =
      !isNear && this.#isNamed(address) && placeFor(places, { address, isNear, standing: 'named' }).admitted;
    const standing = member !== undefined ? 'member' : isNamed ? 'named' : 'stranger';
    const found = placeFor(places, { address, isNear, standing, member });
    if (!found.admitted) {
      known.link.end('there is no place');
      return false;
    }
    if (member !== undefined && key !== undefined) this.#identities.proved(key, address);
    Object.assign(known, { standing, member, key, claim: verdict === 'unknown' ? claim : undefined });
    if (standing === 'stranger') {
      const own = new ReadingAllowance(STRANGER.bytes, STRANGER.messages, this.#with.steady());
      known.link.restrict({
        reading: [own, this.#strangers],
        queuedBytes: STRANGER.queuedBytes,
        maySend: (bytes) => this.#sentToStrangers.take(address, this.#with.steady(), bytes / KIBIBYTE),
      });
    }
    if (found.evict !== undefined) this.#links.get(found.evict)?.link.end('another has its place');
    return true;
  }

  /** Committees change; identities that were postponed are checked now. */
  async #checkAgain(): Promise<void> {
    this.#identities.keep();
    for (const [peer, known] of [...this.#links]) {
      const { claim, link, key, standing } = known;
      if (!known.isReady || !known.isInbound) continue;
      if (key !== undefined && this.#identities.isMember(key) !== (standing === 'member')) {
        if (this.#place(peer, known, undefined, 'true') && known.standing === 'member') this.#release(known);
        this.#relaying.joined(peer);
        continue;
      }
      const verdict = key === undefined ? await this.#identities.verify(claim, limitKeyOf(known.address)) : 'unknown';
      // It may have gone meanwhile.
      if (verdict === 'unknown' || !this.#links.has(peer)) continue;
      // This side has not sent its identity; a new connection will start with it.
      if (verdict === 'true' && known.isWithheld) link.end();
      else if (this.#place(peer, known, claim, verdict)) {
        if (known.standing === 'member') this.#release(known);
        this.#relaying.joined(peer);
      }
    }
  }

  #release(known: Link): void {
    known.link.release();
    known.link.countWith(this.#readingOf(known));
  }

  /** What a neighbour that is known may send, on all its direct connections, and on all its circuits. */
  #readingOf(known: Link): Pick<ReadingAllowance, 'spend'> {
    return this.#reading.of(accountByWay(known), this.#with.steady());
  }

  #neighbour(neighbour: ListenAddress): Target {
    return {
      next: () => neighbour,
      firstRetryMillis: FIRST_RETRY_MILLIS,
      lastRetryMillis: LAST_RETRY_MILLIS,
      connected: (socket, _, ended) => {
        if (socket.remoteAddress !== undefined) this.#named.set(neighbour, limitKeyOf(socket.remoteAddress));
        this.#dialled(socket, neighbour, undefined, ended);
      },
    };
  }

  #dialled(socket: OverlaySocket, to: ListenAddress, expected: Bytes | undefined, ended: Ending): void {
    const [{ log }, neighbour] = [this.#with, showListenAddress(to)];
    this.#link(
      socket,
      socket.remoteAddress ?? to.host,
      false,
      (wasReady, reason) => {
        if (reason !== undefined && !wasReady)
          // A wrong registration of another validator is not this operator's problem.
          log[expected === undefined ? 'warn' : 'debug']('a neighbour cannot be used', { neighbour, reason });
        ended(wasReady, reason);
      },
      expected,
    );
  }

  #provenLink(peer: Peer): ProvenLink | undefined {
    return this.#links.provenOf(peer, (key) => this.#identities.isMember(key));
  }

  /** A fault of one end does not count against the other, nor against the same validator through another relay. */
  #circuit(socket: OverlaySocket, { validator: { id, publicKey }, role, relay }: OwnCircuit): void {
    const [of, by] = [id, relay].map((each) => toHex(each).slice(0, 16));
    const address = `${RELAYED}${of} by ${by}`;
    if (this.#admits(address)) this.#link(socket, address, role === 'dialled', () => undefined, publicKey);
    else socket.destroy();
  }
}
