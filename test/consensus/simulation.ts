/** One run of the simulator from one seed: build the world, let it be bad for a while, heal it, and see that every honest node goes on. */
import type { Event, Message } from '../../node/consensus/engine/effects.ts';
import { RULES, type Rules } from '../../node/consensus/engine/rules.ts';
import { NIL, PREVOTE } from '../../node/consensus/engine/votes.ts';
import { Checks } from './checks.ts';
import { Liar } from './liar.ts';
import { type Scenario, scenarioOf } from './scenario.ts';
import { SimNode } from './sim-node.ts';
import type { Place } from './sim-place.ts';
import { evenLoss, isSignedBy, World } from './world.ts';

export type Outcome = {
  readonly seed: number;
  readonly failure: string | undefined;
  readonly events: number;
  /** From the healing of the network until every honest node had its cuts. */
  readonly recoveryMillis: number;
  readonly highestRound: number;
  readonly restarts: number;
  readonly height: number;
  readonly recorded: readonly Event[];
};

export type Options = { readonly rules?: Rules; readonly scenario?: Scenario; readonly record?: number };

const CALM = { loss: evenLoss(0), twice: 0, slowest: 60, stray: 0 } as const;
/** Honest members that are left alone go on within this; rounds of the bad time were long. */
const PATIENCE = 240_000;

export function simulate(seed: number, options: Options = {}): Outcome {
  const rules = options.rules ?? RULES;
  const scenario = options.scenario ?? scenarioOf(seed);
  const world = new World(seed, scenario.weather);
  const checks = new Checks(world);
  const objects: { receive: SimNode['receive']; isUp?: boolean }[][] = Array.from({ length: scenario.nodes }, () => []);
  const place: Place = {
    world,
    scenario,
    checks,
    rules,
    deliver: (message, from, to) => {
      for (const object of objects[to] as { receive: SimNode['receive'] }[]) object.receive(message, from);
    },
    reaches: (from, to) =>
      (world.sides === undefined || world.sides[from] === world.sides[to]) &&
      (objects[to] as { isUp?: boolean }[]).some(({ isUp }) => isUp !== false),
  };
  const honest: SimNode[] = [];
  for (let number = 0; number < scenario.nodes; number++) {
    const strategy = scenario.liars.get(number);
    if (strategy === undefined) {
      const node = new SimNode(number, place, { isHonest: true });
      if (options.record === number) node.recorded = [];
      honest.push(node);
      objects[number]?.push(node);
      node.start();
      continue;
    }
    const puppets = puppetsOf(number, place, strategy);
    for (const puppet of puppets) puppet.start();
    objects[number]?.push(...(puppets.length > 0 ? puppets : [new Liar(number, place, strategy)]));
  }
  world.sides = scenario.sides && [...scenario.sides];
  if (scenario.partitions) planPartitions(world, scenario);
  if (scenario.ambushes)
    checks.firstDecided = (node) => {
      if (world.now < scenario.chaosMillis && world.chance(0.7))
        world.ambush(node, scenario.nodes, scenario.chaosMillis);
    };
  if (scenario.naps === 'some') planNaps(world, scenario, honest);
  if (scenario.plots) world.plot = plotOf(scenario);
  world.run(scenario.chaosMillis, () => false);
  world.plot = undefined;
  world.weather = CALM;
  world.sides = undefined;
  if (scenario.naps === 'all') for (const node of honest) node.nap(15_000 + world.random(15_000));
  if (scenario.powerCut) for (const node of honest) node.crash();
  const target = Math.max(...honest.map(({ height }) => height)) + scenario.cutsAfter;
  const isDone = () => honest.every(({ height }) => height >= target);
  if (world.failure === undefined) world.run(scenario.chaosMillis + PATIENCE, isDone);
  if (world.failure === undefined && scenario.mustProgress && !isDone())
    world.fail(`no progress: heights ${honest.map(({ height }) => height)}, ${target} wanted`);
  for (const node of honest) checkMemory(node, world);
  return {
    seed,
    failure: world.failure,
    events: world.events,
    recoveryMillis: world.now - scenario.chaosMillis,
    highestRound: Math.max(...honest.map(({ highestRound }) => highestRound)),
    restarts: honest.reduce((sum, { restarts }) => sum + restarts, 0),
    height: target,
    recorded: honest.find(({ number }) => number === options.record)?.recorded ?? [],
  };
}

