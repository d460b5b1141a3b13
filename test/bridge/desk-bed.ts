/** A desk without sockets, clock or randomness of its own: everything it says is recorded, and every run is the same. */
import { expect, onTestFinished } from 'vitest';
import { connectionCountMemory } from '../../bridge/connection/connection-count.ts';
import type { Conversation, Peer } from '../../bridge/connection/conversation.ts';
import { Desk } from '../../bridge/connection/desk.ts';
import type { StratumLimits } from '../../bridge/options.ts';
import { connectionNumberMemory, notePlace } from '../../bridge/session/extranonce.ts';
import type { SessionRecord } from '../../bridge/session/session-record.ts';
import type { Candidate, Hub, JudgedShare, MemberBook } from '../../bridge/threads/hub.ts';
import { type Bytes, utf8 } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { powHash } from '../pow-hash.ts';
import { randomOf } from '../random.ts';
import { BRIDGE, EASY } from './bed.ts';
import { TemplateSource } from './template-source.ts';

export class RecordingPeer implements Peer {
  readonly framed: boolean;
  readonly written: Bytes[] = [];
  queued = 0;
  isClosed = false;
  isPaused = false;
  bytes = 0;
  readonly #keep: boolean;

  constructor(framed = false, keep = true) {
    this.framed = framed;
    this.#keep = keep;
  }

  write(data: Bytes | string, wide: boolean): void {
    const bytes = typeof data === 'string' ? (wide ? utf8(data) : Buffer.from(data, 'latin1')) : data;
    this.bytes += bytes.length;
    if (this.#keep) this.written.push(Uint8Array.from(bytes));
  }
  pause(): void {
    this.isPaused = true;
  }
  resume(): void {
    this.isPaused = false;
  }
  end(): void {
    this.isClosed = true;
  }
  destroy(): void {
    this.isClosed = true;
  }
}

/** Connections that the counts have room for. */
const COUNTED = 1_024;

export type DeskBed = {
  readonly desk: Desk;
  readonly shares: JudgedShare[];
  readonly blocks: Candidate[];
  readonly faults: { address: string; fault: string }[];
  readonly shelf: Map<string, SessionRecord>;
  /** Warnings and errors: a fault while judging shows nowhere else. What is left of them at its end fails the test. */
  readonly logged: string[];
  clock: number;
  /** Runs everything that was put off, until nothing is. */
  settle(): Promise<void>;
  open(form: 'v1' | 'v2', peer: RecordingPeer, address?: string): Conversation;
  publish(height: number, clean?: boolean): Promise<void>;
  /** The nodes have told of cuts up to this place. */
  tell(place: number): void;
};

export type DeskSettings = {
  readonly limits?: StratumLimits;
  readonly seed?: number;
  readonly hash?: (header: Bytes) => Bytes;
  /** What the main thread does otherwise than here. */
  readonly hub?: Partial<Hub>;
  readonly members?: MemberBook;
  /** Whether a login waits for `own`. */
  readonly asksSink?: boolean;
  /** Addresses that are never banned. */
  readonly allow?: readonly string[];
  /** Counts that it shares with other desks. */
  readonly counts?: SharedArrayBuffer;
  /** Hashes are known when it resolves. */
  readonly verifying?: () => Promise<void>;
};

export async function deskBed({
  limits = EASY,
  seed = 1,
  hash = (header) => powHash(0, header),
  hub: otherwise = {},
  members,
  asksSink = true,
  allow = [],
  counts = connectionCountMemory(COUNTED),
  verifying = async () => {},
}: DeskSettings = {}): Promise<DeskBed> {
  const random = randomOf(seed);
  const source = new TemplateSource();
  source.blockWork = 64n;
  let later: (() => void)[] = [];
  let serial = 0;
  let clock = 1_800_000_000_000;
  let told = 0;
  const shares: JudgedShare[] = [];
  const blocks: Candidate[] = [];
  const faults: { address: string; fault: string }[] = [];
  const shelf = new Map<string, SessionRecord>();
  const numbers = connectionNumberMemory(new Uint8Array(16));
  const logged: string[] = [];
  onTestFinished(() => expect(logged, 'what the desk logged').toEqual([]));
  const hub: Hub = {
    own: async () => [],
    shares: async (list) => void shares.push(...list),
    refused: () => {},
    block: (candidate) => void blocks.push(candidate),
    worker: () => {},
    resume: async (id) => {
      const record = shelf.get(id) ?? (await bed.desk.takeSession(id));
      shelf.delete(id);
      return record;
    },
    ended: (record) => void shelf.set(record.id, record),
    keep: () => {},
    fault: (address, fault) => void faults.push({ address, fault }),
    balance: async () => null,
    ...otherwise,
  };
  const desk = new Desk(
    {
      network: NETWORKS.development,
      server: 'test/1.0',
      limits,
      thread: 3,
      bootId: new Uint8Array(8).fill(9),
      asksSink,
      keepsSessions: false,
      counts,
      ownCounts: connectionCountMemory(COUNTED),
      allow,
      connectionNumbers: numbers,
    },
    {
      hub,
      ...(members === undefined ? {} : { members }),
      verifier: {
        hashMany: async (_epoch, headers) => {
          await verifying();
          return headers.map((header) => Uint8Array.from(hash(header)));
        },
      },
      now: () => clock,
      soon: (run) => void later.push(run),
      randomBytes: (count) => Uint8Array.from({ length: count }, () => random(256)),
      log: (level, message, { error, ...fields }) =>
        void logged.push(`${level} ${message} ${error instanceof Error ? error.stack : JSON.stringify(fields)}`),
    },
  );
  const bed: DeskBed = {
    desk,
    shares,
    blocks,
    faults,
    shelf,
    logged,
    get clock() {
      return clock;
    },
    set clock(millis) {
      clock = millis;
    },
    async settle() {
      for (let quiet = 0; quiet < 3; quiet++) {
        await new Promise((resolve) => setImmediate(resolve));
        const runs = later;
        later = [];
        if (runs.length > 0) quiet = -1;
        for (const run of runs) run();
      }
    },
    open: (form, peer, address = '203.0.113.7') => desk.open(BRIDGE, form, peer, address),
    async publish(height, clean = false) {
      source.height = height;
      const answer = await source.template(0);
      const header = answer.header.slice();
      // The only parts of a template that chance or the clock chose.
      header.fill(0, 24, 80);
      const template = {
        serial: ++serial,
        header,
        epoch: 0,
        draw: 0,
        draws: 1,
        isFresh: false,
        cutHeight: 0,
        told: height,
      };
      bed.tell(height);
      desk.publish({ templates: [template], headHeight: height, clean });
    },
    tell(place) {
      told = Math.max(told, place);
      notePlace(numbers, told);
    },
  };
  await bed.publish(1_000);
  desk.ready = true;
  return bed;
}
