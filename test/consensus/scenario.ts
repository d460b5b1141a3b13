/** What one seed means: how many nodes of which stake, which of them lie and how, whose clock is wrong, what the network and the disks do, and until when. */
import { Committee } from '../../node/consensus/engine/committee.ts';
import { type Random, randomOf } from '../random.ts';
import { isQuorumOfHonest } from './checks.ts';
import { evenLoss, type Weather } from './world.ts';

export const STRATEGIES = [
  'silent',
  'equivocating',
  'proposing to halves',
  'junk',
  'replaying',
  'amnesia',
  'withholding',
  'twins',
  'wrecking',
] as const;
/** `deserting` belongs to scenarios of its own (`strandedOf`), `hurrying` to those of `hurriedOf` and to some of the others. */
export type Strategy = (typeof STRATEGIES)[number] | 'deserting' | 'hurrying';

export type Scenario = {
  readonly seed: number;
  readonly nodes: number;
  /** Cuts of an epoch; the committee changes after them. */
  readonly epochCuts: number;
  readonly committees: readonly Committee[];
  /** Which node sits where in the committee of each epoch. */
  readonly seats: readonly (readonly number[])[];
  readonly liars: ReadonlyMap<number, Strategy>;
  /** False where liars have exactly a third of the stake: then nobody promises progress. */
  readonly mustProgress: boolean;
  readonly clocks: readonly number[];
  readonly weather: Weather;
  readonly partitions: boolean;
  /** Who decides a height first is cut off at once. */
  readonly ambushes: boolean;
  /** Nodes hear those of their own side alone until the network heals. */
  readonly sides: readonly number[] | undefined;
  /** The network itself helps one node to decide alone. */
  readonly plots: boolean;
  /** Chance of a crash before each effect. */
  readonly crashes: number;
  /** All crash when the network heals. */
  readonly powerCut: boolean;
  /** Processes that do not run for a while, some of them now and then, or all honest ones together when the network heals. */
  readonly naps?: 'some' | 'all';
  readonly diskMillis: number;
  readonly executionMillis: number;
  readonly chaosMillis: number;
  /** Cuts that every honest node must add after the network healed. */
  readonly cutsAfter: number;
};

const HOUR = 3_600_000;
const EPOCHS = 24;

export function scenarioOf(seed: number): Scenario {
  const apart = randomOf((~seed ^ 0x6e_61_70) >>> 0);
  const scenario = wakefulOf(seed);
  return apart(8) === 0 ? { ...scenario, naps: apart(2) === 0 ? 'all' : 'some' } : scenario;
}

function wakefulOf(seed: number): Scenario {
  // Drawn apart: what other seeds mean does not change with it.
  const apart = randomOf(~seed >>> 0);
  const kind = apart(16);
  if (kind === 0) return strandedOf(seed);
  const powerCut = apart(8) === 0;
  if (apart(64) === 0) return hurriedOf(seed);
  const mixed = mixedOf(seed);
  if (apart(12) !== 0 || mixed.plots) return { ...mixed, powerCut };
  return { ...mixed, powerCut, liars: new Map([...mixed.liars.keys()].map((node) => [node, 'hurrying'])) };
}

/** One epoch, a calm network, all clocks nearly right. */
function plainOf(seed: number, stakes: readonly bigint[], random: Random) {
  const setId = new Uint8Array(48).fill(7);
  setId.set([seed & 255, (seed >> 8) & 255, (seed >> 16) & 255]);
  const members = stakes.map((stake, node) => ({ publicKey: Uint8Array.of(node), stake }));
  return {
    seed,
    nodes: stakes.length,
    epochCuts: 24,
    committees: [new Committee(setId, members)],
    seats: [[...stakes.keys()]],
    mustProgress: true,
    clocks: stakes.map(() => random(600) - 300),
    weather: { loss: evenLoss(0), twice: 0, slowest: 50, stray: 0 },
    partitions: false,
    ambushes: false,
    plots: false,
    crashes: 0,
    powerCut: false,
    diskMillis: 0,
    executionMillis: 5,
    cutsAfter: 2,
  };
}

/**
 * What a liar can make of the rule by which a member follows others to the next round (rule 8). The network is parted for long: on one side the liar, which votes in later rounds than everybody, and honest members
 * of less than a third; on the other honest members that can decide nothing without them. Then the network heals, and the liar is silent. Rounds that the few went through alone, the others would have to go through too.
 */
export function hurriedOf(seed: number): Scenario {
  const random = randomOf(seed);
  const few = 5 + random(20);
  const most = 100 - 30 - few;
  const stakes = [30, few, Math.floor(most / 2), Math.ceil(most / 2)].map(BigInt);
  return {
    ...plainOf(seed, stakes, random),
    liars: new Map([[0, 'hurrying']]),
    sides: [0, 0, 1, 1],
    chaosMillis: 1_200_000,
  };
}

/**
 * Liveness that rests on line 55 alone. One of four hears nobody; a liar votes for nothing in every round, so that the other two go from round to round, past all that they remember of the first ones; then the liar is gone for good and the
 * network heals. The three that are left need each other, and nobody can send the one that stayed behind the votes of its round any more.
 */
