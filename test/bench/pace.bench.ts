/**
 * The chain's pace while one of four validators, or a stranger beside them, attacks. Three validators and a node that follows are `svcd` processes; the fourth validator is held by this process, and is
 * honest in the turns in between. Decisions are seen by proxies between validators. Words choose attacks; `cuts=N` and `millis=N` set how many cuts a turn lasts at which pace.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Message } from '../../node/consensus/engine/effects.ts';
import { NIL, PRECOMMIT } from '../../node/consensus/engine/votes.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { ValidatorProcesses } from '../consensus/processes.ts';
import { type Bench, bench, median, percentile } from './harness.ts';
import { ATTACKS, type Attack, FUND, LIAR, type PaceBed } from './pace/attacks.ts';
import { LyingMember } from './pace/lying-member.ts';

const QUORUM = 3;
const LOOK_MILLIS = 20;
/** A turn that takes so many times as long as it should ends: the chain stands still. */
const MOST_TIMES = 6;
/** Time that was lost is made up for (rule 3): cuts are quicker then, and are not measured. */
const CAUGHT_UP = 0.8;
const MOST_TO_CATCH_UP = 30;

type Decision = { readonly at: number; readonly isLiars: boolean };

class Decisions {
  readonly all: Decision[] = [];
  rounds = 0;
  /** Whether it was the liar's turn to propose, in this round or an earlier one. */
  isLiars: (height: number, round: number) => boolean = () => false;
  onDecided: (height: number) => void = () => undefined;
  readonly #precommits = new Map<string, Set<number>>();
  readonly #proposed = new Set<string>();
  #height = 0;

  hear(message: Message): void {
    if (message.type === 'proposal') {
      const { height, round } = message.proposal;
      if (round > 0 && !this.#proposed.has(`${height} ${round}`)) this.rounds++;
      this.#proposed.add(`${height} ${round}`);
    }
    if (message.type !== 'vote' || message.vote.kind !== PRECOMMIT || message.vote.cut === NIL) return;
    const { height, round, cut, member } = message.vote;
    if (height <= this.#height) return;
    const key = `${height} ${round} ${cut}`;
    const members = this.#precommits.get(key) ?? new Set();
    this.#precommits.set(key, members.add(member));
    if (members.size < QUORUM) return;
    this.#height = height;
    this.#precommits.clear();
    this.#proposed.clear();
    this.all.push({ at: performance.now(), isLiars: this.isLiars(height, round) });
    this.onDecided(height);
  }
}

/** Clock ticks a second: fixed for programs on Linux. */
const TICKS = 100;

/** Milliseconds that a process has had of the processor; NaN where that is not known. */
function processorMillis(pid: number | undefined): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [user, system] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number);
    return (((user as number) + (system as number)) * 1_000) / TICKS;
  } catch {
    return Number.NaN;
  }
}

/** `own`: the times of cuts that were the turn of honest members alone. */
type Turn = {
  readonly times: readonly number[];
  readonly own: readonly number[];
  readonly rounds: number;
  /** Processor time of one honest validator: how busy the machine is otherwise says little about it. */
  readonly processor: number;
};

/** So many more cuts, or as many as come in the time. A cut that has not come at its end counts as far as it got. */
async function turn(decisions: Decisions, cuts: number, millis: number, pid?: number): Promise<Turn> {
  const used = processorMillis(pid);
  const from = decisions.all.length - 1;
  const [rounds, began] = [decisions.rounds, performance.now()];
  const isOver = () =>
    decisions.all.length - 1 - from >= cuts || performance.now() - began > MOST_TIMES * cuts * millis;
  while (!isOver()) await new Promise((resolve) => setTimeout(resolve, LOOK_MILLIS));
  const all = decisions.all.slice(from);
  if (all.length - 1 < cuts) all.push({ at: performance.now(), isLiars: false });
  const times = all.slice(1).map(({ at, isLiars }, i) => ({ millis: at - (all[i] as Decision).at, isLiars }));
  return {
    times: times.map((time) => time.millis),
    own: times.filter(({ isLiars }) => !isLiars).map((time) => time.millis),
    rounds: decisions.rounds - rounds,
    processor: processorMillis(pid) - used,
  };
}

async function caughtUp(decisions: Decisions, millis: number): Promise<void> {
  for (let i = 0; i < MOST_TO_CATCH_UP; i++) {
    const { times } = await turn(decisions, 2, millis);
    if (times.every((time) => time >= CAUGHT_UP * millis)) return;
  }
}

