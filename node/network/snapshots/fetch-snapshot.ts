/**
 * Fetches a snapshot from peers for a new node without a chain: it connects with the genesis document's chain, serves
 * and relays nothing, looks for a snapshot that the trusted cut proves, and fetches its parts from all peers that have
 * it. The result is a file (fetched-file.ts), from which the store is made as from any other; a node that is killed
 * resumes with it.
 */
import { readFileSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Bytes, equalBytes, fromHex, toHex } from '../../../protocol/bytes.ts';
import { ID_BYTES } from '../../../protocol/crypto/identifier.ts';
import type { CutHeader } from '../../../protocol/ledger/cut.ts';
import { chainId, encodeGenesis, type Genesis } from '../../../protocol/ledger/genesis.ts';
import { RULE_SET } from '../../../protocol/transactions/transaction.ts';
import { BoundedMap } from '../../../runtime/bounded-map.ts';
import type { LedgerClock, SteadyClock } from '../../../runtime/clock/clock.ts';
import { writeDurably } from '../../../runtime/files/durable-file.ts';
import type { Logger } from '../../../runtime/log/log.ts';
import { FetchedFile } from '../../snapshot/fetched-file.ts';
import { checkWanted } from '../../snapshot/install-snapshot.ts';
import { SnapshotError } from '../../snapshot/snapshot-error.ts';
import { checkAge, isSnapshotHeight, type ProvenHead } from '../../snapshot/snapshot-head.ts';
import type { Trust } from '../../snapshot/snapshot-options.ts';
import {
  blockRules,
  headRule,
  outlineRules,
  type PartRule,
  pieceRules,
  workOfCuts,
} from '../../snapshot/snapshot-parts.ts';
import { NetworkError } from '../network-error.ts';
import type { NetworkPlan } from '../network-options.ts';
import { type OpenPeers, type PeerLink, threadOfPeers } from '../peer-network.ts';
import { blame, PeerFault } from '../peers/peer-fault.ts';
import { loadPeerKey } from '../peers/peer-key.ts';
import { readRemembered, remember } from '../peers/remembered-peers.ts';
import type { Place } from '../sync/cut-proof.ts';
import { WakeUp } from '../sync/wake-up.ts';
import { BUSY, type PeerName } from '../thread/host-types.ts';
import { LostSnapshot, PATIENCE, PartFetch, type Patience, patienceOf } from './part-fetch.ts';
import { isOfCommittee, trustedHeader, WayBack } from './snapshot-link.ts';
import { keyOf, SnapshotOffers } from './snapshot-offers.ts';

const LOOK_MILLIS = 1_000;
/** Then those that were looked at may come again before others: strangers may offer new ones sooner than they are looked at. */
const ROUND_MILLIS = 60_000;
const MAX_REFUSED = 1_024;
const LOG_MILLIS = 10_000;

export type FetchSettings = {
  readonly dataDir: string;
  readonly peers: NetworkPlan;
  readonly trust: Trust;
  readonly genesis: Genesis;
  readonly release: string;
};

export type FetchDependencies = {
  readonly log: Logger;
  readonly now: LedgerClock;
  /** Time limits for peers. */
  readonly steady: SteadyClock;
  readonly signal: AbortSignal;
  /** After every part that is written. */
  readonly onPart?: (parts: number) => void;
  /** Without it the network has a thread of its own. */
  readonly openPeers?: OpenPeers;
};

type TrustedCut = { readonly header: CutHeader; readonly back: WayBack };

export type FetchedSnapshot = { readonly file: string; readonly cutId: Bytes };

/** Path of the parts until the store is made. */
export const fetchDirectory = (dataDir: string): string => join(dataDir, 'snapshot.fetch');

export async function fetchSnapshot(
  settings: FetchSettings,
  dependencies: FetchDependencies,
): Promise<FetchedSnapshot> {
  const fetching = new SnapshotFetch(settings, dependencies);
  await fetching.open();
  try {
    return await fetching.run();
  } finally {
    await fetching.close();
  }
}

