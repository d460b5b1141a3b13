/** The process of all doors (doors-process.ts) as a test sees it, and how each door is spoken to properly. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { handshake, say, socketsOf } from './raw-client.ts';

export const HTTP_DOORS = ['api', 'mining', 'wallet', 'web', 'stratumWs', 'stats', 'metrics', 'miner'] as const;
export const DOOR_NAMES = [...HTTP_DOORS, 'stratum'] as const;
export type DoorName = (typeof DOOR_NAMES)[number];

export type Figures = {
  /** What is on the heap and beside it. */
  readonly heap: number;
  /** Lines of the log at level error since the last time. */
  readonly errors: readonly string[];
  readonly faults: number;
};

/** A request that each door answers, and with what. */
const GOOD: Readonly<Record<Exclude<DoorName, 'stratum'>, readonly [path: string, status: number]>> = {
  api: ['/v1/chain/head', 200],
  mining: ['/v1/node/sync', 200],
  wallet: ['/health', 200],
  web: ['/health', 200],
  stratumWs: ['/', 426],
  stats: ['/v1/stats', 200],
  metrics: ['/metrics', 200],
  miner: ['/v1/stats', 200],
};

/** A handshake that each door with WebSockets opens. */
export const UPGRADES: Readonly<Partial<Record<DoorName, string>>> = {
  api: handshake('/v1/events', { 'sec-websocket-protocol': 'svc.node-events.v1' }),
  mining: handshake('/v1/events', { 'sec-websocket-protocol': 'svc.node-events.v1' }),
  wallet: handshake('/v1/ws', { authorization: 'Bearer test-token-of-more-than-32-characters' }),
  web: handshake('/api/v1/live'),
  stratumWs: handshake('/', { 'sec-websocket-protocol': 'svc-mining-v1' }),
};

/** Of the files of one worker: a start takes more than a second. */
let shared: Promise<Doors> | undefined;

export class Doors {
  readonly ports: Readonly<Record<DoorName, number>>;
  readonly #child: ChildProcess;
  /** Sockets that the process holds when nobody is connected. */
  #quietSockets = 0;

  private constructor(child: ChildProcess, ports: Readonly<Record<DoorName, number>>) {
    this.#child = child;
    this.ports = ports;
  }

  /** Files that share a worker share its process. */
  static async open(): Promise<Doors> {
    if (process.env.SVC_TEST_WORKER !== 'shared') return Doors.openOwn();
    const before = await shared;
    if (before?.isAlive) {
      await before.#settle();
      return before;
    }
    shared = Doors.openOwn();
    return shared;
  }

  /** `env`: variables of its process besides ours. */
  static async openOwn(env: Readonly<Record<string, string>> = {}): Promise<Doors> {
    const child = fork(new URL('./doors-process.ts', import.meta.url), [], {
      execArgv: ['--expose-gc'],
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`the doors ended with ${code}`)));
    ended.catch(() => undefined);
    const [ports] = (await Promise.race([once(child, 'message'), ended])) as [Record<DoorName, number>];
    const doors = new Doors(child, ports);
    await doors.#settle();
    return doors;
  }

  async #settle(): Promise<void> {
    await this.expectServed();
    // The connections of these requests are gone when nothing has changed for a second.
    for (let since = 0; since < 10; await sleep(100)) {
      const sockets = socketsOf(this.pid);
      since = sockets === this.#quietSockets ? since + 1 : 0;
      this.#quietSockets = sockets;
    }
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Sockets beyond those of a process that nobody is connected to. */
  held(): number {
    const sockets = socketsOf(this.pid);
    // On a busy machine a connection of the first requests may have been closed later than that.
    this.#quietSockets = Math.min(this.#quietSockets, sockets);
    return sockets - this.#quietSockets;
  }

  /** Resident memory. Asking for it leaves the process alone: a collection that we made it run would put off its own. */
  resident(): number {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'))?.[1]) * 1_024;
  }

  /** `collect`: after a collection, so that the heap is what lives on it. */
  async figures(collect = false): Promise<Figures> {
    this.#child.send(collect ? 'collect' : 'figures');
    const [figures] = (await once(this.#child, 'message')) as [Figures];
    return figures;
  }

  /** What a good request to the door is answered with. */
  async status(name: DoorName): Promise<number> {
    if (name === 'stratum') {
      const text = await say(this.ports.stratum, '{"jsonrpc":"2.0","id":1,"method":"mining.ping"}\n', '"result":{}');
      return text.includes('"result":{}') ? 200 : 0;
    }
    const [path] = GOOD[name];
    const text = await say(this.ports[name], `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`);
    return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);
  }

  /** Throws unless every door, or the one named, answers as it should. */
  async expectServed(names: readonly DoorName[] = DOOR_NAMES): Promise<void> {
    for (const name of names) {
      const status = await this.status(name);
      const expected = name === 'stratum' ? 200 : GOOD[name][1];
      if (status !== expected) throw new Error(`${name} answered ${status} instead of ${expected}`);
    }
  }

  async close(): Promise<void> {
    if (!this.isAlive || this === (await shared)) return;
    const gone = once(this.#child, 'exit');
    this.#child.disconnect();
    await gone;
  }
}
