/** Somebody who follows the documents: a fresh folder, a home of their own, no rights beyond an ordinary user's, and a terminal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { expect } from 'vitest';
import { freePort } from '../../runtime/free-port.ts';
import { inlineCommands, isDocumented, quotedByFlows, sameLine, shellLines } from '../guards/documented-lines.ts';
import { ROOT } from '../guards/project-files.ts';
import { ordinaryUser } from '../ordinary-user.ts';
import { until } from '../until.ts';
import { runnable } from './substitutions.ts';

const LOG_SHOWN = 4_000;
/** Questions end so; a person reads what stands above and answers. */
const QUESTION = /\[y\/N\] *$|\(y\/N\) *$|\? *$/;

/** Of the lines, and of the options that are added to them. */
const USUAL_PORTS = [
  28_701, 28_702, 28_703, 28_704, 28_705, 28_710, 28_711, 28_720, 28_721, 28_730, 28_731, 28_740, 28_770, 28_771,
  28_790, 28_801, 28_802, 28_901, 28_902,
];

export type Names = Readonly<Record<string, string>>;

export class Running {
  readonly child: ChildProcess;
  readonly line: string;
  readonly ended: Promise<number>;
  said = '';
  isOver = false;

  constructor(line: string, child: ChildProcess, answer: string | undefined) {
    this.line = line;
    this.child = child;
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.said += chunk;
        if (answer !== undefined && QUESTION.test(this.said)) child.stdin?.write(`${answer}\n`);
      });
    this.ended = new Promise((resolve) =>
      child.once('close', (code) => {
        this.isOver = true;
        resolve(code ?? -1);
      }),
    );
  }

  get shown(): string {
    return `${this.line}\n${this.said.slice(-LOG_SHOWN)}`;
  }

  /** What it says, sooner or later; the first group, or all that was matched. */
  async until(pattern: RegExp): Promise<string> {
    const found = await until(() => pattern.exec(this.said) ?? this.isOver, { why: () => this.shown });
    if (found === true) throw new Error(`ended without ${pattern}: ${this.shown}`);
    return found[1] ?? found[0];
  }

  /** Ctrl-C; it must end well. */
  async stop(): Promise<void> {
    this.child.kill('SIGINT');
    expect(await this.ended, this.shown).toBe(0);
  }
}

/** What all readers of one test share: ports in place of the usual ones, and which lines were run. */
export class Readers {
  /** As the pages have them. */
  readonly run = new Set<string>();
  readonly #user = ordinaryUser();
  readonly #root: string;
  readonly #ports = new Map<string, number>();
  readonly #started: Running[] = [];

  private constructor() {
    this.#root = mkdtempSync(join(tmpdir(), 'svc-test-readers-'));
    chmodSync(this.#root, 0o755);
    mkdirSync(this.#cache);
    this.give(this.#cache);
  }

  static async open(): Promise<Readers> {
    const readers = new Readers();
    for (const usual of USUAL_PORTS) readers.#ports.set(String(usual), await freePort());
    return readers;
  }

  async close(): Promise<void> {
    for (const { child } of this.#started) child.kill('SIGKILL');
    await Promise.all(this.#started.map(({ ended }) => ended));
    rmSync(this.#root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  /** Compiled code: the checkout's own belongs to root, and compiling takes half of a start. */
  get #cache(): string {
    return join(this.#root, 'compiled');
  }

  /** Lines that still run. */
  get alive(): string[] {
    return this.#started.filter(({ isOver }) => !isOver).map(({ line }) => line);
  }

  /** Lines of the documents that these flows quote and did not run, and lines that were run and are in no document. */
  passedOver(...flows: readonly string[]): string[] {
    const quoted = quotedByFlows((path) => flows.some((name) => path === `test/documented/${name}.ts`));
    const lines = [...shellLines(), ...inlineCommands()].map(({ line }) => sameLine(line));
    const run = new Set([...this.run].map(sameLine));
    const unknown = [...this.run].filter((line) => !isDocumented(line));
    return [...lines.filter((line) => quoted.has(line) && !run.has(line)), ...unknown];
  }

  port(usual: string | number): number {
    const port = this.#ports.get(String(usual));
    if (port === undefined) throw new Error(`no port is free for ${usual}`);
    return port;
  }

  url(usual: number): string {
    return `http://127.0.0.1:${this.port(usual)}`;
  }

  /** With nothing but the programs. */
  person(name: string): Reader {
    const folder = join(this.#root, name);
    mkdirSync(folder);
    symlinkSync(join(ROOT, 'bin'), join(folder, 'bin'));
    this.give(folder);
    return new Reader(this, folder);
  }

  /** A file that the flow put there is the reader's. */
  give(path: string): void {
    if (this.#user.uid !== undefined) chownSync(path, this.#user.uid, this.#user.gid as number);
  }

  spawn(line: string, folder: string, answer: string | undefined): Running {
    const words = answer === undefined ? ['sh', '-c', `exec ${line}`] : ['script', '-qefc', line, '/dev/null'];
    const child = spawn(words[0] as string, words.slice(1), {
      ...this.#user,
      cwd: folder,
      env: {
        ...process.env,
        HOME: folder,
        TMPDIR: '/tmp',
        SHELL: '/bin/sh',
        COLUMNS: '500',
        NODE_COMPILE_CACHE: this.#cache,
        PATH: [dirname(process.execPath), join(ROOT, 'bin'), process.env.PATH].join(delimiter),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const running = new Running(line, child, answer);
    this.#started.push(running);
    return running;
  }
}

type How = {
  /** What the reader puts in the place of words. */
  readonly names?: Names;
  /** More words at the end, which the page leaves to the reader. */
  readonly more?: string;
  /** Typed at the terminal when the program asks. */
  readonly answer?: string;
};

export class Reader {
  readonly folder: string;
  readonly #readers: Readers;

  constructor(readers: Readers, folder: string) {
    this.#readers = readers;
    this.folder = folder;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** A line of a page that goes on running. */
  starts(line: string, { names = {}, more, answer }: How = {}): Running {
    this.#readers.run.add(line);
    let whole = runnable(line, (usual) => this.#readers.port(usual));
    for (const [name, value] of Object.entries(names)) whole = whole.replaceAll(name, value);
    const left = /\b[A-Z]{2,}[A-Z_-]*\b/.exec(whole.replaceAll(/\/\S+/g, ''));
    if (left !== null) throw new Error(`nothing was put in the place of ${left[0]}: ${whole}`);
    return this.#readers.spawn(more === undefined ? whole : `${whole} ${more}`, this.folder, answer);
  }

  /** A line of a page that ends with 0; what it said. */
  async runs(line: string, how: How = {}): Promise<string> {
    return this.ends(line, 0, how);
  }

  async ends(line: string, code: number, how: How = {}): Promise<string> {
    const running = this.starts(line, how);
    expect(await running.ended, running.shown).toBe(code);
    return running.said;
  }
}