class SnapshotFetch {
  readonly #settings: FetchSettings;
  readonly #with: FetchDependencies;
  readonly #directory: string;
  readonly #file: string;
  readonly #chosenFile: string;
  readonly #offers: SnapshotOffers;
  readonly #link: {
    ask(peer: PeerName, question: Uint8Array): Promise<Uint8Array>;
    blame(e: unknown, p: PeerName): void;
  };
  /** Snapshots that the trusted cut does not prove, or that are too old. */
  readonly #refused = new BoundedMap<string, true>(MAX_REFUSED);
  readonly #stop: () => void;
  #network!: PeerLink;
  #closing: Promise<void> | undefined;
  #parts: PartFetch | undefined;
  #trusted: TrustedCut | undefined;
  readonly #news = new WakeUp();
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(settings: FetchSettings, dependencies: FetchDependencies) {
    this.#settings = settings;
    this.#with = dependencies;
    this.#directory = fetchDirectory(settings.dataDir);
    this.#file = join(this.#directory, 'snapshot');
    this.#chosenFile = join(this.#directory, 'chosen.json');
    this.#link = {
      ask: (peer, question) => this.#network.ask(peer, 'sync', question),
      blame: (error, peer) => {
        dependencies.log.debug('a peer did not deliver', { peer, reason: (error as Error).message });
        blame(this.#network, peer, error);
      },
    };
    const { steady } = dependencies;
    this.#offers = new SnapshotOffers({ ...this.#link, steady, changed: () => this.#changed() });
    this.#stop = () => {
      this.#parts?.close(stopped());
      this.#changed();
      // Whoever is asked, for whatever: nobody is waited for.
      if (this.#network !== undefined) void this.#closeNetwork();
    };
    dependencies.signal.addEventListener('abort', this.#stop);
  }

  #changed(): void {
    this.#news.wake();
    this.#parts?.wake();
  }

  async open(): Promise<void> {
    const { dataDir, peers, genesis, release } = this.#settings;
    const { log, openPeers = threadOfPeers } = this.#with;
    await mkdir(this.#directory, { recursive: true });
    const seed = await loadPeerKey(dataDir);
    let remembered = readRemembered(dataDir, log);
    const chain = chainId(encodeGenesis(genesis));
    this.#network = openPeers(
      () => ({ ...peers, seed, remembered, release, chainId: chain, ruleSet: RULE_SET, height: 0 }),
      {
        joined: (peer, info) => this.#offers.joined(peer, info),
        left: (peer) => this.#offers.left(peer),
        refused: () => undefined,
        // There is nothing to serve yet.
        serve: async () => BUSY,
        gossip: async () => 'ignore',
        remember: (addresses) => {
          remembered = addresses;
          remember(dataDir, addresses, log);
        },
      },
      log,
    );
    try {
      await this.#network.start();
    } catch (error) {
      await this.close();
      throw new NetworkError('p2p_listen', `peers cannot be listened for: ${(error as Error).message}`);
    }
  }

  async close(): Promise<void> {
    this.#with.signal.removeEventListener('abort', this.#stop);
    this.#offers.close();
    await this.#closeNetwork();
  }

  #closeNetwork(): Promise<void> {
    this.#closing ??= this.#network.close();
    return this.#closing;
  }

  async run(): Promise<FetchedSnapshot> {
    const { log } = this.#with;
    for (let chosen = this.#resumed(); ; chosen = undefined) {
      const place = chosen ?? (await this.#choose());
      const holders = this.#offers.holders(place);
      try {
        await this.#fetch(place);
        return { file: this.#file, cutId: place.cutId };
      } catch (error) {
        const isTrusted = equalBytes(place.cutId, this.#settings.trust.cutId);
        const isUnwanted = error instanceof SnapshotError && !isTrusted && !this.#with.signal.aborted;
        if (!isUnwanted && !(error instanceof LostSnapshot)) throw error;
        log.warn('another snapshot is looked for', { height: place.height, reason: error.message });
        // Its fetched parts are kept until another one is chosen: its peers may return.
        if (!isUnwanted) this.#offers.failed(place, [...holders, ...this.#offers.holders(place)]);
        else {
          this.#refused.set(toHex(place.cutId), true);
          for (const file of [this.#chosenFile, this.#file]) await rm(file, { force: true });
        }
      }
    }
  }

  /** The result of an earlier run with the same trusted cut. */
  #resumed(): Place | undefined {
    try {
      const { trust, height, cut } = JSON.parse(readFileSync(this.#chosenFile, 'utf8')) as Record<string, unknown>;
      if (trust !== toHex(this.#settings.trust.cutId) || !Number.isSafeInteger(height)) return undefined;
      return { height: height as number, cutId: fromHex(String(cut), ID_BYTES) };
    } catch {
      return undefined;
    }
  }

  async #choose(): Promise<Place> {
    const { trust } = this.#settings;
    for (;;) {
      // In the order after each look: the other offers of peers that did not deliver one come last, and who comes meanwhile after those that wait.
      const looked = new Set<string>();
      const next = () =>
        this.#offers.all().find((offer) => !looked.has(keyOf(offer)) && !this.#refused.has(toHex(offer.cutId)));
      const end = this.#with.steady() + ROUND_MILLIS;
      for (let offer = next(); offer !== undefined && this.#with.steady() < end; offer = next()) {
        if (this.#with.signal.aborted) throw stopped();
        looked.add(keyOf(offer));
        const { height, cutId } = offer;
        if (!(await this.#isProven(offer))) continue;
        const before = this.#resumed();
        if (before === undefined || !equalBytes(before.cutId, cutId)) await rm(this.#file, { force: true });
        const chosen = { trust: toHex(trust.cutId), height, cut: toHex(cutId) };
        await writeDurably(this.#chosenFile, `${JSON.stringify(chosen)}\n`);
        return offer;
      }
      this.#tell('no peer has a snapshot that the trusted cut proves', {
        peers: this.#offers.peers.length,
        snapshots: this.#offers.all().map(({ height }) => height),
        trusted_cut_found: trust.height === undefined ? undefined : this.#trusted !== undefined,
      });
      if (this.#with.signal.aborted) throw stopped();
      await this.#news.wait(LOOK_MILLIS);
    }
  }

  #tell(message: string, fields: Record<string, unknown>): void {
    const now = this.#with.steady();
    if (now - this.#loggedAt < LOG_MILLIS) return;
    this.#loggedAt = now;
    this.#with.log.info(message, fields);
  }

  async #isProven(offer: Place): Promise<boolean> {
    const { cutId, height } = this.#settings.trust;
    const isTrusted = equalBytes(offer.cutId, cutId);
    if (isTrusted && height !== undefined) return offer.height === height;
    if (!isTrusted && (height === undefined || !isSnapshotHeight(offer.height))) return false;
    const trusted = await this.#trustedCut();
    if (trusted === undefined) return false;
    // Its header says which of the claimed heights is true.
    if (isTrusted) return offer.height === trusted.header.height;
    if (!trusted.back.leadsTo(offer)) return await this.#isOfTrustedCommittee(offer, trusted.header);
    const id = await trusted.back.idOf(offer.height, this.#offers.peers);
    if (id === undefined || equalBytes(id, offer.cutId)) return id !== undefined;
    for (const peer of this.#offers.holders(offer)) {
      this.#offers.drop(peer, offer);
      this.#link.blame(new PeerFault(peer, 'false_proof', `its cut ${offer.height} is another`), peer);
    }
    return false;
  }

  /**
   * An old trusted cut is refused: the keys of its committee may have been sold, and its snapshots are too old as well.
   */
  async #trustedCut(): Promise<TrustedCut | undefined> {
    if (this.#trusted === undefined) {
      const { cutId, height } = this.#settings.trust;
      const heights = this.#offers.peers.map((peer) => [peer, height ?? this.#offers.claimed(peer, cutId)] as const);
      const known = heights.filter((of): of is readonly [PeerName, number] => of[1] !== undefined);
      const header = await trustedHeader(cutId, new Map(known), this.#link);
      if (header === undefined) return undefined;
      const back = new WayBack(header, { ...this.#link, steady: this.#with.steady });
      this.#trusted = { header, back };
    }
    checkAge(this.#trusted.header, this.#with.now());
    return this.#trusted;
  }

  /** The head is fetched for that check. */
  async #isOfTrustedCommittee(offer: Place, trusted: CutHeader): Promise<boolean> {
    if (offer.height <= trusted.height) return false;
    let found: ProvenHead | undefined;
    const holders = this.#offers.holders(offer);
    const parts = this.#partsOf(offer, PATIENCE.look);
    try {
      await parts.run(0, [headRule(offer.cutId, offer.height)], async (head) => {
        found = head;
      });
    } catch (error) {
      if (!(error instanceof LostSnapshot)) throw error;
    } finally {
      parts.close(new LostSnapshot('it was looked at'));
    }
    if (found !== undefined && isOfCommittee(trusted, found)) return true;
    if (found !== undefined) this.#refused.set(toHex(offer.cutId), true);
    // Also one with a committee of its own, which costs as much: the next one of the same peers comes after all others.
    this.#offers.failed(offer, holders);
    return false;
  }

  #partsOf(place: Place, patience: Patience): PartFetch {
    this.#parts = new PartFetch(place.height, patienceOf(patience, this.#offers.tries(place)), {
      ...this.#link,
      holders: () => this.#offers.holders(place),
      drop: (peer) => this.#offers.drop(peer, place),
      steady: this.#with.steady,
    });
    if (this.#with.signal.aborted) this.#parts.close(stopped());
    return this.#parts;
  }

  async #fetch(place: Place): Promise<void> {
    const { genesis } = this.#settings;
    const { log, now, onPart } = this.#with;
    const file = await FetchedFile.open(this.#file);
    const parts = this.#partsOf(place, PATIENCE.fetch);
    /** Parts that are already here first, then the others. */
    const all = async <T>(rules: Iterable<PartRule<T>>, keep: (value: T) => void): Promise<void> => {
      const source = rules[Symbol.iterator]();
      const rest = { [Symbol.iterator]: () => source };
      for (let next = source.next(); next.done !== true; next = source.next()) {
        const here = await file.reread(next.value);
        if (here !== undefined) {
          keep(here.value);
          continue;
        }
        const { value } = next;
        const lacking = function* () {
          yield value;
          yield* rest;
        };
        await parts.run(file.parts, lacking(), async (found, bytes) => {
          keep(found);
          await file.append(bytes);
          onPart?.(file.parts);
          this.#tell('fetching a snapshot', { height: place.height, parts: file.parts });
        });
        return;
      }
    };
    const collected = async <T>(rules: Iterable<PartRule<T>>, check?: (value: T) => void): Promise<T[]> => {
      const found: T[] = [];
      await all(rules, (value) => {
        check?.(value);
        found.push(value);
      });
      return found;
    };
    // Not part of the rule: the peer is not at fault for an old snapshot.
    const wanted = (head: ProvenHead) => checkWanted(head, { network: genesis.network, genesis, nowMillis: now() });
    try {
      const [head] = (await collected([headRule(place.cutId, place.height)], wanted)) as [ProvenHead];
      const outlines = await collected(outlineRules(head));
      workOfCuts(head, await collected(blockRules(head)));
      const [here, peers] = [file.parts, this.#offers.holders(place).length];
      log.info('snapshot of peers', { height: place.height, parts_here: here, peers });
      await all(pieceRules(outlines), () => undefined);
      await file.end();
    } catch (error) {
      parts.close(error as Error);
      throw error;
    } finally {
      await file.close();
    }
  }
}

const stopped = (): SnapshotError => new SnapshotError('snapshot_not_here', 'the node stopped meanwhile');