const mean = (times: readonly number[]): number => times.reduce((sum, time) => sum + time, 0) / times.length;

async function measure(b: Bench, attacks: readonly Attack[], cuts: number, millis: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-pace-'));
  const processes = new ValidatorProcesses(directory);
  const decisions = new Decisions();
  processes.watch = (message) => decisions.hear(message);
  const ports = await freePorts(2);
  const [p2p, second] = ports as [number, number];
  const words = [
    ['--p2p-listen', `127.0.0.1:${p2p}`],
    ['--p2p-listen', `127.0.0.1:${second}`, '--bootstrap', `/ip4/127.0.0.1/tcp/${p2p}`],
  ];
  let liar: LyingMember | undefined;
  try {
    await processes.prepare(millis, { fund: FUND, words: (member) => words[member] ?? [] });
    const overlay = processes.validators[LIAR]?.ports.overlay as number;
    liar = await LyingMember.open(join(directory, 'liar'), processes.genesis, LIAR, overlay, millis);
    for (const process of [...processes.validators.slice(0, LIAR), processes.plain]) process.start();
    const bed: PaceBed = { processes, liar, p2p, cuts, decided: () => undefined };
    decisions.onDecided = (height) => bed.decided(height);
    decisions.isLiars = (height, round) => bed.liar.isTurn(height, round);
    await processes.reached(4, [...processes.validators.slice(0, LIAR), processes.plain]);
    const honest = processes.validators[0]?.pid;
    const [quiet, results] = [[] as Turn[], new Map<string, Turn>()];
    const rest = async () => {
      await caughtUp(decisions, millis);
      quiet.push(await turn(decisions, Math.ceil(cuts / 2), millis, honest));
    };
    for (const attack of attacks) {
      const prepared = await attack.prepare?.(bed);
      await rest();
      const end = await attack.begin(bed, prepared);
      const result = await turn(decisions, cuts, millis, honest);
      await end();
      results.set(attack.name, result);
      b.note(
        `${attack.name}: ${result.times.length} cuts, ${result.rounds} later rounds, load ${loadavg()[0]?.toFixed(1)}`,
      );
    }
    await rest();
    const undisturbed: Turn = {
      times: quiet.flatMap(({ times }) => times),
      own: quiet.flatMap(({ own }) => own),
      rounds: quiet.reduce((sum, { rounds }) => sum + rounds, 0),
      processor: quiet.reduce((sum, { processor }) => sum + processor, 0),
    };
    b.note(
      `undisturbed: ${undisturbed.times.length} cuts in ${quiet.length} turns, ${undisturbed.rounds} later rounds`,
    );
    report(b, 'undisturbed', undisturbed);
    for (const { name, control } of attacks) {
      const result = results.get(name) as Turn;
      const against = control === undefined ? undefined : results.get(control);
      report(b, name, result, { name: 'undisturbed', turn: undisturbed });
      if (against !== undefined) report(b, `${name}-control`, result, { name: control as string, turn: against });
    }
  } finally {
    await liar?.close();
    await processes.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

function report(b: Bench, name: string, turn: Turn, yardstick?: { readonly name: string; readonly turn: Turn }): void {
  const p99 = (times: readonly number[]) => percentile(times, 0.99);
  const figures: readonly (readonly [string, (turn: Turn) => number])[] = [
    ['pace', ({ times }) => mean(times)],
    ['median', ({ times }) => median(times)],
    ['p99', ({ times }) => p99(times)],
    ['p99-of-honest-turns', ({ own }) => p99(own)],
    ['processor', ({ processor, times }) => processor / times.length],
  ];
  for (const [figure, of] of figures)
    if (Number.isFinite(of(turn)))
      b.figure(
        `${name}-${figure}`,
        of(turn),
        'ms',
        yardstick && { ratio: of(turn) / of(yardstick.turn), yardstick: yardstick.name },
      );
}

export default bench("the chain's pace while one of four validators attacks", async (b) => {
  const number = (key: string, otherwise: number): number =>
    Number(b.words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1) ?? otherwise);
  const parts = b.words.filter((word) => !word.includes('='));
  const attacks = ATTACKS.filter(({ name }) => parts.length === 0 || parts.includes(name));
  await measure(b, attacks, number('cuts', 30), number('millis', 1_000));
});
