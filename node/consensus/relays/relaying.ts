/**
 * Lets validators without an open port reach each other (consensus rule 24; specification: Validator reachability).
 * Each keeps a slot at two relays, which are members with a route that it is connected to, and announces them in a
 * signed record; members store and forward records. To reach another such validator, it requests a circuit from a relay
 * in that one's record. Only relays are dialled, at addresses that were dialled before.
 */
import { randomInt } from 'node:crypto';
import { type Bytes, equalBytes } from '../../../protocol/bytes.ts';
import { SureShare } from '../../../runtime/clients/sure-share.ts';
import type { LedgerClock, SteadyClock } from '../../../runtime/clock/clock.ts';
import type { ListenAddress } from '../../../runtime/command-line/command-line.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { nameOf } from '../../ledger/registration.ts';
import { dialAfter, type Listed, type Listing, type Reachable } from '../../validator/dial-plan.ts';
import type { Peer } from '../engine/effects.ts';
import { MAX_KNOWN } from '../link/allowance.ts';
import type { Role } from '../link/channel.ts';
import type { OverlaySocket } from '../link/quic-socket.ts';
import { joinCircuit } from './circuit-join.ts';
import { type CircuitMessage, decodeCircuitMessage, encodeCircuitMessage } from './circuit-messages.ts';
import { OwnSlots } from './own-slots.ts';
import { Relay, type RelayClient } from './relay.ts';
import { RelayBook } from './relay-book.ts';
import { RelayDials } from './relay-dials.ts';
import { CIRCUIT, RECORD } from './relay-limits.ts';
import { decodeRecord, judgeRecord, signRecord } from './relay-record.ts';

/** A connection whose other end proved its key. */
export type ProvenLink = {
  readonly peer: Peer;
  readonly key: Bytes;
  readonly isMember: boolean;
  /** The dialled address; undefined for an incoming connection, and for one through a relay. */
  readonly at?: ListenAddress | undefined;
};

export type OwnCircuit = { readonly validator: Reachable; readonly role: Role; readonly relay: Bytes };

export type RelayingDependencies = {
  readonly chainId: Bytes;
  readonly log: Logger;
  readonly steady: SteadyClock;
  /** Milliseconds since 1970. */
  readonly now: LedgerClock;
  links(): readonly ProvenLink[];
  /** Undefined if it proved nothing. */
  link(peer: Peer): ProvenLink | undefined;
  send(peer: Peer, bytes: Bytes): void;
  /** One half of a circuit through this relay: it is kept only if the other end proves this validator's key. */
  connected(socket: OverlaySocket, circuit: OwnCircuit): void;
};

const NOBODY: Listing = { own: { id: new Uint8Array(0), routes: [] }, validators: [] };

export class Relaying {
  readonly #with: RelayingDependencies;
  readonly #book: RelayBook;
  readonly #relay: Relay;
  readonly #slots = new OwnSlots();
  readonly #dials = new RelayDials();
  /** By key, also while it is away: a new connection is no new allowance. */
  readonly #checks: SureShare;
  /** Relays that were asked for a circuit, by the validator at its other end. */
  readonly #asked = new Map<string, Peer>();
  readonly #joins = new Set<{ readonly peer: Peer; readonly end: () => void }>();
  #listing = NOBODY;
  #others: readonly Listed[] = [];
  /** The other validators, with their current entries. */
  #listed: ReadonlyMap<string, Listed> = new Map();
  #announced: { readonly relays: readonly string[]; readonly at: number; readonly bytes: Bytes } | undefined;
  #sequence = 0n;

  constructor(dependencies: RelayingDependencies) {
    this.#with = dependencies;
    this.#book = new RelayBook(dependencies);
    this.#relay = new Relay(dependencies);
    this.#checks = new SureShare(RECORD.checks, MAX_KNOWN, dependencies.steady());
  }

