/**
 * Draws docs/anchors.svg and prints the tables of docs/anchors.md: income per hash with `best` against `newest`, by how much of the network uses it, and the target after
 * hundredfold jumps. Written by `node test/node/anchor-plot.ts`, which takes a minute.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type AnchorIncome, type AnchorWorld, simulateAnchors } from './anchor-simulation.ts';

export const ADOPTIONS = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1];

/** Twenty servers, or as many of them as use `best`, and news that take a third of a cut. */
const WORLDS: Readonly<Record<string, Pick<AnchorWorld, 'delay'> & { perCut: number; isOneServer: boolean }>> = {
  'a block in four cuts': { perCut: 0.25, delay: 0.3, isOneServer: false },
  'one block a cut': { perCut: 1, delay: 0.3, isOneServer: false },
  'four blocks a cut (the target)': { perCut: 4, delay: 0.3, isOneServer: false },
  'four, one server, news of a whole cut': { perCut: 4, delay: 0.95, isOneServer: true },
  'twelve blocks a cut': { perCut: 12, delay: 0.3, isOneServer: false },
};

const income = (name: string, adoption: number, cuts: number, seed: number): AnchorIncome => {
  const { perCut, delay, isOneServer } = WORLDS[name] as (typeof WORLDS)[string];
  const servers = isOneServer ? 1 : Math.max(1, Math.round(adoption * 20));
  const fixedWork = Math.round(1e6 / perCut);
  return simulateAnchors({ seed, adoption, servers, draws: 4, delay, stages: [{ cuts, rate: 1e6 }], fixedWork });
};

export const JUMPS = [
  { cuts: 300, rate: 1e6 },
  { cuts: 500, rate: 1e8 },
  { cuts: 700, rate: 1e6 },
];

/** Cuts after each jump until four times the work of a block stays within a factor of two of the hash rate. */
export function settling(adoption: number, seed: number): { readonly cuts: number[]; readonly lost: number } {
  const servers = Math.max(1, Math.round(adoption * 20));
  const { cuts, lost } = simulateAnchors({ seed, adoption, servers, draws: 4, delay: 0.3, stages: JUMPS });
  const settled: number[] = [];
  let from = 0;
  for (const stage of JUMPS) {
    const end = from + stage.cuts;
    if (from > 0) {
      let last = from;
      for (let i = from; i < end; i++)
        if (Math.abs(Math.log2(((cuts[i]?.work ?? 0) * 4) / stage.rate)) > 1) last = i + 1;
      settled.push(last - from);
    }
    from = end;
  }
  return { cuts: settled, lost };
}

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [960, 360, 60, 50];
const COLOURS = ['#888', '#2a7', '#c33', '#e90', '#37c'];

function plot(lines: ReadonlyMap<string, readonly number[]>): string {
  const x = (i: number) => LEFT + 20 + (i / (ADOPTIONS.length - 1)) * (WIDTH - LEFT - 60);
  const y = (value: number) => HEIGHT - BOTTOM - ((value - 0.8) / 1.4) * (HEIGHT - BOTTOM - 20);
  const text = (px: number, py: number, words: string, fill = '#000', anchor = 'start') =>
    `<text x="${px.toFixed(1)}" y="${py.toFixed(1)}" fill="${fill}" text-anchor="${anchor}">${words}</text>`;
  const drawn = [...lines].flatMap(([name, values], n) => [
    `<polyline fill="none" stroke="${COLOURS[n]}" stroke-width="2" points="${values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(' ')}"/>`,
    text(WIDTH - 330, 40 + 18 * n, name, COLOURS[n]),
  ]);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<title>Income per hash with best anchors, as a part of that with newest anchors</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<line x1="${LEFT}" x2="${WIDTH - 20}" y1="${y(1).toFixed(1)}" y2="${y(1).toFixed(1)}" stroke="#bbb"/>
${ADOPTIONS.map((part, i) => text(x(i), HEIGHT - 28, `${part * 100} %`, '#000', 'middle')).join('\n')}
${[0.8, 1, 1.2, 1.4, 1.6, 1.8, 2].map((value) => text(LEFT - 8, y(value) + 4, value.toFixed(1), '#000', 'end')).join('\n')}
${text(LEFT + 20, HEIGHT - 10, 'part of the hash rate that mines by best; income per hash of one more small miner with best, newest being 1')}
${drawn.join('\n')}
</svg>
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const cuts = Number(process.argv[2] ?? 8_000);
  const lines = new Map<string, number[]>();
  for (const name of Object.keys(WORLDS)) {
    const incomes = ADOPTIONS.map((adoption) => income(name, adoption, cuts, 11));
    lines.set(
      name,
      incomes.map(({ probe }) => probe),
    );
    console.log(`| ${name} | ${incomes.map(({ probe }) => probe.toFixed(2)).join(' | ')} |`);
    console.log(
      `| measured, best : newest | ${incomes.map(({ best, newest }, i) => (ADOPTIONS[i] === 1 ? best : best / newest).toFixed(2)).join(' | ')} |`,
    );
    console.log(`| spread of a reward | ${incomes.map(({ spread }) => spread.toFixed(2)).join(' | ')} |`);
    console.log(`| lost % | ${incomes.map(({ lost }) => (100 * lost).toFixed(2)).join(' | ')} |`);
  }
  writeFileSync(new URL('../../docs/anchors.svg', import.meta.url), plot(lines));
  for (const adoption of [0, 0.5, 1])
    console.log('jumps', adoption, JSON.stringify([1, 2, 3, 4, 5].map((seed) => settling(adoption, seed))));
}
