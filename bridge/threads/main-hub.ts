/**
 * The main thread's side of the hub, called by the listeners of all threads. Feeds the sink, keeps bans and ended
 * sessions, and turns candidates into blocks.
 */
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { blockId } from '../../protocol/ledger/header.ts';
import { clientKey } from '../../runtime/clients/client-address.ts';
import type { SteadyClock } from '../../runtime/clock/clock.ts';
import { type OriginJob, originExtranonce } from '../nodes/origin-job.ts';
import { bodyFor, carriedBy, type KeptTemplate } from '../nodes/template-store.ts';
import type { BanList, Fault } from '../session/ban-score.ts';
import { extranonceOf } from '../session/extranonce.ts';
import type { KeptSession } from '../session/kept-sessions.ts';
import type { NotedBlock } from '../session/session-entries.ts';
import { threadOf } from '../session/session-id.ts';
import type { SessionLog } from '../session/session-log.ts';
import type { SessionRecord } from '../session/session-record.ts';
import type { SessionShelf } from '../session/session-shelf.ts';
import type { FoundBlocks } from '../shares/found-blocks.ts';
import type { AcceptedShare, RefusedShare, ShareSink, WorkerEvent } from '../shares/sink.ts';
import type { Balance, Candidate, Hub, JudgedShare, ListenerControl, Member } from './hub.ts';
import { ResumeBudget } from './resume-budget.ts';

export type MainHubDependencies = {
  readonly sink: ShareSink;
  readonly shelf: SessionShelf;
  /** Absent where sessions do not outlive the process. */
  readonly sessionLog: () => SessionLog | undefined;
  readonly bans: BanList;
  readonly blocks: FoundBlocks;
  readonly now: SteadyClock;
  readonly template: (serial: number) => KeptTemplate | undefined;
  readonly listener: (thread: number) => ListenerControl | undefined;
  readonly onBan: (key: string, untilMillis: number) => void;
  readonly log: { warn(message: string, fields?: Readonly<Record<string, unknown>>): void };
};

export class MainHub implements Hub {
  readonly #dependencies: MainHubDependencies;
  /** Sessions that a thread resumed from another thread: their id still names the first one. */
  readonly #moved = new Map<string, number>();
  readonly #budget = new ResumeBudget();
  /** Sessions on their way to the shelf. */
  readonly #shelving = new Set<Promise<void>>();

  constructor(dependencies: MainHubDependencies) {
    this.#dependencies = dependencies;
  }

  async own(members: readonly Member[]): Promise<readonly (string | undefined)[]> {
    const { sink } = this.#dependencies;
    await sink.own?.(members);
    return members.map((member) => sink.refusal?.(member));
  }

