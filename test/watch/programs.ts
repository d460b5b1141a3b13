/**
 * Every program that a test starts, by whatever it is started, with the last lines that it printed: said when the test hangs. A line of a kind that the
 * program had not printed before says that something moves; one that it prints at every cut does not.
 */
import type { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import type { Readable } from 'node:stream';
import { Seen } from './seen.ts';

const KEPT_CHARACTERS = 4_000;
const SHOWN_LINES = 12;
const SHOWN_PROGRAMS = 12;

class Started {
  readonly #child: ChildProcess;
  readonly #moved: () => void;
  readonly #seen = new Seen();
  #text = '';

  constructor(child: ChildProcess, moved: () => void) {
    this.#child = child;
    this.#moved = moved;
  }

  /** What a stream hands on is seen on its way: one more reader would take from a test that begins to read later. */
  tap(stream: Readable): void {
    const push = stream.push.bind(stream);
    stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (chunk instanceof Uint8Array) this.#take(Buffer.from(chunk).toString());
      return push(chunk, encoding);
    };
  }

  #take(text: string): void {
    this.#text = `${this.#text}${text}`.slice(-KEPT_CHARACTERS);
    if (this.#seen.moves(text)) this.#moved();
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  show(): string {
    const { pid, spawnargs = [], exitCode, signalCode } = this.#child;
    const state = this.isRunning ? 'runs' : `ended with ${exitCode ?? signalCode}`;
    const lines = this.#text.trimEnd().split('\n').slice(-SHOWN_LINES);
    const said = this.#text === '' ? '    (printed nothing)' : lines.map((line) => `    ${line}`).join('\n');
    return `  ${spawnargs.join(' ').slice(0, 300)} (process ${pid}, ${state})\n${said}`;
  }
}

export class Programs {
  readonly #started: Started[] = [];

  constructor(moved: () => void) {
    subscribe('child_process', (message) => {
      const { process: child } = message as { process: ChildProcess };
      const started = new Started(child, moved);
      this.#started.push(started);
      // The streams are made after the message.
      process.nextTick(() => {
        moved();
        for (const stream of [child.stdout, child.stderr]) if (stream) started.tap(stream);
      });
    });
  }

  /** Programs of earlier tests that have ended are of no interest to the next one. */
  forgetEnded(): void {
    const running = this.#started.filter(({ isRunning }) => isRunning);
    this.#started.splice(0, Number.POSITIVE_INFINITY, ...running);
  }

  show(): string {
    if (this.#started.length === 0) return 'no program was started';
    const shown = this.#started.slice(-SHOWN_PROGRAMS).map((program) => program.show());
    return `programs that were started, and the end of what each printed:\n${shown.join('\n')}`;
  }
}
