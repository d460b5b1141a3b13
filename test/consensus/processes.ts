/**
 * Separate validators as processes: four `svcd run` with a key each and two nodes that follow, over real sockets on this machine. Between any two validators is a
 * proxy of the test: it keeps every vote that one of them sends the other, and can part them.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { FORWARD_HEAD_BYTES } from '../../node/consensus/driver/forwarding.ts';
import { decodeMessage } from '../../node/consensus/driver/messages.ts';
import type { Message } from '../../node/consensus/engine/effects.ts';
import { FORWARD_TYPE, MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentGenesis, developmentSeed, validatorName } from '../../node/genesis/development.ts';
import { writeGenesis } from '../../node/genesis/make-genesis.ts';
import { LedgerStore } from '../../node/store/ledger-store.ts';
import { sealValidatorKey } from '../../node/validator/validator-key.ts';
import { type Bytes, fromHex, toHex } from '../../protocol/bytes.ts';
import type { Genesis } from '../../protocol/ledger/genesis.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { findBlock } from '../network/find-block.ts';
import { until } from '../until.ts';
import { isSigning } from './is-signing.ts';
import { OverlayProxy } from './overlay-proxy.ts';

const MAIN = fileURLToPath(new URL('../../node/main.ts', import.meta.url));
export const VALIDATORS = 4;
const PASSWORD = 'a password of a test';
/** Of the nodes that follow and of the twin. */
const FOLLOWERS_PORTS = 6;
type Six = [number, number, number, number, number, number];

type Ports = { readonly overlay: number; readonly api: number; readonly mining?: number };

class SvcdProcess {
  readonly name: string;
  readonly ports: Ports;
  readonly #words: readonly string[];
  #child: ChildProcess | undefined;
  #output = '';
  starts = 0;

  constructor(name: string, ports: Ports, words: readonly string[]) {
    this.name = name;
    this.ports = ports;
    this.#words = words;
  }

  /** `main`: of another release. */
  start(main = MAIN): void {
    const child = spawn(process.execPath, [main, 'run', ...this.#words], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    this.starts++;
    const note = (part: Buffer) => {
      this.#output = (this.#output + part).slice(-20_000);
    };
    child.stdout?.on('data', note);
    child.stderr?.on('data', note);
  }

  get isStarted(): boolean {
    return this.#child !== undefined;
  }

  get output(): string {
    return this.#output;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** SIGSTOP stops it as a machine that hangs would. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  /** Resolves when the process is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    await gone;
  }

  /** Height of the newest final cut; -1 while it does not answer. */
  async height(): Promise<number> {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.ports.api}/v1/node/sync`);
      const { finalized_height: height } = (await answer.json()) as { finalized_height?: number };
      return height ?? -1;
    } catch {
      const child = this.#child;
      if (child !== undefined && child.exitCode !== null)
        throw new Error(`${this.name} ended with ${child.exitCode}:\n${this.#output}`);
      return -1;
    }
  }
}

export class ValidatorProcesses {
  readonly validators: SvcdProcess[] = [];
  genesis!: Genesis;
  plain!: SvcdProcess;
  /** A second node that follows, through the first alone. A test starts it when it likes. */
  late!: SvcdProcess;
  /** The key of the last validator in another process, with a store and a log of its own. */
  twin!: SvcdProcess;
  /** By member, height, round and kind: the cuts that were voted for. */
  readonly votes = new Map<string, Set<string>>();
  readonly #directory: string;
  readonly #votedAt = new Map<number, number>();
  #found = 0;
  /** Told of every proposal and vote between validators as it passes. */
  watch: ((message: Message) => void) | undefined;
  /** By the two members that it stands between. */
  readonly #proxies = new Map<string, OverlayProxy>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  get all(): readonly SvcdProcess[] {
    return [...this.validators, this.plain, ...[this.late].filter(({ isStarted }) => isStarted)];
  }

