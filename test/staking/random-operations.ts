/** Random operations for the model test: mostly possible, often not, on anything that exists or once existed. */
import { utf8 } from '../../protocol/bytes.ts';
import { id } from '../../protocol/crypto/identifier.ts';
import { selfBondId } from '../../protocol/staking/names.ts';
import type { StakingOperation } from '../../protocol/staking/operation.ts';
import type { Model } from './model.ts';
import { addressOf, COIN, endpointOf, keyOf, NO_SIGNATURE } from './rig.ts';

export type Choices = { readonly random: (limit: number) => number; readonly intervalCuts: number };

export const OPERATIONS: readonly StakingOperation['name'][] = [
  ...(['register', 'bond', 'unbond', 'withdraw', 'reward_address', 'heartbeat'] as const),
  ...(['rotate', 'endpoint', 'commission', 'exit', 'evidence'] as const),
];

const OWNERS = ['ann', 'ben', 'cy', 'dot', 'eve'];
const NOWHERE = id('TEST_NOTHING', utf8(''));
const MAX_VALIDATORS = 14;
/** Beyond that nobody bonds until others have withdrawn. */
const MAX_POSITIONS = 60;

export function randomOperation(model: Model, height: number, { random, intervalCuts }: Choices): StakingOperation {
  const epoch = Math.floor(height / intervalCuts);
  const pick = <T>(list: readonly T[]): T | undefined => list[random(list.length)];
  const owner = () => addressOf(pick(OWNERS) as string);
  const active = [...model.validators.values()].filter((validator) => model.isActive(validator));
  const anyValidator = random(10) < 7 ? pick(active) : pick([...model.validators.values()]);
  const validator = random(40) === 0 || anyValidator === undefined ? NOWHERE : Buffer.from(anyValidator.id, 'hex');
  const coins = (least: number, more: number): bigint => BigInt(least + random(more)) * COIN + BigInt(random(1_000));
  const key = () => keyOf(random(8) === 0 ? `key ${random(6)}` : `key ${height} ${random(1_000)}`);
  const endpoint = () => endpointOf(`${random(50)}`);
  const commission = () => 10 * random(101);
  // Exits and evidence are rare, or nobody would be left.
  const drawn = random(100);
  const kind = (drawn === 60 || drawn === 61) && random(5) > 0 ? 30 : drawn;
  if (kind < 4 + (active.length < 5 ? 20 : 0) && active.length < MAX_VALIDATORS)
    return {
      name: 'register',
      consensusKey: key(),
      possession: NO_SIGNATURE,
      owner: owner(),
      rewardAddress: owner(),
      amount: coins(100_000, 50_000),
      commission: commission(),
      endpoint: endpoint(),
    };
  const isCrowded = model.positions.size > MAX_POSITIONS;
  if (kind < 20 && !isCrowded)
    return { name: 'bond', validator, owner: owner(), rewardAddress: owner(), amount: coins(100, 40_000) };
  if (kind < (isCrowded ? 30 : 50))
    return { name: 'heartbeat', validator, epoch: random(12) === 0 ? epoch - 1 + random(3) : epoch };
  if (kind < 54 && kind >= 50)
    return { name: 'rotate', validator, consensusKey: key(), possession: NO_SIGNATURE, endpoint: endpoint() };
  if (kind < 57 && kind >= 54) return { name: 'endpoint', validator, endpoint: endpoint(), signature: NO_SIGNATURE };
  if (kind < 60 && kind >= 57) return { name: 'commission', validator, commission: commission() };
  if (kind === 60) return { name: 'exit', validator };
  if (kind === 61) {
    const at = Math.max(0, height - random(random(3) === 0 ? 14 * intervalCuts : 30) + random(2));
    const vote = { kind: 'precommit' as const, height: at, round: 0 };
    return {
      name: 'evidence',
      validator,
      votes: [
        { vote: { ...vote, cutId: NOWHERE }, signature: NO_SIGNATURE },
        { vote: { ...vote, cutId: new Uint8Array(48) }, signature: NO_SIGNATURE },
      ],
    };
  }
  const positions = [...model.positions.values()];
  // Those that can be withdrawn, or nearly, are few: they are looked at more often.
  const ripe = positions.filter((each) => Math.abs(model.release(each) - height) < 3 || model.release(each) < height);
  const chosen = random(3) === 0 ? (pick(ripe) ?? pick(positions)) : pick(positions);
  const named = chosen?.kind === 'self_bond' ? selfBondId(Buffer.from(chosen.validator, 'hex')) : chosen?.id;
  const position = random(40) === 0 || named === undefined ? NOWHERE : Buffer.from(named as string, 'hex');
  const target = typeof named === 'string' ? position : ((random(40) === 0 ? NOWHERE : named) ?? NOWHERE);
  if (kind < 78) return { name: 'withdraw', position: target };
  if (kind < 84) return { name: 'reward_address', position: target, address: owner() };
  const held = chosen?.principal ?? 0n;
  const part = [0n, held / 2n, held, held - 100n * COIN, held - 100n * COIN + 1n][random(5)] as bigint;
  return { name: 'unbond', position: target, amount: part < 100n * COIN ? 0n : part };
}