function strandedOf(seed: number): Scenario {
  const random = randomOf(seed);
  const [stranded, liar] = shuffled(4, random) as [number, number];
  return {
    ...plainOf(seed, [10n, 10n, 10n, 10n], random),
    liars: new Map([[liar, 'deserting']]),
    sides: [0, 1, 2, 3].map((node) => (node === stranded ? 1 : 0)),
    chaosMillis: 30_000 + random(20_000),
  };
}

function mixedOf(seed: number): Scenario {
  const random = randomOf(seed);
  const plots = random(10) === 0;
  const nodes = plots ? 4 : 4 + random(random(4) === 0 ? 7 : 3);
  const epochCuts = 2 + random(6);
  const isThirds = !plots && random(12) === 0;
  const stakes = isThirds ? thirds(nodes) : Array.from({ length: nodes }, () => BigInt(plots ? 10 : stakeOf(random)));
  const changes = !isThirds && !plots && random(3) === 0;
  const order = shuffled(nodes, random);
  const faulty = isThirds ? [nodes - 1] : weakest(order, stakes, random);
  const wrongClock = !isThirds && !plots && random(4) === 0 ? faulty.pop() : undefined;
  const liars = new Map<number, Strategy>(
    faulty.map((node) => [node, plots ? 'wrecking' : (STRATEGIES[random(STRATEGIES.length)] as Strategy)]),
  );
  const seats: number[][] = [];
  const committees: Committee[] = [];
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    let seated = changes && epoch > 0 ? seatsOf(nodes, random) : [...Array(nodes).keys()];
    const out = [...liars.keys(), ...(wrongClock === undefined ? [] : [wrongClock])];
    if (!isThirds && !isQuorumOfHonest(seated, stakes, out)) seated = [...Array(nodes).keys()];
    seats.push(seated);
    const setId = new Uint8Array(48).fill(changes ? epoch + 1 : 1);
    setId[0] = seed & 255;
    setId[1] = (seed >> 8) & 255;
    committees.push(
      new Committee(
        setId,
        seated.map((node) => ({ publicKey: Uint8Array.of(node), stake: stakes[node] as bigint })),
      ),
    );
  }
  const isCalm = plots || random(8) === 0;
  return {
    seed,
    nodes,
    epochCuts,
    committees,
    seats,
    liars,
    mustProgress: !isThirds,
    clocks: Array.from({ length: nodes }, (_, node) =>
      node === wrongClock ? (random(2) === 0 ? HOUR : -HOUR) : random(600) - 300,
    ),
    weather: isCalm
      ? { loss: { ...evenLoss(0), again: plots ? 0.9 : 0 }, twice: 0, slowest: 50, stray: 0 }
      : {
          loss: lossOf(random),
          twice: random(20) / 100,
          slowest: [30, 200, 800, 2_000][random(4)] as number,
          stray: random(3) === 0 ? 0.1 : 0,
        },
    partitions: !isCalm && !plots && random(2) === 0,
    ambushes: plots || (!isCalm && random(3) === 0),
    sides: undefined,
    plots,
    crashes: isCalm || random(3) === 0 ? 0 : ([0.002, 0.01, 0.04][random(3)] as number),
    powerCut: false,
    diskMillis: random(4) === 0 ? 30 : 0,
    executionMillis: [5, 100, 1_200][random(3)] as number,
    chaosMillis: 8_000 + random(14_000),
    cutsAfter: 2,
  };
}

/** Loss of all alike, or the worst: votes that let some lock and hardly anyone decide, and little that comes again. */
function lossOf(random: Random): Weather['loss'] {
  if (random(3) === 0)
    return {
      proposal: random(20) / 100,
      prevote: random(50) / 100,
      precommit: 0.3 + random(50) / 100,
      again: 0.5 + random(50) / 100,
    };
  return evenLoss(random(3) === 0 ? 0.3 + random(30) / 100 : random(25) / 100);
}

const stakeOf = (random: Random): number => (random(2) === 0 ? 10 : 1 + random(20));

/** The last node has exactly a third. */
const thirds = (nodes: number): bigint[] =>
  Array.from({ length: nodes }, (_, node) => BigInt(node === nodes - 1 ? nodes - 1 : 2));

function shuffled(nodes: number, random: Random): number[] {
  const order = [...Array(nodes).keys()];
  for (let i = nodes - 1; i > 0; i--) {
    const j = random(i + 1);
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}

/** Nodes with less than a third of the stake together. */
function weakest(order: readonly number[], stakes: readonly bigint[], random: Random): number[] {
  const total = stakes.reduce((sum, stake) => sum + stake, 0n);
  const faulty: number[] = [];
  let sum = 0n;
  const most = random(5) === 0 ? 0 : order.length;
  for (const node of order) {
    if (faulty.length >= most || (sum + (stakes[node] as bigint)) * 3n >= total) continue;
    sum += stakes[node] as bigint;
    faulty.push(node);
  }
  return faulty;
}

const seatsOf = (nodes: number, random: Random): number[] => {
  const away = random(nodes);
  return random(2) === 0 ? shuffled(nodes, random).filter((node) => node !== away) : shuffled(nodes, random);
};
