/**
 * Strangers at a pool, in a process of their own: they invent workers of a victim's address, workers of an account of their
 * own, and accounts of one worker each, most as cheap as can be. They stop when they are told to, and report what they did.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { addressOf } from '../bridge/stratum-client.ts';
import { randomOf } from '../random.ts';
import { mineAs, type Sent } from './invented-work.ts';

export type AttackTask = {
  readonly port: number;
  readonly victim: string;
  readonly attackers: number;
  /** Work of an honest share. */
  readonly honestWork: number;
  readonly seed: number;
};
export type AttackReport = {
  readonly names: number;
  readonly accounts: number;
  readonly shares: number;
  readonly hashes: string;
  /** By account: work that was accepted, and work whose answer never came. */
  readonly work: readonly [string, string][];
  readonly unanswered: readonly [string, string][];
};

const sent: Sent = { shares: 0, hashes: 0n, work: new Map(), unanswered: new Map() };
const made = { names: 0, accounts: 0 };
let isOver = false;

async function attack({ port, victim, honestWork, seed }: AttackTask, number: number): Promise<void> {
  const draw = randomOf(seed + number);
  const own = addressOf(1_000_000 * (number + 1));
  for (let i = 1; !isOver; i++) {
    const kind = draw(8);
    const who = kind < 5 ? victim : kind < 7 ? own : addressOf(1_000_000 * (number + 1) + i);
    const work = draw(6) === 0 ? honestWork / 4 : 1 + draw(16);
    await mineAs(port, { who, worker: `cheap-${number}-${i}`, work, shares: 1 }, sent).catch(() => sleep(100));
    made.names++;
    if (kind === 7) made.accounts++;
  }
}

let attacks: Promise<unknown> | undefined;

const textOf = (sums: ReadonlyMap<string, bigint>): [string, string][] =>
  [...sums].map(([who, work]) => [who, String(work)]);

process.on('message', (task: AttackTask | 'stop') => {
  if (task !== 'stop') {
    attacks = Promise.all(Array.from({ length: task.attackers }, (_, number) => attack(task, number)));
    return;
  }
  isOver = true;
  void attacks?.then(() => {
    const report: AttackReport = {
      ...made,
      shares: sent.shares,
      hashes: String(sent.hashes),
      work: textOf(sent.work),
      unanswered: textOf(sent.unanswered),
    };
    process.send?.(report, () => process.disconnect?.());
  });
});
