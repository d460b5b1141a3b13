/** The supply: existing coins, where they are, and the future emission, computed by the ledger's own rule. */

import { firstInterval, GENESIS_SUPPLY, nextInterval } from '../../protocol/ledger/emission.ts';
import { coins, count, percent, time } from '../format.ts';
import { Amount, Placeholder } from '../view/parts.tsx';
import { word } from '../words/language.ts';
import { useChain } from './chain-document.ts';
import { FactList } from './links.tsx';

const PLOTTED = 194;
/** Room for those below. */
const LABELS = 26;
const ATOMS = 100_000_000;
/** Intervals that are drawn; by then nearly everything is emitted. */
const INTERVALS = 2_000;
/** Of what is still to come, in each interval. */
const EMITTED = 0.003;

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
        <h2>{word('chain.supply_at', { height: count(supply.finalized_height) })}</h2>
        <FactList
          facts={[
            [word('chain.total'), <Amount key="total" atoms={supply.total_supply} />],
            [word('chain.maximum'), <Amount key="max" atoms={supply.max_supply} />],
            [word('chain.circulating'), <Amount key="circulating" atoms={supply.circulating_supply} />],
            [word('chain.staked'), <Amount key="bonded" atoms={supply.bonded} />],
            [word('chain.unbonding'), <Amount key="unbonding" atoms={supply.unbonding} />],
            [word('chain.earned_work'), <Amount key="work" atoms={supply.work_reserve} />],
            [word('chain.earned_stake'), <Amount key="stake" atoms={supply.stake_reserve} />],
            [word('chain.burned'), <Amount key="burned" atoms={supply.burned} />],
          ]}
        />
      </section>
      {emission === undefined ? null : (
        <section class="card">
          <h2>{word('chain.emission')}</h2>
          <FactList
            facts={[
              [
                word('chain.next_cut'),
                word('chain.halves', {
                  coins: coins(emission.subsidy),
                  work: coins(emission.work_half),
                  stake: coins(emission.stake_half),
                }),
              ],
              [
                word('chain.interval'),
                word('chain.interval_is', {
                  coins: coins(emission.interval_amount),
                  cuts: count(emission.interval_cuts),
                }),
              ],
              [
                word('chain.next_interval'),
                word('chain.next_interval_is', {
                  coins: coins(emission.next_interval_amount),
                  height: count(emission.next_reduction_height),
                  time: time(emission.next_reduction_millis),
                }),
              ],
              [word('chain.to_come'), <Amount key="remaining" atoms={emission.remaining} />],
            ]}
          />
          <Curve interval={emission.interval} />
        </section>
      )}
    </>
  );
}

/** As wide as there is room, and always as high: heights and letters are pixels, only the line is stretched. */
function Curve({ interval }: { interval: number }) {
  const curve = supplyCurve(INTERVALS);
  const most = curve.at(-1) as number;
  const y = (value: number) => PLOTTED - (value / most) * PLOTTED;
  const shown = curve.map((value, index) => `${index},${y(value).toFixed(1)}`).join(' ');
  const now = Math.min(interval, INTERVALS);
  return (
    <figure>
      <svg class="curve" height={PLOTTED + LABELS} role="img" aria-label={word('chain.over_time')}>
        {[0, 0.5, 1].map((part) => (
          <line key={part} class="edge" x1="0" x2="100%" y1={y(part * most)} y2={y(part * most)} />
        ))}
        {[0.5, 1].map((part) => (
          <text key={part} x="100%" y={y(part * most) + 5} text-anchor="end" dominant-baseline="hanging">
            {word('chain.million', { count: count(Math.round((part * most) / 1e6)) })}
          </text>
        ))}
        <text x="0" y={PLOTTED + LABELS - 4}>
          {word('chain.start')}
        </text>
        <text x="100%" y={PLOTTED + LABELS - 4} text-anchor="end">
          {word('chain.interval_number', { count: count(INTERVALS) })}
        </text>
        <svg viewBox={`0 0 ${INTERVALS} ${PLOTTED}`} height={PLOTTED} preserveAspectRatio="none" aria-hidden="true">
          <polyline points={shown} vector-effect="non-scaling-stroke" />
        </svg>
        <circle cx={`${(now / INTERVALS) * 100}%`} cy={y(curve[now] as number)} r={5} />
      </svg>
      <figcaption class="note">
        {word('chain.curve', {
          intervals: count(INTERVALS),
          interval: count(interval),
          part: percent(EMITTED, 1),
          shown: percent((most - (curve[0] as number)) / 180_000_000, 1),
        })}
      </figcaption>
    </figure>
  );
}
