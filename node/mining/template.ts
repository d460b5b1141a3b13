/**
 * Templates (ledger rule 42, docs/protocol/mining.md): a header and a body on the newest finalized cut, or on the
 * anchor that the policy `best` draws. A draw of transactions is kept for 5 seconds: within them the same draw number
 * gives the same transactions, less those that have left the mempool meanwhile. A new cut frees space, which is filled
 * at once, so that no miner gets an empty block because the last cut took the draw.
 */

import { type Bytes, ByteWriter } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { merkleRootOfHashes } from '../../protocol/crypto/merkle.ts';
import { datasetSeed } from '../../protocol/crypto/pow.ts';
import { encodeBody, MAX_BODY_BYTES, MAX_PARENTS, parentsRoot } from '../../protocol/ledger/body.ts';
import { MAX_CUT_BLOCKS, MAX_CUT_SIGNATURES } from '../../protocol/ledger/cut.ts';
import { splitHalves } from '../../protocol/ledger/emission.ts';
import { encodeHeader, registrationWindowEnd } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { encodeExtranonce, MAX_EXTRANONCE } from '../../protocol/ledger/tag.ts';
import { meetsTarget, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import { type Network, powEpoch, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { BoundedMap } from '../../runtime/bounded-map.ts';
import type { LedgerClock, SteadyClock } from '../../runtime/clock/clock.ts';
import type { Head, Template, TemplateRequest } from '../full-node.ts';
import { nameOf } from '../ledger/registration.ts';
import type { ReadTransaction } from '../ledger/work-block.ts';
import type { Entry, Mempool } from '../mempool/mempool.ts';
import { selectTransactions } from '../mempool/selection.ts';
import { anchorAt, anchorChances, MOST_WAITING, worthwhileAnchors } from './anchor-choice.ts';
import type { WorkPool } from './work-pool.ts';

export const DRAW_MILLIS = 5_000;
/** Draws kept at once; the oldest leaves. */
export const MAX_DRAWS = 64;
/** Maximum size of a body without its transactions. */
const BODY_OVERHEAD = 1 + 49 + 1 + MAX_EXTRANONCE + 1 + MAX_PARENTS * ID_BYTES + 4;

/** Of a cut, for the blocks on old anchors that come behind a new one. */
const MOST_BEHIND = MAX_CUT_SIGNATURES / 2;
const OLD_CUTS = REGISTRATION_WINDOW / 4;
/** So many fit in a cut from each of as many blocks as it takes. */
const LEAST_SIGNATURES = MAX_CUT_SIGNATURES / MAX_CUT_BLOCKS;

/**
 * Signatures of a new block (ledger rule 42): what the waiting blocks leave of the next cut's. Heavier ones would only wait, and a
 * target is made from registered work: while full bodies alone fill the cuts, it could not follow a rise of the hash rate, and
 * what is found beyond four blocks a cut would be lost. Blocks on old anchors that come behind this one, whatever
 * its hash, have half of a cut at most: on those of before a rise a stranger finds many with little work.
 */
function signaturesLeft(pool: WorkPool, { height, target }: Head): number {
  let { signatures } = pool;
  if (signatures > MOST_BEHIND) {
    const most = targetToBytes(target);
    let behind = 0;
    for (const { header, hash, signatures: carried } of pool.list())
      if (header.anchorHeight < height - OLD_CUTS && !meetsTarget(hash, most)) behind += carried;
    signatures -= Math.max(0, behind - MOST_BEHIND);
  }
  return Math.max(LEAST_SIGNATURES, MAX_CUT_SIGNATURES - signatures);
}

/** Templates whose transactions are remembered. */
const MAX_MADE = 256;
/** How finely an anchor is drawn. */
const PLACES = 2 ** 30;

/** The transactions of a template, and what follows from them. */
type Content = {
  readonly entries: readonly Entry[];
  readonly transactions: readonly Bytes[];
  readonly root: Bytes;
  /** The block's part of the fees. */
  readonly fees: bigint;
};

type Draw = { readonly at: number; readonly anchorHeight: number; content: Content };

function contentOf(entries: readonly Entry[]): Content {
  let fees = 0n;
  for (const entry of entries) fees += splitHalves(entry.fee).work;
  return {
    entries,
    transactions: entries.map((entry) => entry.wire),
    root: merkleRootOfHashes(entries.map((entry) => entry.read.leaf)),
    fees,
  };
}

export type TemplateDependencies = {
  readonly network: Network;
  readonly powEpochLength: number;
  readonly mempool: Mempool;
  readonly pool: WorkPool;
  readonly now: LedgerClock;
  readonly steady: SteadyClock;
  random(limit: number): number;
  isRegistered(blockId: Bytes): boolean;
  /** Anchors whose windows are open, with what is registered for them. */
  openAnchors(): readonly { readonly anchor: Head; readonly registered: number }[];
};

export class TemplateMaker {
  readonly #dependencies: TemplateDependencies;
  readonly #draws = new BoundedMap<string, Draw>(MAX_DRAWS);
  readonly #seeds = new Map<number, Bytes>();
  /** Transactions of recent templates by their root: blocks made from them need not be read again. */
  readonly #made = new BoundedMap<string, readonly ReadTransaction[]>(MAX_MADE);
  #counter = 0n;

  constructor(dependencies: TemplateDependencies) {
    this.#dependencies = dependencies;
  }

  make(head: Head, request: TemplateRequest): Template {
    const { network, powEpochLength, pool, now, steady, isRegistered } = this.#dependencies;
    const draw = request.draw ?? 0;
    const kept = this.#draw(draw, request.maxTransactions, head);
    const anchor = request.anchors === 'best' ? this.#drawAnchor(head) : head;
    const { entries, transactions, root, fees } = kept.content;
    const { payout } = request;
    const extranonce = request.extranonce ?? this.#freshExtranonce();
    // Later than the anchor's, whatever the clock says.
    const timestampMillis = Math.max(now(), anchor.timestampMillis + 1);
    // A parent is only useful until the next cut.
    const parents = anchor === head ? pool.parents({ height: head.height, timestampMillis, isRegistered }) : [];
    const header = {
      networkId: network.id,
      anchorHeight: anchor.height,
      timestampMillis,
      anchorId: anchor.cutId,
      parentsRoot: parentsRoot({ parents }),
      transactionsRoot: root,
      rewardRoot: rewardRoot(payout, extranonce),
      stateRoot: anchor.stateRoot,
      target: anchor.target,
      nonce: new Uint8Array(8),
    };
    this.#rememberMade(root, entries);
    const epoch = powEpoch(anchor.height, powEpochLength);
    let body: Bytes | undefined;
    return {
      anchor,
      header: encodeHeader(header),
      get body() {
        body ??= encodeBody({ payout, extranonce, parents, transactions });
        return body;
      },
      payout,
      extranonce,
      parents,
      transactions,
      registrationWindowEnd: registrationWindowEnd(anchor.height),
      target: anchor.target,
      timestampMillis: header.timestampMillis,
      parentsRoot: header.parentsRoot,
      transactionsRoot: root,
      rewardRoot: header.rewardRoot,
      draw,
      transactionCount: transactions.length,
      fees,
      pow: { epoch, seed: this.#seed(epoch), epochLength: powEpochLength },
      validMillis: Math.max(0, kept.at + DRAW_MILLIS - steady()),
    };
  }

  /** Based on the blocks registered and waiting now. */
  #drawAnchor(head: Head): Head {
    const { pool, powEpochLength, openAnchors, random } = this.#dependencies;
    if (pool.count > MOST_WAITING) return head;
    const waiting = pool.countByAnchor();
    const epoch = powEpoch(head.height, powEpochLength);
    const open = openAnchors()
      .filter(({ anchor }) => powEpoch(anchor.height, powEpochLength) === epoch)
      .map(({ anchor, registered }) => ({
        anchor,
        height: anchor.height,
        blocks: registered + (waiting.get(anchor.height) ?? 0),
        work: Number(workOfTarget(anchor.target)),
      }));
    const drawn = worthwhileAnchors(open);
    return anchorAt(drawn, anchorChances(drawn), random(PLACES) / PLACES).anchor;
  }

  #rememberMade(transactionsRoot: Bytes, entries: readonly Entry[]): void {
    const name = nameOf(transactionsRoot);
    if (this.#made.has(name)) return;
    this.#made.set(
      name,
      entries.map((entry) => entry.read),
    );
  }

  /** The transactions of a template with this root. */
  transactionsOf(transactionsRoot: Bytes): readonly ReadTransaction[] | undefined {
    return this.#made.get(nameOf(transactionsRoot));
  }

  #seed(epoch: number): Bytes {
    const known = this.#seeds.get(epoch);
    if (known !== undefined) return known;
    const seed = datasetSeed(this.#dependencies.network.id, epoch);
    this.#seeds.clear();
    this.#seeds.set(epoch, seed);
    return seed;
  }

  #draw(draw: number, maxTransactions: number, head: Head): Draw {
    const anchorHeight = head.height;
    const name = `${draw}/${maxTransactions}`;
    const now = this.#dependencies.steady();
    const kept = this.#draws.get(name);
    // The clock goes back only in tests; that ends a draw too.
    const current = kept !== undefined && now >= kept.at && now < kept.at + DRAW_MILLIS ? kept : undefined;
    const { mempool, pool, random } = this.#dependencies;
    if (current?.anchorHeight === anchorHeight) {
      if (!current.content.entries.every((entry) => mempool.holds(entry)))
        current.content = contentOf(current.content.entries.filter((entry) => mempool.holds(entry)));
      return current;
    }
    const still = (current?.content.entries ?? []).filter((entry) => mempool.holds(entry) && !mempool.isHeld(entry));
    const rules = {
      maxTransactions,
      maxBytes: MAX_BODY_BYTES - BODY_OVERHEAD,
      maxSignatures: signaturesLeft(pool, head),
      ownWaits: mempool.oldestOwnMillis() !== undefined,
      reserved: mempool.reserved,
      random,
    };
    const entries = selectTransactions(mempool.groups(), rules, still);
    this.#draws.delete(name);
    const fresh = { at: current?.at ?? now, anchorHeight, content: contentOf(entries) };
    this.#draws.set(name, fresh);
    return fresh;
  }

  /** Unique among this node's templates; a mining server uses its own extranonces. */
  #freshExtranonce(): Bytes {
    const unique = new ByteWriter(16);
    for (let i = 0; i < 8; i++) unique.u8(this.#dependencies.random(256));
    return encodeExtranonce('', unique.u64(this.#counter++).done());
  }
}
