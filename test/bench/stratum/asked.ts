/** Questions between the benchmark and its processes, over the channel that fork() gives. */
import { type ChildProcess, fork } from 'node:child_process';

export type Answers = Readonly<Record<string, (argument: never) => Promise<unknown>>>;

export function answerAsked(answers: Answers): void {
  process.on('message', ({ id, name, argument }: { id: number; name: string; argument: never }) => {
    void answers[name]?.(argument).then((value) => process.send?.({ id, value }));
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.({ ready: true });
}

export class Asked {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (value: never) => void>();
  readonly ready: Promise<void>;
  #next = 0;

  constructor(file: string, words: readonly string[] = [], gc = false) {
    this.#child = fork(new URL(file, import.meta.url), words, {
      execPath: process.execPath,
      execArgv: gc ? ['--expose-gc'] : [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)));
      this.#child.on('message', (message: { ready?: true; id: number; value: never }) => {
        if (message.ready === true) resolve();
        else {
          this.#waiting.get(message.id)?.(message.value);
          this.#waiting.delete(message.id);
        }
      });
    });
  }

  ask<T>(name: string, argument: unknown = null): Promise<T> {
    const id = this.#next++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve as (value: never) => void);
      this.#child.send({ id, name, argument });
    });
  }

  async stop(): Promise<void> {
    this.ready.catch(() => {});
    const gone = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGKILL');
    await gone;
  }
}