/** Liars that run the engine. */
function puppetsOf(number: number, place: Place, strategy: string): SimNode[] {
  const { world, scenario } = place;
  if (strategy === 'twins') return [0, 1].map(() => new SimNode(number, { ...place }, { isHonest: false }));
  if (strategy === 'amnesia') return [new SimNode(number, place, { isHonest: false, forgets: true })];
  if (strategy === 'wrecking')
    return [new SimNode(number, place, { isHonest: false, forgets: true, alters: wrecks(place, number) })];
  if (strategy !== 'withholding') return [];
  // Everything to one node for a while, nothing to the others: whoever locks alone stands alone.
  let favourite = world.random(scenario.nodes);
  const alters = (message: Message, to: number) => {
    if (world.chance(0.1)) favourite = world.random(scenario.nodes);
    return to === favourite ? message : undefined;
  };
  return [new SimNode(number, place, { isHonest: false, alters })];
}

/** Helps one node to decide alone: the others get votes for nothing, go on to the next round, and there it has forgotten all about it. */
function wrecks({ world, scenario }: Place, self: number): (message: Message, to: number) => Message | undefined {
  return (message, to) => {
    if (message.type === 'proposal') return message;
    // Of others' votes it could only change the text, and then no signature fits.
    if (message.type !== 'vote' || !isSignedBy(self, message.vote)) return undefined;
    const { vote } = message;
    const favourite = (vote.height + vote.round + scenario.seed) % scenario.nodes;
    if (world.now >= scenario.chaosMillis) return message;
    const helps = vote.kind === PREVOTE ? to !== (favourite + 1) % scenario.nodes : to === favourite;
    return helps ? message : { type: 'vote', vote: { ...vote, cut: NIL } };
  };
}

/** One node's precommit reaches nobody, and its prevote not the next node, which so sees no polka: the one decides, the others do not. */
function plotOf({ nodes, seed, seats }: Scenario): (message: Message, to: number) => boolean {
  return (message, to) => {
    if (message.type !== 'vote' || message.vote.cut === NIL) return false;
    const { height, round, member, kind } = message.vote;
    const chosen = (height + round + seed) % nodes;
    return seats[0]?.[member] === chosen && (kind === PREVOTE ? to === (chosen + 1) % nodes : true);
  };
}

function planPartitions(world: World, scenario: Scenario): void {
  const split = () => {
    world.sides = world.chance(0.3) ? undefined : Array.from({ length: scenario.nodes }, () => world.random(2));
    world.after(500 + world.random(4_000), () => {
      if (world.now < scenario.chaosMillis) split();
    });
  };
  split();
}

function planNaps(world: World, scenario: Scenario, honest: readonly SimNode[]): void {
  const plan = () =>
    world.after(1_000 + world.random(5_000), () => {
      if (world.now >= scenario.chaosMillis) return;
      honest[world.random(honest.length)]?.nap(world.random(25_000));
      plan();
    });
  plan();
}

/** Rule 14: whatever is sent, a member remembers a bounded number of votes and proposals. */
function checkMemory({ state, number }: SimNode, world: World): void {
  const { rounds, values, early, earlyProposals, committee } = state;
  if (rounds.size > 16 || values.size > 32 || early.size > 4 * committee.size || earlyProposals.size > 2)
    world.fail(`node ${number} remembers ${rounds.size} rounds, ${values.size} values, ${early.size} early votes`);
}
