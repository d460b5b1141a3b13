/**
 * Draws docs/withholding.svg and prints the table of docs/statistics.md: how many blocks an account is expected to find until its withholding is seen. Written by
 * `node test/pool/withholding-plot.ts`, which takes some seconds.
 */
import { writeFileSync } from 'node:fs';
import { seenAfter } from './withholding-simulation.ts';

const PARTS = [0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
const HONEST = [
  { blocks: 0, name: 'from its first share on', colour: '#2a7' },
  { blocks: 100, name: 'after 100 expected blocks of honest work', colour: '#37c' },
  { blocks: 10_000, name: 'after 10,000 expected blocks of honest work', colour: '#c33' },
] as const;

/** Mean of a cut's block work by the highest of 81, with four blocks a cut (ledger rule 39). */
const SURE = 0.942;

type Seen = ReturnType<typeof seenAfter>;

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [960, 360, 60, 50];
const MOST = 10_000;

function plot(lines: readonly (readonly Seen[])[]): string {
  const x = (part: number) => LEFT + 20 + ((part - 0.1) / 0.9) * (WIDTH - LEFT - 60);
  const y = (blocks: number) => HEIGHT - BOTTOM - (Math.log10(blocks / 10) / 3) * (HEIGHT - BOTTOM - 20);
  const text = (px: number, py: number, words: string, fill = '#000', anchor = 'start') =>
    `<text x="${px.toFixed(1)}" y="${py.toFixed(1)}" fill="${fill}" text-anchor="${anchor}">${words}</text>`;
  const drawn = lines.flatMap((seen, n) => {
    const { name, colour } = HONEST[n] as (typeof HONEST)[number];
    const points = (of: 'median' | 'most') =>
      seen
        .flatMap((each, i) =>
          each[of] > MOST ? [] : [`${x(PARTS[i] as number).toFixed(1)},${y(each[of]).toFixed(1)}`],
        )
        .join(' ');
    return [
      `<polyline fill="none" stroke="${colour}" stroke-width="2" points="${points('median')}"/>`,
      `<polyline fill="none" stroke="${colour}" stroke-dasharray="4 4" points="${points('most')}"/>`,
      text(WIDTH - 330, 40 + 18 * n, name, colour),
    ];
  });
  const lattice = [10, 100, 1_000, MOST].flatMap((blocks) => [
    `<line x1="${LEFT}" x2="${WIDTH - 20}" y1="${y(blocks).toFixed(1)}" y2="${y(blocks).toFixed(1)}" stroke="#ddd"/>`,
    text(LEFT - 8, y(blocks) + 4, blocks.toLocaleString('en'), '#000', 'end'),
  ]);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<title>Expected blocks until an account that keeps blocks back is named</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
${lattice.join('\n')}
${PARTS.filter((part) => part !== 0.15)
  .map((part) => text(x(part), HEIGHT - 28, `${Math.round(part * 100)} %`, '#000', 'middle'))
  .join('\n')}
${text(LEFT + 20, HEIGHT - 10, 'part of its blocks that an account keeps back; blocks expected of it until it is named: half of them (solid), nine of ten (dashed)')}
${drawn.join('\n')}
</svg>
`;
}

const lines = HONEST.map(({ blocks }) =>
  PARTS.map((withheld) =>
    seenAfter({
      withheld,
      honest: blocks,
      sure: SURE,
      step: blocks > 1_000 ? 4 : 0.25,
      runs: blocks > 1_000 ? 60 : 200,
      seed: 7,
    }),
  ),
);
const shown = ({ median, most }: Seen) => (median > MOST ? 'not seen' : `${Math.round(median)}; ${Math.round(most)}`);
console.log(`| kept back | ${HONEST.map(({ name }) => name).join(' | ')} |\n|---|${'---|'.repeat(HONEST.length)}`);
for (const [i, part] of PARTS.entries())
  console.log(`| ${Math.round(part * 100)} % | ${lines.map((seen) => shown(seen[i] as Seen)).join(' | ')} |`);
writeFileSync(new URL('../../docs/withholding.svg', import.meta.url), plot(lines));
