/**
 * The whole miner in one thread on a simulated clock: the real Miner, pool client and crew; servers, devices and the
 * processor that checks hits are simulated. Servers speak v1 and do what the test tells them, however malicious.
 */
import { randomBytes } from 'node:crypto';
import type { Backend, BackendEvents, SearchJob } from '../../kernels/backend.ts';
import { epochToDrop } from '../../kernels/cpu/prepare-epoch.ts';
import { parsePoolUrl } from '../../miner/client/pool-url.ts';
import type { TransportEvents } from '../../miner/client/transport.ts';
import { fetchFromNode } from '../../miner/client/transport-node.ts';
import { TuningFile } from '../../miner/devices/tuning-file.ts';
import { Miner, type MinerSettings } from '../../miner/miner.ts';
import { refusal } from '../../miner/miner-error.ts';
import type { MinerParts } from '../../miner/miner-parts.ts';
import type { MinerValues } from '../../miner/options.ts';
import { ProgressLine } from '../../miner/terminal/progress-line.ts';
import { formatAddress } from '../../protocol/address.ts';
import { utf8 } from '../../protocol/bytes.ts';
import { encodeHeader } from '../../protocol/ledger/header.ts';
import { rewardRoot } from '../../protocol/ledger/reward.ts';
import { encodeExtranonce } from '../../protocol/ledger/tag.ts';
import { targetOfWork } from '../../protocol/ledger/target.ts';
import { NETWORKS, type NetworkName, powEpoch } from '../../protocol/network.ts';
import { errorReply } from '../../protocol/stratum/errors.ts';
import type { Job, Reconnect } from '../../protocol/stratum/messages.ts';
import { parseUsername } from '../../protocol/stratum/username.ts';
import { encodeError, encodeNotification, encodeResult } from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, type RequestId } from '../../protocol/stratum/v1-request.ts';
import { createLogger, readLevelFilter } from '../../runtime/log/log.ts';
import { temporaryDirectory } from '../temporary.ts';

const payload = (fill: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(49).fill(fill);
  bytes[0] = 0;
  return bytes;
};

const PAYEE = payload(1);

/** One connection as its server sees it. */
export class Link {
  readonly pool: number;
  readonly encrypted: boolean;
  readonly openedAt: number;
  readonly #world: World;
  readonly #events: TransportEvents;
  readonly #later: (() => void)[] = [];
  closed = false;
  loggedIn = false;
  nextJob = 1;

  constructor(world: World, pool: number, encrypted: boolean, events: TransportEvents) {
    this.pool = pool;
    this.encrypted = encrypted;
    this.openedAt = world.now;
    this.#world = world;
    this.#events = events;
    this.#later.push(() => (world.script(pool).isUp?.(world.now) === false ? this.drop() : events.onOpen()));
  }

  get script(): Script {
    return this.#world.script(this.pool);
  }

  say(text: string): void {
    this.#later.push(() => this.#events.onData(utf8(`${text}\n`)));
  }

  drop(): void {
    if (this.closed) return;
    this.closed = true;
    this.#events.onClose(refusal('pool_closed', 'gone'));
  }

