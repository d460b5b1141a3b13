/**
 * The two interfaces between a listener and the main thread. Listeners own sockets, sessions and checks; the main
 * thread owns the nodes, the sink, bans and sessions that may be resumed. In one thread both sides call each other
 * directly; over a MessagePort (port-calls.ts) the same calls are messages. The number of threads decides which.
 */
import type { Bytes } from '../../protocol/bytes.ts';
import type { OriginJob, TemplatePart } from '../nodes/origin-job.ts';
import type { PaidPool } from '../service.ts';
import type { Fault } from '../session/ban-score.ts';
import type { SessionRecord } from '../session/session-record.ts';
import type { ReceiptDelivery } from '../shares/receipts.ts';
import type { Ownership, RefusedShare, WorkerEvent } from '../shares/sink.ts';

/** A template as listeners use it. The body stays with the main thread: only a block needs it. */
export type PublishedTemplate = {
  readonly serial: number;
  /** 312 bytes; the reward root and the nonce are replaced for each connection. */
  readonly header: Bytes;
  readonly epoch: number;
  /** Which of how many draws of its cut. */
  readonly draw: number;
  readonly draws: number;
  /** Its jobs must use bodies that had no other job: an earlier template had the same bytes, or anchors are drawn. */
  readonly isFresh: boolean;
  /** The newest cut when it was published: its anchor, unless that was drawn. */
  readonly cutHeight: number;
  /** The place of its cut in the order in which nodes told of them (nodes/told-cuts.ts). */
  readonly told: number;
  readonly origin?: OriginJob;
};

export type Publication = {
  readonly templates: readonly PublishedTemplate[];
  readonly headHeight: number;
  /** Older jobs are invalid: the chain has changed. */
  readonly clean: boolean;
  /** Whose templates these are, where each account has its own. */
  readonly part?: TemplatePart;
  /** With the first one after a restart: those of before whose jobs are still known, oldest first. */
  readonly earlier?: readonly EarlierTemplates[];
};

/** Templates of before a restart, and when they were published. */
export type EarlierTemplates = { readonly templates: readonly PublishedTemplate[]; readonly atMillis: number };

/** The owner of a share: one per session, identified by a number between threads. */
export type Member = Ownership & { readonly handle: number; readonly tag: string; readonly agent: string };

export type JudgedShare = {
  readonly member: Member;
  readonly generation: number;
  /** That of its template. */
  readonly serial: number;
  readonly work: bigint;
  /** Work of its own hash (protocol/ledger/target.ts, workOfHash): for statistics only. */
  readonly hashWork: number;
  readonly cutHeight: number;
  readonly headerDigest: Bytes;
  readonly nonce: Bytes;
  readonly atMillis: number;
  /** It meets the target of the job that its template was made from (nodes/origin-job.ts). */
  readonly isPassed: boolean;
};

export type Candidate = {
  readonly share: JudgedShare;
  readonly serial: number;
  readonly payout: Bytes;
  readonly extranonce: Bytes;
  /** The header with its nonce. */
  readonly header: Bytes;
  readonly blockId: Bytes;
};

export type Balance = { readonly pending: bigint; readonly paid: bigint };

/** Calls from a listener to the main thread. */
export interface Hub {
  /** Resolves when the members may have jobs, all but those that have a reason here. Not called if the sink needs no registration (desk-options.ts). */
  own(members: readonly Member[]): Promise<readonly (string | undefined)[]>;
  shares(shares: readonly JudgedShare[]): Promise<void>;
  refused(shares: readonly RefusedShare[]): void;
  block(candidate: Candidate): void;
  worker(events: readonly WorkerEvent[]): void;
  /** The session, from whichever thread has it; its older connection is closed first. */
  resume(id: string, thread: number): Promise<SessionRecord | null>;
  ended(record: SessionRecord): void;
  /** Entries for the session log (session-log.ts), one after the other. */
  keep(entries: Bytes): void;
  fault(address: string, fault: Fault): void;
  balance(service: string, account: Bytes): Promise<Balance | null>;
}

/** Announces the members behind the handles in later shares (introduced-members.ts). */
export interface MemberBook {
  /** These members send no more shares. */
  left(members: readonly Member[]): void;
}

export type ListenerFigures = {
  readonly thread: number;
  readonly connections: number;
  readonly mining: number;
  readonly byTransport: Readonly<Record<string, number>>;
  readonly byService: Readonly<Record<string, number>>;
  /** Of these the farm sessions (S70), and the rigs that they have named. */
  readonly farms: number;
  readonly farmRigs: number;
  readonly opened: number;
  readonly refusedConnections: number;
  readonly closed: Readonly<Record<string, number>>;
  readonly jobsSent: number;
  readonly jobsSkipped: number;
  readonly fanOutMillis: number;
  readonly verifying: number;
  readonly answers: Readonly<Record<string, number>>;
};

/** What an operator looks for among the connections: an address, a network or a mining address, as in a ban; else a part of a name. Empty: all. */
export type ConnectionSearch = { readonly text: string; readonly most: number };

export type ConnectionRow = {
  readonly address: string;
  readonly service: string;
  /** Null before the login. */
  readonly miner: { readonly account: Bytes; readonly worker: string; readonly agent: string } | null;
  readonly ageMillis: number;
  readonly accepted: number;
  readonly stale: number;
  readonly rejected: number;
};

/** The newest connections first. */
export type ConnectionList = { readonly all: number; readonly found: number; readonly rows: readonly ConnectionRow[] };

export type BoundAddress = {
  readonly service: string;
  readonly kind: 'tcp' | 'ws' | 'fixed';
  readonly host: string;
  readonly port: number;
};
export type CertificatePem = { readonly cert: string; readonly key: string };

/** Calls from the main thread to a listener. */
export interface ListenerControl {
  listen(): Promise<readonly BoundAddress[]>;
  publish(publication: Publication): void;
  /** Resolves when every further login is answered accordingly. */
  setReady(ready: boolean): Promise<void>;
  setCertificate(certificate: CertificatePem): void;
  setPool(pool: PaidPool): void;
  ban(key: string, untilMillis: number): void;
  takeSession(id: string): Promise<SessionRecord | null>;
  /** Sends the receipts of a closed slice to the connections that asked for them. */
  receipts(delivery: ReceiptDelivery): void;
  figures(): Promise<ListenerFigures>;
  connections(search: ConnectionSearch): Promise<ConnectionList>;
  /** Stops accepting, asks miners to reconnect, and resolves when every request is answered. */
  drain(): Promise<void>;
  close(): Promise<void>;
}
