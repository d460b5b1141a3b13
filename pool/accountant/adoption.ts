/**
 * Adopts blocks that pay the pool but are in no journal: a crash happened between the node's `accepted` and the
 * journal, or the journal has not arrived yet. The extranonce identifies the connection, whose account is on record
 * since its first share or block. A node outside this process must prove such a block by a header with that identifier
 * and valid work.
 */
import { BOOT_ID_BYTES, readExtranonce } from '../../bridge/session/extranonce.ts';
import { formatAddress } from '../../protocol/address.ts';
import type { BlockDocument } from '../../protocol/api/documents.ts';
import { bookedService } from '../../protocol/books/block-service.ts';
import { type Bytes, equalBytes, fromHex, toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { blockId, decodeHeader } from '../../protocol/ledger/header.ts';
import { headerPays } from '../../protocol/ledger/reward.ts';
import { meetsTarget, targetFromBytes, targetToBytes, workOfTarget } from '../../protocol/ledger/target.ts';
import type { NetworkName } from '../../protocol/network.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { UNKNOWN_FINDER } from '../books/intake.ts';
import type { Sql } from '../database/connect.ts';
import type { EntrySource } from '../feed/entry-source.ts';
import { type BlockRecord, SERVICES } from '../journal/journal-record.ts';
import type { Chain } from './chain.ts';

export type AdoptionOptions = { readonly network: { readonly name: NetworkName }; readonly poolAddress: Bytes };

export type AdoptionDependencies = {
  readonly sql: Sql;
  readonly chain: Pick<Chain, 'block'>;
  readonly log: Logger;
  /** The journals, which may name the finder of a block that the chain has paid already. */
  readonly source?: Pick<EntrySource, 'mayTell'>;
  /** The proof-of-work hash of a header. Without it the node is trusted. */
  readonly powHash?: (header: Bytes, anchorHeight: number) => Promise<Bytes>;
};

/** How long rewards wait for the journal that may name their finder. A lost machine must not stop the credits of others. */
const FINDER_MILLIS = 600_000;
/**
 * The target of an adopted block may be easier than at the first cut of its slice by this factor: a network may lose
 * that much hash rate in ten minutes.
 */
const EASIER = 16n;

export class Adoption {
  readonly #options: AdoptionOptions;
  readonly #dependencies: AdoptionDependencies;
  /** Boots whose journals rewards have waited for, and since when. */
  readonly #awaited = new Map<string, number>();

  constructor(options: AdoptionOptions, dependencies: AdoptionDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
  }

  /**
   * Handles the blocks that a cut pays, all of one anchor. Undefined while one of them may still be in a journal that
   * the books have not read to its end.
   */
  async adoptable(blockIds: readonly string[], anchorHeight: number): Promise<BlockRecord[] | undefined> {
    if (blockIds.length === 0) return [];
    const { sql, chain } = this.#dependencies;
    const rows = await sql<{ block_id: Buffer }[]>`select block_id from blocks
      where block_id = any(${blockIds.map((id) => `\\x${id}`)}::text[]::bytea[])`;
    const known = new Set(rows.map((row) => row.block_id.toString('hex')));
    const found: BlockRecord[] = [];
    for (const id of blockIds) {
      if (known.has(id)) continue;
      const document = await chain.block(id);
      if (document === undefined || document.payout !== this.#poolAddressText || document.block_id !== id) continue;
      if (document.anchor_height !== anchorHeight) continue;
      if (!(await this.#isProven(document))) continue;
      const record = await this.#finderOf(document);
      if (record === undefined) return undefined;
      found.push(record);
    }
    return found;
  }

  get #poolAddressText(): string {
    return formatAddress(this.#options.poolAddress, this.#options.network.name);
  }

  async #isProven(document: BlockDocument): Promise<boolean> {
    const { powHash, log } = this.#dependencies;
    if (powHash === undefined) return true;
    const flaw = await this.#flawOf(document, powHash);
    if (flaw === undefined) return true;
    log.error('the node names a block that pays the pool and does not prove it', { block: document.block_id, flaw });
    return false;
  }

  async #flawOf(
    document: BlockDocument,
    powHash: NonNullable<AdoptionDependencies['powHash']>,
  ): Promise<string | undefined> {
    try {
      const bytes = fromHex(document.header_hex);
      const header = decodeHeader(bytes);
      if (!equalBytes(blockId(bytes), fromHex(document.block_id))) return 'the header has another name';
      if (!headerPays(bytes, this.#options.poolAddress, fromHex(document.extranonce))) return 'it pays somebody else';
      if (header.anchorHeight !== document.anchor_height) return 'the header has another anchor';
      if (!(await this.#isHardEnough(header.target, header.anchorHeight))) return 'its target is too easy';
      const hash = await powHash(bytes, header.anchorHeight);
      return meetsTarget(hash, targetToBytes(header.target)) ? undefined : 'the work was not done';
    } catch (error) {
      if (error instanceof ProtocolError) return error.message;
      throw error;
    }
  }

  async #isHardEnough(target: bigint, anchorHeight: number): Promise<boolean> {
    const [slice] = await this.#dependencies.sql<{ target: Buffer }[]>`select target from slices
      where opened_height <= ${anchorHeight} order by opened_height desc limit 1`;
    return slice === undefined || workOfTarget(target) * EASIER >= workOfTarget(targetFromBytes(slice.target));
  }

  /** Whether the journal of a boot is worth waiting for: it may have more entries, and the wait was not too long yet. */
  async #isAwaited(bootId: string, block: string): Promise<boolean> {
    const { source, log } = this.#dependencies;
    if (source === undefined || !(await source.mayTell(bootId))) return false;
    const since = this.#awaited.get(bootId) ?? performance.now();
    if (!this.#awaited.has(bootId)) {
      log.warn('a reward waits for the journal that names its finder', { block, bootId });
      this.#awaited.set(bootId, since);
    }
    return performance.now() - since < FINDER_MILLIS;
  }

  async #finderOf(document: BlockDocument): Promise<BlockRecord | undefined> {
    const { sql, log } = this.#dependencies;
    const extranonce = fromHex(document.extranonce);
    const owner = readExtranonce(extranonce)?.owner ?? new Uint8Array(0);
    const [row] = await sql<{ service: number; payload: Buffer; name: string }[]>`select o.service, a.payload, w.name
      from ownerships o join accounts a on a.id = o.account_id join workers w on w.id = o.worker_id
      where o.owner = ${Buffer.from(owner)}`;
    const base = {
      kind: 'block' as const,
      blockId: fromHex(document.block_id),
      anchorHeight: document.anchor_height,
      target: targetFromBytes(fromHex(document.target)),
      extranonce,
      atMillis: document.timestamp_millis,
    };
    if (row !== undefined) {
      log.info('adopted a block that no journal named', { block: document.block_id, worker: row.name });
      const service = SERVICES[row.service] as BlockRecord['service'];
      return { ...base, service, account: new Uint8Array(row.payload), worker: row.name };
    }
    if (await this.#isAwaited(toHex(owner.subarray(0, BOOT_ID_BYTES)), document.block_id)) return undefined;
    // An unknown finder, or a lost journal: the reward still went to the pool. The block itself shows its service
    // (books rule 22), so anybody can check the books. PPLNS divides it without regard to its finder; a solo reward is
    // credited to the pool, for the operator to pass on.
    const service = bookedService(extranonce);
    log.error('a block pays the pool and its finder is not on record', {
      block: document.block_id,
      owner: toHex(owner),
      service,
    });
    return { ...base, service, account: this.#options.poolAddress, worker: UNKNOWN_FINDER };
  }
}
