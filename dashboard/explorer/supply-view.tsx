/** The supply: existing coins, where they are, and the future emission, computed by the ledger's own rule. */
import { firstInterval, GENESIS_SUPPLY, nextInterval } from '../../protocol/ledger/emission.ts';
import { coins, count, percent, time } from '../format.ts';
import { Amount, Placeholder } from '../view/parts.tsx';
import { useChain } from './chain-document.ts';
import { FactList } from './links.tsx';

const WIDTH = 640;
const HEIGHT = 220;
/** Room for the dot and the labels. */
const EDGE = 8;
const LABELS = 26;
const ATOMS = 100_000_000;
/** Intervals that are drawn; by then nearly everything is emitted. */
const INTERVALS = 2_000;

/** Coins at the end of each interval, from genesis on. */
export function supplyCurve(intervals: number): number[] {
  const points = [Number(GENESIS_SUPPLY) / ATOMS];
  let total = GENESIS_SUPPLY;
  let state = firstInterval();
  for (let i = 0; i < intervals; i++) {
    total += state.amount;
    points.push(Number(total) / ATOMS);
    state = nextInterval(state);
  }
  return points;
}

export function SupplyView() {
  const { data: supply, error } = useChain<'supply'>('economics/supply');
  const { data: emission } = useChain<'emission'>('economics/emission');
  if (supply === undefined)
    return (
      <section class="card">
        <Placeholder error={error} loading empty="" />
      </section>
    );
  return (
    <>
      <section class="card">
        <h2>Supply at cut {count(supply.finalized_height)}</h2>
        <FactList
          facts={[
            ['Total supply', <Amount key="total" atoms={supply.total_supply} />],
            ['Maximum supply', <Amount key="max" atoms={supply.max_supply} />],
            ['Circulating', <Amount key="circulating" atoms={supply.circulating_supply} />],
            ['Staked', <Amount key="bonded" atoms={supply.bonded} />],
            ['Unbonding', <Amount key="unbonding" atoms={supply.unbonding} />],
            ['Earned by work, not paid yet', <Amount key="work" atoms={supply.work_reserve} />],
            ['Earned by stake, not paid yet', <Amount key="stake" atoms={supply.stake_reserve} />],
            ['Burned', <Amount key="burned" atoms={supply.burned} />],
          ]}
        />
      </section>
      {emission === undefined ? null : (
        <section class="card">
          <h2>Emission</h2>
          <FactList
            facts={[
              [
                'Next cut',
                `${coins(emission.subsidy)} coins: ${coins(emission.work_half)} for work, ${coins(emission.stake_half)} for stake`,
              ],
              ['This interval', `${coins(emission.interval_amount)} coins in ${count(emission.interval_cuts)} cuts`],
              [
                'Next interval',
                `${coins(emission.next_interval_amount)} coins, from cut ${count(emission.next_reduction_height)}, about ${time(emission.next_reduction_millis)}`,
              ],
              ['Still to come', <Amount key="remaining" atoms={emission.remaining} />],
            ]}
          />
          <Curve interval={emission.interval} />
        </section>
      )}
    </>
  );
}

function Curve({ interval }: { interval: number }) {
  const curve = supplyCurve(INTERVALS);
  const most = curve.at(-1) as number;
  const x = (index: number) => EDGE + (index / INTERVALS) * (WIDTH - 2 * EDGE);
  const y = (value: number) => HEIGHT - LABELS - (value / most) * (HEIGHT - LABELS - EDGE);
  const shown = curve.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(' ');
  const now = Math.min(interval, INTERVALS);
  const here = curve[now] as number;
  return (
    <figure>
      <svg class="curve" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label="Supply over time">
        {[0, 0.5, 1].map((part) => (
          <line key={part} class="edge" x1={EDGE} x2={WIDTH - EDGE} y1={y(part * most)} y2={y(part * most)} />
        ))}
        {[0.5, 1].map((part) => (
          <text key={part} x={WIDTH - EDGE} y={y(part * most) + 5} text-anchor="end" dominant-baseline="hanging">
            {count(Math.round((part * most) / 1e6))} million coins
          </text>
        ))}
        <text x={EDGE} y={HEIGHT - 2}>
          start
        </text>
        <text x={WIDTH - EDGE} y={HEIGHT - 2} text-anchor="end">
          interval {count(INTERVALS)}
        </text>
        <polyline points={shown} />
        <circle cx={x(now)} cy={y(here)} r={5} />
      </svg>
      <figcaption class="note">
        Supply over the first {count(INTERVALS)} intervals (about a day each); the dot marks the current one,{' '}
        {count(interval)}. Every interval emits 0.3 % of the coins still to come;{' '}
        {percent((most - (curve[0] as number)) / 180_000_000, 1)} of the total emission is in this picture.
      </figcaption>
    </figure>
  );
}
