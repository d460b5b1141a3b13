/** Where a node of the simulator is: its world, its seats, and how it behaves. */
import type { Committee } from '../../node/consensus/engine/committee.ts';
import type { Message } from '../../node/consensus/engine/effects.ts';
import type { Rules } from '../../node/consensus/engine/rules.ts';
import type { Checks } from './checks.ts';
import type { Scenario } from './scenario.ts';
import type { World } from './world.ts';

export type Place = {
  readonly world: World;
  readonly scenario: Scenario;
  readonly checks: Checks;
  readonly rules: Rules;
  /** Gives a message to every node object of that number. */
  readonly deliver: (message: Message, from: number, to: number) => void;
  /** Whether two nodes are connected. */
  readonly reaches: (from: number, to: number) => boolean;
};

export type Habits = {
  /** What a liar makes of its messages; an honest node sends them as they are. */
  readonly alters?: (message: Message, to: number) => Message | undefined;
  readonly isHonest: boolean;
  /** Neither lock nor valid value stays: it proposes afresh and votes for whatever comes. */
  readonly forgets?: boolean;
};

export const seatOf = (scenario: Scenario, height: number): { committee: Committee; seats: readonly number[] } => {
  const epoch = Math.floor((height - 1) / scenario.epochCuts) % scenario.committees.length;
  return { committee: scenario.committees[epoch] as Committee, seats: scenario.seats[epoch] as readonly number[] };
};