  /** `fund`: outputs of genesis. `words`: more options of the validators. */
  async prepare(
    cutMillis: number,
    {
      fund = [],
      words: more = () => [],
    }: { fund?: readonly Output[]; words?: (member: number) => readonly string[] } = {},
  ): Promise<void> {
    const ports = await freePorts(2 * VALIDATORS + FOLLOWERS_PORTS + VALIDATORS ** 2);
    const file = join(this.#directory, 'genesis.json');
    // Epochs of full length: on short ones whoever is killed misses its windows and loses its seat, and a committee of two stands still without one. Every hash is a block.
    const work = { initialWork: 1n, minimumWork: 1n };
    this.genesis = developmentGenesis({ timestampMillis: steadyMillis(), validators: VALIDATORS, fund, ...work });
    writeGenesis(file, this.genesis);
    const overlays = ports.slice(0, VALIDATORS);
    const common = (name: string, api: number, mining?: number) => [
      '--genesis',
      file,
      '--data-dir',
      join(this.#directory, name),
      '--cut-millis',
      String(cutMillis),
      '--api-bind',
      `127.0.0.1:${api}`,
      '--signature-threads',
      '1',
      '--mining-bind',
      mining === undefined ? 'off' : `127.0.0.1:${mining}`,
    ];
    const proxies = ports.slice(2 * VALIDATORS + FOLLOWERS_PORTS);
    for (const [i, overlay] of overlays.entries()) {
      const name = `validator-${i}`;
      const dialled: number[] = [];
      for (let j = i + 1; j < VALIDATORS; j++) {
        const port = proxies[i * VALIDATORS + j] as number;
        this.#proxies.set(
          `${i} ${j}`,
          await OverlayProxy.open(port, overlays[j] as number, (frame) => this.#hear(frame)),
        );
        dialled.push(port);
      }
      const config = await this.#config(name, i, overlay, dialled);
      const api = ports[VALIDATORS + i] as number;
      const words = [...common(name, api), '--config', config, ...more(i)];
      this.validators.push(new SvcdProcess(name, { overlay, api }, words));
    }
    const [api, mining, overlay, lateApi, twinApi, twinOverlay] = ports.slice(2 * VALIDATORS) as Six;
    const at = (port: number | undefined) => `127.0.0.1:${port}`;
    // Two of the four are enough to follow.
    const light = ['--pow-mode', 'light'];
    const two = ['--neighbour', at(overlays[0]), '--neighbour', at(overlays[1])];
    const words = [...two, '--overlay-listen', at(overlay), ...light];
    this.plain = new SvcdProcess('plain', { overlay, api, mining }, [...common('plain', api, mining), ...words]);
    const lateWords = [...common('late', lateApi), '--neighbour', at(overlay), ...light];
    this.late = new SvcdProcess('late', { overlay: 0, api: lateApi }, lateWords);
    const twinConfig = await this.#config('twin', VALIDATORS - 1, twinOverlay, overlays.slice(0, -1));
    this.twin = new SvcdProcess('twin', { overlay: twinOverlay, api: twinApi }, [
      ...common('twin', twinApi),
      '--config',
      twinConfig,
    ]);
  }

  /** Finds a block at the first node that follows. */
  async mine(transactions?: readonly Bytes[]): Promise<string> {
    return await findBlock(this.plain.ports.mining as number, ++this.#found, transactions);
  }

  /** The cut that registered each of these blocks, from the store of a validator that has ended. */
  async registeredAt(member: number, blocks: readonly string[]): Promise<(number | undefined)[]> {
    const store = await LedgerStore.open(join(this.#directory, `validator-${member}`, 'store'));
    const heights = blocks.map((id) => store.block(fromHex(id))?.registeredHeight);
    await store.close();
    return heights;
  }

  /** Sections of node.json as the specification has them. Each dials those after it. */
  async #config(name: string, member: number, overlay: number, dialled: readonly number[]): Promise<string> {
    const directory = join(this.#directory, `${name}-keys`);
    mkdirSync(directory);
    const [keyFile, passwordFile, config] = ['key.json', 'password', 'node.json'].map((file) =>
      join(directory, file),
    ) as [string, string, string];
    const seed = developmentSeed(validatorName(member));
    writeFileSync(keyFile, await sealValidatorKey(seed, 'consensus', 'development', PASSWORD, 10), { mode: 0o600 });
    writeFileSync(passwordFile, `${PASSWORD}\n`, { mode: 0o600 });
    const settings = {
      validator: { consensus_key_file: keyFile, password_file: passwordFile },
      validator_overlay: {
        listen_addrs: `127.0.0.1:${overlay}`,
        neighbours: dialled.map((port) => `127.0.0.1:${port}`),
      },
    };
    writeFileSync(config, JSON.stringify(settings));
    return config;
  }

  #hear(sent: Bytes): void {
    const frame = sent[0] === FORWARD_TYPE ? sent.subarray(FORWARD_HEAD_BYTES) : sent;
    if (frame[0] !== MESSAGE_TYPES.vote && frame[0] !== MESSAGE_TYPES.proposal) return;
    let message: Message;
    try {
      message = decodeMessage(frame);
    } catch {
      // A key that begins with the same byte.
      return;
    }
    this.watch?.(message);
    if (message.type !== 'vote') return;
    const { member, height, round, kind, cut } = message.vote;
    const key = `${member}/${height}/${round}/${kind}`;
    this.#votedAt.set(member, Math.max(height, this.votedAt(member)));
    const cuts = this.votes.get(key);
    if (cuts === undefined) this.votes.set(key, new Set([cut]));
    else cuts.add(cut);
  }

  /** The newest height for which a member's vote passed. */
  votedAt(member: number): number {
    return this.#votedAt.get(member) ?? 0;
  }

  /** Those named hear nothing of the others, and these nothing of them. */
  part(away: readonly number[]): void {
    for (const [pair, proxy] of this.#proxies) {
      const [i, j] = pair.split(' ').map(Number) as [number, number];
      if (away.includes(i) !== away.includes(j)) proxy.part();
    }
  }

  heal(): void {
    for (const proxy of this.#proxies.values()) proxy.heal();
  }

  /** Until every one of them has this height. */
  async reached(height: number, who: readonly SvcdProcess[] = this.all): Promise<void> {
    const heights = new Map<SvcdProcess, number>();
    for (;;) {
      for (const process of who) heights.set(process, await process.height());
      if ([...heights.values()].every((known) => known >= height)) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** What `svcd` with these words says of the process. */
  async ask({ name }: SvcdProcess, ...words: string[]): Promise<string> {
    const line = [MAIN, ...words, '--data-dir', join(this.#directory, name)];
    const asked = promisify(execFile)(process.execPath, line);
    // A validator that does not sign ends it with 1.
    return (await asked.catch((error: { stdout: string }) => error)).stdout;
  }

  /** It listens before it signs. */
  async signs({ name }: SvcdProcess): Promise<void> {
    await until(() => isSigning(join(this.#directory, name)));
  }

  async highest(): Promise<number> {
    return Math.max(...(await Promise.all(this.all.map((process) => process.height()))));
  }

  /** Votes of one member, height, round and kind for more than one thing. */
  contrary(): string[] {
    return [...this.votes].filter(([, cuts]) => cuts.size > 1).map(([key]) => key);
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await Promise.all([...this.all, this.twin].map((process) => process.end(signal)));
  }

  async close(): Promise<void> {
    await this.end('SIGKILL');
    for (const proxy of this.#proxies.values()) await proxy.close();
  }

  /** Of every cut, from the store of a validator that has ended. */
  async timestamps(member: number): Promise<number[]> {
    const store = await LedgerStore.open(join(this.#directory, `validator-${member}`, 'store'));
    const stamps = Array.from(
      { length: store.state().height + 1 },
      (_, at) => store.cut(at)?.header.timestampMillis ?? 0,
    );
    await store.close();
    return stamps;
  }

  /** From the stores of ended processes, node by node: identifier and state root of every cut, and how many blocks they registered. */
  async chains(): Promise<{ chains: string[][]; blocks: number[] }> {
    const chains: string[][] = [];
    const blocks: number[] = [];
    for (const { name } of this.all) {
      const store = await LedgerStore.open(join(this.#directory, name, 'store'));
      const cuts = Array.from({ length: store.state().height + 1 }, (_, at) => store.cut(at));
      chains.push(cuts.map((cut) => (cut ? `${toHex(cut.cutId)} ${toHex(cut.header.stateRoot)}` : 'missing')));
      blocks.push(cuts.reduce((sum, cut) => sum + (cut?.header.blockCount ?? 0), 0));
      await store.close();
    }
    return { chains, blocks };
  }
}
