/**
 * Draws docs/protocol/retarget.svg: hash rate per cut and the work of a block times four, over a day with hundredfold jumps. Written by
 * `node test/node/retarget-plot.ts`.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { simulateRetarget } from './retarget-simulation.ts';

const STAGES = [
  { cuts: 2_880, rate: 1e6 },
  { cuts: 5_760, rate: 1e8 },
  { cuts: 5_760, rate: 1e6 },
  { cuts: 2_880, rate: 1e7 },
];
const WIDTH = 960;
const HEIGHT = 360;
const LEFT = 70;
const BOTTOM = 40;

export function retargetPlot(): string {
  const cuts = simulateRetarget(STAGES, 7);
  const x = (i: number) => LEFT + (i / cuts.length) * (WIDTH - LEFT - 10);
  const y = (value: number) => HEIGHT - BOTTOM - ((Math.log10(value) - 5.5) / 3) * (HEIGHT - BOTTOM - 20);
  const line = (value: (i: number) => number, step: number) => {
    const points: string[] = [];
    for (let i = 0; i < cuts.length; i += step) points.push(`${x(i).toFixed(1)},${y(value(i)).toFixed(1)}`);
    return points.join(' ');
  };
  const text = (px: number, py: number, words: string, anchor = 'start') =>
    `<text x="${px}" y="${py}" text-anchor="${anchor}">${words}</text>`;
  const hours = Array.from({ length: 13 }, (_, hour) => hour).map((hour) =>
    text(x(hour * 1_440), HEIGHT - 18, `${hour} h`, 'middle'),
  );
  const powers = [6, 7, 8].map((power) => text(LEFT - 8, y(10 ** power) + 4, `10^${power}`, 'end'));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<title>Retargeting over half a day of hundredfold jumps</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
${hours.filter((_, hour) => hour * 1_440 <= cuts.length).join('\n')}
${powers.join('\n')}
<polyline fill="none" stroke="#999" stroke-width="3" points="${line((i) => cuts[i]?.rate ?? 1, 12)}"/>
<polyline fill="none" stroke="#c33" stroke-width="1" points="${line((i) => 4 * (cuts[i]?.work ?? 1), 12)}"/>
${text(LEFT + 10, 16, 'hashes per cut: of the network (grey), and four times the work of a block (red)')}
</svg>
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../../docs/protocol/retarget.svg', import.meta.url), retargetPlot());