  async shares(shares: readonly JudgedShare[]): Promise<void> {
    const { sink } = this.#dependencies;
    if (!sink.accepting) throw new Error('the sink accepts no shares now');
    // Before the sink: one that is there and not noted would be accepted again by the next process, and be in a receipt of
    // it that the books contradict. For one that is only noted the next process asks the sink.
    const log = this.#dependencies.sessionLog();
    const batch = await log?.shares(shares);
    try {
      await sink.shares(shares.map((share) => this.#acceptedOf(share)));
    } catch (error) {
      if (batch !== undefined) log?.refused(batch);
      throw error;
    }
    if (batch !== undefined) log?.taken(batch);
  }

  #acceptedOf(share: JudgedShare): AcceptedShare {
    const origin = this.#dependencies.template(share.serial)?.origin;
    return origin === undefined ? acceptedOf(share) : passedOf(share, origin);
  }

  refused(shares: readonly RefusedShare[]): void {
    this.#dependencies.sink.refused(shares);
  }

  block({ share, serial, payout, header }: Candidate): void {
    const block = { serial, share: this.#acceptedOf(share), payout, header };
    // Before its share: if this process is killed in between, the next one sends it.
    this.#dependencies.sessionLog()?.block(block);
    this.send(block);
  }

  /** One that was just found, or one of before the restart that may not have reached a node. */
  send({ serial, share, payout, header }: NotedBlock): void {
    const { template, blocks, sink, log } = this.#dependencies;
    const from = template(serial);
    if (from === undefined) {
      log.warn('a block of a template that is no longer kept', { serial });
      return;
    }
    const { anchorHeight, target } = from.header;
    const found = { blockId: blockId(header), anchorHeight, payout, target, header, carried: carriedBy(from) };
    // The server that the job came from gets it as a share.
    if (from.origin !== undefined) void sink.block({ ...share, ...found });
    else blocks.add({ ...share, ...found }, () => bodyFor(from, payout, share.extranonce));
  }

  worker(events: readonly WorkerEvent[]): void {
    for (const event of events) this.#dependencies.sink.worker(event);
  }

  async resume(id: string, thread: number): Promise<SessionRecord | null> {
    const { shelf, listener, now } = this.#dependencies;
    // As if it were too old: its miner gets a new one.
    if (!this.#budget.has(id, now())) return null;
    const holder = this.#moved.get(id) ?? threadOf(id);
    const shelved = (await shelf.take(id)) ?? (await listener(holder)?.takeSession(id)) ?? (await shelf.take(id));
    const record = chosen(shelved ?? null, this.#dependencies.sessionLog()?.kept.take(id, now()) ?? null);
    if (record === null) return null;
    if (record.bannedUntilMillis > now()) {
      // Kept, so that every further resume is refused too, but without its jobs: they are dead when the ban ends.
      const banned = { ...record, jobs: null };
      this.ended(banned);
      return banned;
    }
    this.#budget.charge(record, now());
    if (thread === threadOf(id)) this.#moved.delete(id);
    else this.#moved.set(id, thread);
    return record;
  }

  ended(record: SessionRecord): void {
    this.#moved.delete(record.id);
    const { shelf, sessionLog, log } = this.#dependencies;
    const shelving = shelf.put(record).then(
      (place) => sessionLog()?.ended(record, place),
      (error: unknown) => log.warn('a session could not be saved', { error }),
    );
    this.#shelving.add(shelving);
    void shelving.finally(() => this.#shelving.delete(shelving));
  }

  /** Resolves when every session that ended is on the shelf. */
  async settled(): Promise<void> {
    await Promise.all(this.#shelving);
  }

  keep(entries: Bytes): void {
    void this.#dependencies.sessionLog()?.append(entries);
  }

  fault(address: string, fault: Fault): void {
    const { bans, now, onBan, log } = this.#dependencies;
    const before = bans.bannedUntil(address, now());
    const until = bans.score(address, fault, now());
    if (until === undefined || until === before) return;
    log.warn('address banned', { address: clientKey(address), until: new Date(until).toISOString() });
    onBan(clientKey(address), until);
  }

  async balance(service: string, account: Bytes): Promise<Balance | null> {
    return (await this.#dependencies.sink.balance?.(service, account)) ?? null;
  }
}

/** The session as this process has it, or another instance, or as the process before left it. */
function chosen(shelved: SessionRecord | null, kept: KeptSession | null): SessionRecord | null {
  if (kept === null) return shelved;
  if (shelved === null) return kept.isShared ? null : kept.record;
  // Where instances share sessions, their jobs are not with them.
  return equalBytes(shelved.bootId, kept.servedBy) ? kept.record : shelved;
}

/** Kept for each member's newest generation, so that a share needs no encoding. */
const extranonces = new WeakMap<Member, { readonly generation: number; readonly extranonce: Bytes }>();

function extranonceFor(member: Member, generation: number): Bytes {
  const known = extranonces.get(member);
  if (known?.generation === generation) return known.extranonce;
  const extranonce = extranonceOf(member.tag, member.owner, generation);
  extranonces.set(member, { generation, extranonce });
  return extranonce;
}

const acceptedOf = (
  { member, generation, work, hashWork, cutHeight, headerDigest, nonce, atMillis }: JudgedShare,
  extranonce = extranonceFor(member, generation),
): AcceptedShare => ({
  service: member.service,
  account: member.account,
  worker: member.worker,
  work,
  hashWork,
  cutHeight,
  extranonce,
  headerDigest,
  nonce,
  atMillis,
});

/** On a job of another server. */
function passedOf(share: JudgedShare, origin: OriginJob): AcceptedShare {
  const { generation } = share;
  const accepted = acceptedOf(share, originExtranonce(origin, generation));
  return share.isPassed ? { ...accepted, passed: { origin, generation } } : accepted;
}
