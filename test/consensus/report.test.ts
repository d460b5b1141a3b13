/** What a running member tells: its trace gives the same effects again, its figures count what went wrong, and its report says where it stands. */
import { afterEach, expect, test } from 'vitest';
import { type ConsensusCount, ConsensusWatch } from '../../node/consensus/driver/figures.ts';
import type { Effect } from '../../node/consensus/engine/effects.ts';
import { LISTEN_TICKS, WHOLE_TICK } from '../../node/consensus/engine/listening.ts';
import { replay } from '../../node/consensus/log/trace.ts';
import { TraceRecorder } from '../../node/consensus/log/trace-recorder.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { type ConsensusReport, consensusReport, type ValidatorReport } from '../../node/reports/consensus-report.ts';
import { SeatWatch } from '../../node/validator/seat-watch.ts';
import { statusLines } from '../../node/validator/validator-commands.ts';
import { toHex } from '../../protocol/bytes.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { quietLog } from '../quiet-log.ts';
import { until } from '../until.ts';
import { DrivenNetwork, MEMBERS } from './driven.ts';

let network: DrivenNetwork | undefined;
afterEach(async () => {
  await network?.close();
});

const shown = (effects: readonly Effect[]) =>
  effects.map((effect) => {
    if (effect.do === 'sign' || (effect.do === 'send' && effect.to === 'all')) {
      const { message } = effect;
      const place = message.type === 'vote' ? message.vote : message.type === 'proposal' ? message.proposal : undefined;
      return [effect.do, message.type, place?.height, place?.round, place?.cut];
    }
    return effect.do === 'decide' ? ['decide', effect.proof.cut, effect.proof.round] : [effect.do];
  });

test('the trace of a height, recorded by a member at work, gives the same effects again; figures and report fit', async () => {
  // Long enough that a round without a proposal comes in the first epoch, whoever is drawn to propose.
  network = new DrivenNetwork(96);
  const counts = new Map<ConsensusCount, number>();
  const steps = new Set<string>();
  const traces: { text: string; effects: unknown[] }[] = [];
  for (let member = 0; member < MEMBERS - 1; member++) {
    let recorder: TraceRecorder | undefined;
    let watch: ConsensusWatch | undefined;
    let effects: Effect[] = [];
    const { driver } = await network.start(`m${member}`, member, {
      onStep: (step) => steps.add(step),
      watch: (event, out, state) => {
        if (event.type === 'height') {
          if (recorder !== undefined && effects.length > 0 && member === 0)
            traces.push({ text: recorder.text, effects: shown(effects) });
          effects = [];
        } else effects.push(...out);
        recorder?.note(event, state);
        watch?.note(event, out, state);
      },
    });
    recorder = new TraceRecorder(driver.state);
    const figures = {
      step: (step: string) => steps.add(step),
      count: (what: ConsensusCount) => counts.set(what, (counts.get(what) ?? 0) + 1),
    };
    watch = new ConsensusWatch(driver.state, figures, () => performance.now());
  }
  const first = network.running.get('m0');
  // One member is away: its rounds have no proposal, and its precommits are never named.
  const isCounted = (what: ConsensusCount) => (counts.get(what) ?? 0) > 0;
  await until(
    () => (first?.node.chain.head().height ?? 0) >= 8 && isCounted('missed_proposals') && isCounted('rounds'),
  );
  expect(traces.length).toBeGreaterThan(3);
  for (const { text, effects } of traces.slice(1)) expect(shown(replay(text).effects.flat())).toEqual(effects);
  expect([...steps].sort()).toEqual(['commit', 'execute', 'precommit', 'prevote', 'propose']);

  const { node, driver } = first as NonNullable<typeof first>;
  const { publicKey } = developmentKey(validatorName(0));
  const seats = new SeatWatch({ node, key: publicKey, log: quietLog });
  const report = consensusReport(node, driver.state, seats.seat(), 2, '');
  expect(JSON.parse(JSON.stringify(report))).toMatchObject({
    validator: { id: toHex(validatorId(publicKey)), standing: 'member', epoch: 0, heartbeat_epoch: 0 },
    neighbours: 2,
  });
  expect(statusLines(report).join('\n')).toMatch(/in the committee +yes, member \d\nsigns +yes/);
  const { validator, consensus } = report as { validator: ValidatorReport } & ConsensusReport;
  const lapsed = { ...report, consensus: { ...consensus, member: -1, signs: false } };
  const lines = statusLines({ ...lapsed, validator: { ...validator, standing: 'lapsed' } }).join('\n');
  expect(lines).toMatch(/in the committee +no: it lapsed.*\nwhat to do +.*svc-wallet validator-heartbeat.*\nsigns +no/);
  expect(statusLines({ ...report, consensus: { ...report.consensus, stopped: true } })[2]).toContain('another process');
  expect(driver.state.listening).toBeUndefined();
  // Nothing is signed while it listens: of the five ticks of a cut its beginning takes back two.
  driver.state.listening = { logHeight: -1, ticks: LISTEN_TICKS * WHOLE_TICK, begins: false };
  const listening = consensusReport(node, driver.state, seats.seat(), 2, '');
  expect(listening.consensus).toMatchObject({ signs: false, listens: true, listens_cuts: 4 });
  expect(statusLines(listening)[2]).toMatch(/^signs +not yet: it listens first .* about 4 more cuts/);
  driver.state.listening = undefined;
  driver.state.ownKey.barred = driver.state.height + 1;
  const barred = consensusReport(node, driver.state, seats.seat(), 2, '');
  expect(barred.consensus.signs).toBe(false);
  expect(statusLines(barred)[2]).toMatch(new RegExp(`^signs +not up to height ${driver.state.height + 1}:`));
  expect(statusLines({ ...report, validator: null })[0]).toContain('follows');
});
