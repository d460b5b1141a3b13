/** What the node of a validator tells its operator about the seat: a line for every change, with the reason and what helps; figures for the alerts. */
import { afterEach, expect, test } from 'vitest';
import { certifyWith } from '../../node/chain/certificate.ts';
import { type DevelopmentKey, developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { nodeMetrics } from '../../node/node-metrics.ts';
import { heartbeatTransaction } from '../../node/validator/heartbeats.ts';
import { SeatWatch } from '../../node/validator/seat-watch.ts';
import { toHex } from '../../protocol/bytes.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import type { LogFields } from '../../runtime/log/log.ts';
import { Metrics } from '../../runtime/metrics/metrics.ts';
import { Bed, developmentKeys, silentLog } from '../node/bed.ts';
import { operationTransaction, registration, rotation } from './signed.ts';

const INTERVAL = 24;
const treasury = developmentKey(TREASURY);
const miner = developmentKey('miner').address;
const owner = developmentKey(validatorName(0));
const id = validatorId(owner.publicKey);
let bed: Bed | undefined;
afterEach(() => bed?.close());

/** Four validators, of which the others send heartbeats; `signing` attend. */
async function open(signing: readonly DevelopmentKey['privateKey'][], beating = [1, 2, 3]) {
  const opened = await Bed.open({
    genesis: { validators: 4, intervalCuts: INTERVAL },
    dependencies: { certify: certifyWith(signing) },
  });
  bed = opened;
  const { chain } = opened.node;
  let spent = 0;
  const sends = async (operation: StakingOperation, signer = owner) => {
    const wire = operationTransaction(chain, { key: treasury, spend: opened.treasury(spent++) }, operation, { signer });
    expect((await opened.node.submitTransaction(wire)).status).toBe('accepted');
    await opened.mine(miner);
    await opened.seal();
  };
  const beats = async (members: readonly number[]) => {
    for (const member of members) {
      const key = developmentKey(validatorName(member));
      const { epoch } = chain.staking();
      const beat = { name: 'heartbeat', validator: validatorId(key.publicKey), epoch } as const;
      const wire = heartbeatTransaction(chain, beat, key, opened.treasury(spent++), { key: treasury });
      expect((await opened.node.submitTransaction(wire as Uint8Array)).status).toBe('accepted');
    }
    await opened.mine(miner);
    await opened.seal();
  };
  /** To the first cut of the next epoch; the others beat in it. */
  const nextEpoch = async () => {
    await opened.seal(INTERVAL - ((chain.head().height + 1) % INTERVAL));
    if (beating.length > 0) await beats(beating);
  };
  const watch = (key: DevelopmentKey, validator?: Uint8Array) => {
    const told: string[] = [];
    const fields: LogFields[] = [];
    const note = (level: string) => (message: string, more: LogFields) => {
      told.push(`${level} ${message}${more.standing === undefined ? '' : `: ${more.standing}`}`);
      fields.push(more);
    };
    const log = { ...silentLog, info: note('info'), warn: note('warn') } as typeof silentLog;
    const seats = new SeatWatch({ node: opened.node, key: key.publicKey, validatorId: validator, log });
    seats.tick();
    opened.node.on('cut', () => seats.tick());
    return { seats, told, fields };
  };
  return { bed: opened, chain, sends, beats, nextEpoch, watch };
}

test('a seat that lapses is reported with a warning every epoch until it is back, and the figures say so', async () => {
  const { beats, nextEpoch, watch } = await open(developmentKeys(4));
  const { seats, told, fields } = watch(owner);
  const metrics = new Metrics('svc_node');
  nodeMetrics(metrics, { version: '1', network: 'development' }).validator(() => seats.seat());
  expect(await metrics.text()).toMatch(/^svc_node_validator_seat 1$/m);
  for (let epoch = 1; epoch <= 2; epoch++) await nextEpoch();
  expect(told).toEqual(['info this validator has a seat']);
  // The last heartbeat was that of genesis.
  await nextEpoch();
  await nextEpoch();
  expect(told.slice(1)).toEqual([
    'warn this validator has lost its seat: lapsed',
    'warn this validator has no seat: lapsed',
  ]);
  expect(fields.at(-1)).toMatchObject({
    validator: id,
    epoch: 4,
    advice: expect.stringContaining('validator-heartbeat'),
  });
  const text = await metrics.text();
  expect(text).toMatch(/^svc_node_validator_seat 0$/m);
  expect(text).toMatch(/^svc_node_validator_standing\{standing="lapsed"\} 1$/m);
  expect(text).toMatch(/^svc_node_validator_standing\{standing="member"\} 0$/m);
  expect(text).toMatch(/^svc_node_validator_heartbeat_age_epochs 4$/m);
  await beats([0]);
  await nextEpoch();
  expect(told.slice(3)).toEqual(['info this validator has no seat: waiting', 'info this validator has a seat']);
});

test('a validator that is jailed, and one that exits', async () => {
  const { sends, nextEpoch, watch } = await open(developmentKeys(4).slice(1), [0, 1, 2, 3]);
  const jailed = watch(owner).told;
  const leaver = developmentKey(validatorName(1));
  const left = watch(leaver).told;
  await nextEpoch();
  expect(jailed.slice(1)).toEqual(['warn this validator has lost its seat: jailed']);
  await nextEpoch();
  await nextEpoch();
  expect(jailed.slice(2)).toEqual(['warn this validator has no seat: jailed', 'info this validator has a seat']);
  await sends({ name: 'exit', validator: validatorId(leaver.publicKey) }, leaver);
  expect(left.slice(1)).toEqual(['info this validator has no seat: exiting']);
});

test('a new validator, and a rotated key on its old and its new machine', async () => {
  const [second, bert, bertsKey] = ['second key', 'bert', 'bert consensus'].map((name) => developmentKey(name)) as [
    DevelopmentKey,
    DevelopmentKey,
    DevelopmentKey,
  ];
  const { chain, sends, nextEpoch, watch } = await open([...developmentKeys(4), second.privateKey]);
  const old = watch(owner, id);
  const machine = watch(second, id);
  const unnamed = watch(second);
  const newcomer = watch(bertsKey);
  const wrong = watch(bertsKey, id);
  expect([machine, unnamed, newcomer, wrong].map(({ told }) => told.at(-1))).toEqual([
    'warn this validator has no seat: other_key',
    'info this validator has no seat: unregistered',
    'info this validator has no seat: unregistered',
    'warn this validator has no seat: other_key',
  ]);
  await sends(registration(chain, bertsKey, bert, 10_000_000_000_000n), bert);
  await sends(rotation(chain, id, second, owner));
  expect(machine.told.slice(1)).toEqual(['info this validator has no seat: key_pending']);
  expect(newcomer.told.slice(1)).toEqual(['info this validator has no seat: waiting']);
  await nextEpoch();
  expect(old.told).toEqual(['info this validator has a seat']);
  await nextEpoch();
  expect(old.told.slice(1)).toEqual(['info this validator has no seat: rotated']);
  expect(old.fields.at(-1)).toMatchObject({ advice: expect.stringContaining('may be stopped') });
  expect(machine.told.slice(2)).toEqual(['info this validator has a seat']);
  expect(unnamed.told.at(-1)).toBe('info this validator has a seat');
  expect(toHex(unnamed.seats.seat().validator)).toBe(toHex(id));
  expect(newcomer.told.at(-1)).toBe('info this validator has a seat');
});