  /** Replaces the data about validators. */
  know(listing: Listing): void {
    this.#listing = listing;
    this.#others = listing.validators.filter(({ id }) => !equalBytes(id, listing.own.id));
    // Only the first entry of each is used.
    this.#listed = new Map([...this.#others].reverse().map((validator) => [nameOf(validator.id), validator]));
    this.#book.know(new Map(this.#others.map(({ id }) => [nameOf(id), this.#overlayKeysOf(id)])));
    for (const name of this.#asked.keys()) if (!this.#listed.has(name)) this.#asked.delete(name);
  }

  /** Current keys and those of the next epoch. */
  #overlayKeysOf(id: Bytes): readonly Bytes[] {
    return this.#listing.validators
      .filter((each) => equalBytes(each.id, id))
      .flatMap(({ overlayKey, nextOverlayKey }) => [overlayKey, ...(nextOverlayKey ? [nextOverlayKey] : [])]);
  }

  /** Circuits of others through this node. */
  get circuits(): number {
    return this.#relay.circuits;
  }

  /** Relays that this validator has a slot at. */
  get relays(): readonly string[] {
    return this.#slots.relays();
  }

  joined(peer: Peer): void {
    if (this.#with.link(peer) === undefined) return;
    const records = [...this.#book.all(), ...(this.#announced === undefined ? [] : [this.#announced.bytes])];
    for (const bytes of records) this.#with.send(peer, encodeCircuitMessage({ type: 'record', bytes }));
  }

  left(peer: Peer): void {
    this.#relay.left(peer);
  }

  /** Whether this node issued the token, and it was not used yet. */
  isExpected(token: Bytes): boolean {
    return this.#relay.isExpected(token);
  }

  /** A connection that began with such a token. */
  arrived(socket: OverlaySocket, token: Bytes): void {
    this.#relay.arrived(socket, token);
  }

  close(): void {
    this.#relay.close();
    for (const { end } of [...this.#joins]) end();
  }

  /**
   * Whether it is a message about relays; those of strangers are ignored. Throws a ProtocolError for a malformed one.
   */
  take(peer: Peer, bytes: Bytes): boolean {
    const message = decodeCircuitMessage(bytes);
    if (message === undefined) return false;
    const link = this.#with.link(peer);
    if (link !== undefined) this.#heard(link, message);
    return true;
  }

  #heard(link: ProvenLink, message: CircuitMessage): void {
    const { peer } = link;
    if (message.type === 'record') this.#record(link, message.bytes);
    else if (message.type === 'granted') this.#slots.granted(peer);
    else if (message.type === 'invitation') this.#invited(link, message);
    else {
      const client = this.#clientOf(link);
      if (client === undefined) return;
      if (message.type === 'slot') this.#relay.slot(client);
      else if (message.type === 'circuit')
        this.#relay.circuit(client, { name: nameOf(message.validator), id: message.validator });
    }
  }

  /** Only members may use this node as a relay. */
  #clientOf({ peer, key, isMember }: ProvenLink): RelayClient | undefined {
    if (!isMember) return undefined;
    const found = this.#others.find(({ publicKey }) => equalBytes(publicKey, key));
    return found && { peer, name: nameOf(found.id), id: found.id };
  }

  #record(from: ProvenLink, bytes: Bytes): void {
    this.#ownRecord(from, bytes);
    if (this.#book.take(bytes, () => this.#mayCheck(from)) !== 'take') return;
    for (const link of this.#with.links())
      if (link.peer !== from.peer) this.#with.send(link.peer, encodeCircuitMessage({ type: 'record', bytes }));
  }

  /**
   * A record of this validator that is newer than its last one: it was made while the clock was ahead. The next one
   * must be newer still.
   */
  #ownRecord(from: ProvenLink, bytes: Bytes): void {
    const { own } = this.#listing;
    const signed = decodeRecord(bytes);
    const { validator, sequence } = signed.record;
    if (!equalBytes(validator, own.id) || sequence <= this.#sequence || !this.#mayCheck(from)) return;
    const [now, { chainId }, overlayKeys] = [this.#with.now(), this.#with, this.#overlayKeysOf(own.id)];
    if (judgeRecord(signed, undefined, { chainId, now, overlayKeys }) !== 'take') return;
    this.#sequence = sequence;
    // It is sent at the next check.
    this.#announced &&= { ...this.#announced, at: Number.NEGATIVE_INFINITY };
  }

  #mayCheck({ key }: ProvenLink): boolean {
    return this.#checks.take(nameOf(key), this.#with.steady());
  }

  /** Only from a relay that was asked for this circuit, or that has a slot of this validator. */
  #invited(link: ProvenLink, { validator, role, token }: CircuitMessage & { type: 'invitation' }): void {
    const { peer, at } = link;
    const [name, relay] = [nameOf(validator), this.#clientOf(link)?.id];
    const other = this.#listed.get(name);
    const isAsked = role === 'dialler' && this.#asked.get(name) === peer;
    if (isAsked) this.#asked.delete(name);
    if (other === undefined || at === undefined || relay === undefined) return;
    // A relay that never completes a circuit must not block the other.
    if ([...this.#joins].filter((join) => join.peer === peer).length >= CIRCUIT.joins) return;
    if (role === 'dialler' ? !isAsked : !this.#slots.mayInvite(peer, this.#with.steady())) return;
    const join = {
      peer,
      end: joinCircuit(at, token, (socket) => {
        this.#joins.delete(join);
        if (socket !== undefined) this.#with.connected(socket, { validator: other, role, relay });
      }),
    };
    this.#joins.add(join);
  }

  tick(): void {
    const links = this.#with.links();
    const members = links.flatMap((link) => this.#clientOf(link)?.name ?? []);
    this.#relay.tick(new Set(members), new Set(this.#listed.keys()));
    const { own, validators } = this.#listing;
    if (own.routes.length > 0 || !validators.some(({ id }) => equalBytes(id, own.id))) {
      this.#slots.clear();
      this.#announced = undefined;
      return;
    }
    const relays = new Map<string, Peer>();
    for (const link of links)
      if (link.at !== undefined) {
        const client = this.#clientOf(link);
        if (client !== undefined && !relays.has(client.name)) relays.set(client.name, link.peer);
      }
    const candidates = [...relays].map(([name, peer]) => ({ name, peer }));
    for (const { peer } of this.#slots.ask(candidates, this.#with.steady(), randomInt))
      this.#with.send(peer, encodeCircuitMessage({ type: 'slot' }));
    this.#announce();
    this.#dial(links, relays);
  }

  #announce(): void {
    const { own, sign } = this.#listing;
    const { steady, now, chainId, links, send, log } = this.#with;
    const relays = this.#slots.relays();
    if (sign === undefined || relays.length === 0) return;
    const last = this.#announced;
    const isSame =
      last !== undefined && last.relays.length === relays.length && relays.every((each) => last.relays.includes(each));
    if (isSame && steady() - last.at < RECORD.refreshMillis) return;
    // Based on the clock, so that it increases across restarts.
    this.#sequence = this.#sequence < BigInt(now()) ? BigInt(now()) : this.#sequence + 1n;
    const record = {
      chainId,
      validator: own.id,
      sequence: this.#sequence,
      expiry: BigInt(now() + RECORD.millis),
      relays: relays.map((name) => (this.#listed.get(name) as Listed).id),
    };
    const { bytes } = signRecord(record, sign);
    this.#announced = { relays, at: steady(), bytes };
    if (!isSame) log.info('reached through relays', { relays: record.relays });
    for (const { peer } of links()) send(peer, encodeCircuitMessage({ type: 'record', bytes }));
  }

  #dial(links: readonly ProvenLink[], relays: ReadonlyMap<string, Peer>): void {
    const { own } = this.#listing;
    const wanted = [...this.#listed]
      .filter(
        ([, { routes, publicKey }]) => routes.length === 0 && !links.some(({ key }) => equalBytes(key, publicKey)),
      )
      .map(([name, { id }]) => ({
        name,
        afterMillis: dialAfter(own, { id, routes: [] }),
        relays: this.#book
          .relaysOf(name)
          .map(nameOf)
          .filter((relay) => relays.has(relay)),
      }));
    for (const { name, relay } of this.#dials.next(wanted, new Set(this.#listed.keys()), this.#with.steady())) {
      const peer = relays.get(relay) as Peer;
      this.#asked.set(name, peer);
      this.#with.send(
        peer,
        encodeCircuitMessage({ type: 'circuit', validator: (this.#listed.get(name) as Listed).id }),
      );
    }
  }
}