  deliver(): void {
    while (!this.closed && this.#later.length > 0) (this.#later.shift() as () => void)();
  }

  notify(job: Job): void {
    this.say(encodeNotification({ method: 'mining.notify', params: job }));
  }

  reconnect(wish: Reconnect): void {
    this.say(encodeNotification({ method: 'mining.reconnect', params: wish }));
  }

  fail(id: RequestId | null, code: 21 | 23 | 27 | 31): void {
    this.say(encodeError(id, errorReply(code)));
  }

  ban(id: RequestId | null, retryAfterMillis: number): void {
    this.say(encodeError(id, { code: 28, message: 'banned', retryAfterMillis }));
  }

  take(line: Uint8Array): void {
    const request = decodeRequest(line);
    if (request.kind === 'invalid') throw new Error(request.reason);
    const { id } = request;
    const { script } = this;
    switch (request.method) {
      case 'mining.subscribe': {
        if (script.subscribe?.(this, id) === true) return;
        const prefix = Uint8Array.of(1, this.pool);
        const session = `${this.pool}`.padStart(2, '0').repeat(16);
        const network = NETWORKS[this.#world.network].id;
        const result = { session, noncePrefix: prefix, network, server: 's', pool: null };
        this.say(encodeResult(id, { method: 'mining.subscribe', result }));
        return;
      }
      case 'mining.authorize': {
        if (script.authorize?.(this, id) === true) return;
        const { text, worker } = parseUsername(request.params.username, this.#world.network);
        this.say(encodeResult(id, { method: 'mining.authorize', result: { address: text, worker } }));
        this.loggedIn = true;
        if (script.begin !== undefined) script.begin(this);
        else this.notify(this.#world.job(this, {}));
        return;
      }
      case 'mining.submit': {
        this.#world.submits++;
        if (script.submit?.(this, id) === true) return;
        const work = this.#world.shareWork;
        this.say(encodeResult(id, { method: 'mining.submit', result: { work, blockId: null } }));
        return;
      }
      case 'mining.ping':
        this.say(encodeResult(id, { method: 'mining.ping' }));
        return;
      case 'mining.stats':
        throw new Error('not asked for by a miner');
    }
  }
}

/** What a server does; what is left out an honest server does. Those that return a boolean answer true for "handled". */
export type Script = {
  isUp?(now: number): boolean;
  subscribe?(link: Link, id: RequestId): boolean;
  authorize?(link: Link, id: RequestId): boolean;
  /** In place of the first job. */
  begin?(link: Link): void;
  submit?(link: Link, id: RequestId): boolean;
  /** Every 250 ms of a connection that is logged in; an honest server sends a job a minute. */
  tick?(link: Link, now: number): void;
};

export type WorldOptions = {
  readonly network?: NetworkName;
  readonly urls?: readonly string[];
  readonly scripts: Script[];
  readonly height?: number;
  readonly shareWork?: bigint;
  readonly dataDir?: string;
};

class SimulatedBackend implements Backend {
  readonly name = 'simulated';
  readonly kind = 'wasm';
  readonly built: number[] = [];
  readonly #events: BackendEvents;
  readonly #hold: number[] = [];
  hashes = 0;
  job: SearchJob | undefined;

  constructor(events: BackendEvents) {
    this.#events = events;
  }

  get epochs(): readonly number[] {
    return this.#hold;
  }

  async prepare(epoch: number): Promise<void> {
    if (this.#hold.includes(epoch)) return;
    this.built.push(epoch);
    const drop = epochToDrop(this.#hold, epoch);
    if (drop !== undefined) this.#hold.splice(this.#hold.indexOf(drop), 1);
    this.#hold.push(epoch);
  }

  setJob(job: SearchJob | undefined): void {
    this.job = job;
  }

  /** A hit on the job at hand; the simulated checker agrees with it. */
  find(): void {
    const { job } = this;
    if (job === undefined) return;
    this.hashes++;
    const nonce = randomBytes(8);
    nonce.set(job.header.subarray(312 - job.prefixBytes), 8 - job.prefixBytes);
    this.#events.onHit({ jobId: job.id, nonce: Uint8Array.from(nonce), hash: new Uint8Array(32) });
  }

  pause(): void {}
  resume(): void {}
  async close(): Promise<void> {}
}

export class World {
  readonly network: NetworkName;
  readonly scripts: Script[];
  readonly links: Link[] = [];
  readonly devices: SimulatedBackend[] = [];
  readonly checked: number[] = [];
  readonly shareWork: bigint;
  readonly miner: Miner;
  log = '';
  submits = 0;
  /** Milliseconds of the simulated clock. */
  now = 0;
  height: number;
  readonly #address: string;
  readonly #ticks: { every: number; at: number; act: () => void }[] = [];
  readonly #timers: { at: number; act: () => void }[] = [];

  constructor(options: WorldOptions) {
    this.network = options.network ?? 'testnet';
    this.scripts = options.scripts;
    this.height = options.height ?? 1_000;
    this.shareWork = options.shareWork ?? 1_000n;
    this.#address = formatAddress(PAYEE, this.network);
    const urls = options.urls ?? options.scripts.map((_, i) => `stratum+tcp://pool${i}:${i + 1}`);
    const parts: MinerParts = {
      fetch: fetchFromNode,
      connect:
        () =>
        ({ host, transport }, events) => {
          const pool = Number(/\d+/.exec(host)?.[0] ?? 0);
          const link = new Link(this, pool, transport === 'tls', events);
          this.links.push(link);
          return {
            send: (data) => {
              if (!link.closed) link.take(data as Uint8Array);
            },
            close: () => {
              link.closed = true;
            },
          };
        },
      openDevice: async (_device, _settings, _dependencies, events) => {
        const device = new SimulatedBackend(events);
        this.devices.push(device);
        return device;
      },
      makeChecker: () => {
        const held: number[] = [];
        return {
          epochs: held,
          prepare: async (epoch) => {
            if (held.includes(epoch)) return;
            this.checked.push(epoch);
            const drop = epochToDrop(held, epoch);
            if (drop !== undefined) held.splice(held.indexOf(drop), 1);
            held.push(epoch);
          },
          hash: async () => new Uint8Array(32),
          close: async () => undefined,
        };
      },
      random: () => 0.5,
      every: (every, act) => {
        const tick = { every, at: this.now + every, act };
        this.#ticks.push(tick);
        return () => void this.#ticks.splice(this.#ticks.indexOf(tick), 1);
      },
      after: (millis, act) => void this.#timers.push({ at: this.now + millis, act }),
      sensors: { start: () => undefined, stop: () => undefined, of: () => undefined },
    };
    const values = {
      pool: urls.map((text) => ({ text, endpoint: parsePoolUrl(text) })),
      throttle: 100,
      light: false,
      unsafeGpu: false,
      tlsPin: [],
      watchdog: 1e9,
    } as unknown as MinerValues;
    const dataDir = options.dataDir ?? temporaryDirectory();
    const settings: MinerSettings = {
      values,
      user: parseUsername(this.#address, this.network),
      devices: [{ number: 0, kind: 'wasm', name: 'simulated', threads: 1 }],
      dataDir,
      tls: { pins: [] },
    };
    const sink = {
      write: (line: string) => {
        this.log += line;
      },
      flush: () => undefined,
      close: () => undefined,
    };
    this.miner = new Miner(settings, {
      parts,
      log: createLogger('miner', { filter: readLevelFilter('info'), format: 'text' }, { sink, now: () => this.now }),
      progress: new ProgressLine({ isTerminal: false }, { out: () => undefined, now: () => this.now }),
      tunings: new TuningFile(dataDir),
      version: '0',
      now: () => this.now,
      wall: () => 1_800_000_000_000 + this.now,
      onNoDevice: () => undefined,
    });
    this.miner.start();
  }

  script(pool: number): Script {
    return this.scripts[pool] as Script;
  }

  get device(): SimulatedBackend {
    return this.devices[0] as SimulatedBackend;
  }

  /** The pool that the miner has work of, by the server's prefix in the job at hand. */
  get workingFor(): number | undefined {
    return this.device.job?.header[311];
  }

  job(link: Link, over: { height?: number; shareWork?: bigint; blockWork?: bigint; epoch?: number }): Job {
    const extranonce = encodeExtranonce('', randomBytes(8));
    const height = over.height ?? this.height;
    const header = encodeHeader({
      networkId: NETWORKS[this.network].id,
      anchorHeight: height,
      timestampMillis: 1_800_000_000_000 + this.now,
      anchorId: randomBytes(48),
      parentsRoot: randomBytes(48),
      transactionsRoot: randomBytes(48),
      rewardRoot: rewardRoot(PAYEE, extranonce),
      stateRoot: randomBytes(48),
      target: targetOfWork(over.blockWork ?? 1n << 40n),
      nonce: new Uint8Array(8),
    });
    const shareTarget = targetOfWork(over.shareWork ?? this.shareWork);
    const epoch = over.epoch ?? powEpoch(height);
    return { jobId: link.nextJob++, header, shareTarget, epoch, payout: PAYEE, extranonce, clean: false };
  }

  #tick(link: Link): void {
    if (link.script.tick !== undefined) link.script.tick(link, this.now);
    else if (this.now % 60_000 === 0) link.notify(this.job(link, {}));
  }

  /** Lets the time pass in steps of 250 ms. */
  async run(millis: number, eachStep: () => void = () => undefined): Promise<void> {
    const end = this.now + millis;
    while (this.now < end) {
      this.now += 250;
      for (const link of this.links)
        if (!link.closed && link.script.isUp?.(this.now) === false) link.drop();
        else if (!link.closed && link.loggedIn) this.#tick(link);
      for (const link of this.links) link.deliver();
      for (const tick of [...this.#ticks])
        if (tick.at <= this.now) {
          tick.at += tick.every;
          tick.act();
        }
      for (const timer of this.#timers.filter(({ at }) => at <= this.now)) {
        this.#timers.splice(this.#timers.indexOf(timer), 1);
        timer.act();
      }
      eachStep();
      if (this.links.length > 1_000) this.links.splice(0, 500);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}
