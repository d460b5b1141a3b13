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

/** SVC_BENCH_SERVER_CPUS=0,1 and SVC_BENCH_LOAD_CPUS=2,3 keep servers and load on cores of their own. */
const cpusOf = (file: string): string | undefined =>
  file.includes('load-process') ? process.env.SVC_BENCH_LOAD_CPUS : process.env.SVC_BENCH_SERVER_CPUS;

/** SVC_BENCH_PROFILE=DIR: servers leave a processor profile of each of their threads there. */
const profileOf = (file: string): string[] => {
  const { SVC_BENCH_PROFILE: directory } = process.env;
  return directory === undefined || file.includes('load-process') ? [] : ['--cpu-prof', `--cpu-prof-dir=${directory}`];
};

export class Asked {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (value: never) => void>();
  readonly ready: Promise<void>;
  #next = 0;

  constructor(file: string, words: readonly string[] = [], gc = false) {
    const cpus = cpusOf(file);
    const options = [...(gc ? ['--expose-gc'] : []), ...profileOf(file)];
    this.#child = fork(new URL(file, import.meta.url), words, {
      execPath: cpus === undefined ? process.execPath : 'taskset',
      execArgv: cpus === undefined ? options : ['-c', cpus, process.execPath, ...options],
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
    // A profile is written when a process ends by itself.
    if (process.env.SVC_BENCH_PROFILE !== undefined)
      this.#child.send({ id: this.#next++, name: 'stop', argument: null });
    else this.#child.kill('SIGKILL');
    await gone;
  }
}
