/**
 * The committee of an epoch (ledger rule 63): at most 64 validators with the most stake, fixed with keys and weights by the state after the last cut of
 * the epoch before.
 */
import { ByteReader, type Bytes, ByteWriter, compareBytes } from '../../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../../protocol/crypto/identifier.ts';
import { PUBLIC_KEY_BYTES } from '../../../protocol/crypto/key-sizes.ts';
import { MAX_COMMITTEE } from '../../../protocol/ledger/cut.ts';
import { asOf, isActive, type Validator } from './validator.ts';

export type CommitteeMember = {
  readonly validatorId: Bytes;
  readonly publicKey: Bytes;
  /** The weight of its votes. */
  readonly stake: bigint;
  /** The sum of its positions at the epoch's start. The same as the weight, unless a committee had to stay. */
  readonly earning: bigint;
  /** Commission in force at the epoch's start, basis points. */
  readonly commission: number;
};

export type Committee = {
  readonly epoch: number;
  readonly members: readonly CommitteeMember[];
  readonly bytes: Bytes;
  readonly digest: Bytes;
  /** The identifier in cut headers. */
  readonly setId: Bytes;
};

const MEMBER_BYTES = ID_BYTES + PUBLIC_KEY_BYTES + 8 + 8 + 2;

export function committeeOf(epoch: number, members: readonly CommitteeMember[]): Committee {
  const writer = new ByteWriter(16 + members.length * MEMBER_BYTES).height(epoch).u8(members.length);
  const set = new ByteWriter(16 + members.length * MEMBER_BYTES).height(epoch);
  for (const { validatorId, publicKey, stake, earning, commission } of members) {
    writer.raw(validatorId).raw(publicKey).u64(stake).u64(earning).u16(commission);
    set.raw(validatorId).raw(publicKey).u64(stake);
  }
  const bytes = writer.done();
  return { epoch, members, bytes, digest: id(LABELS.committee, bytes), setId: id(LABELS.validatorSet, set.done()) };
}

export function decodeCommittee(bytes: Bytes): Committee {
  const reader = new ByteReader(bytes);
  const epoch = reader.height();
  const members: CommitteeMember[] = [];
  for (let left = reader.u8(); left > 0; left--)
    members.push({
      validatorId: reader.take(ID_BYTES),
      publicKey: reader.take(PUBLIC_KEY_BYTES),
      stake: reader.u64(),
      earning: reader.u64(),
      commission: reader.u16(),
    });
  reader.end();
  return committeeOf(epoch, members);
}

/**
 * Whether it may be in the committee of this epoch. Its own bond is never below the minimum: it cannot be unbonded in
 * part.
 */
export const isEligible = (validator: Validator, epoch: number): boolean =>
  isActive(validator) &&
  validator.seatFrom <= epoch &&
  validator.heartbeatEpoch >= epoch - 2 &&
  validator.jailedUntil <= epoch;

export const byStake = (a: Validator, b: Validator): number =>
  a.stake === b.stake ? compareBytes(a.id, b.id) : a.stake > b.stake ? -1 : 1;

const memberOf = (validator: Validator, epoch: number, stake: bigint): CommitteeMember => {
  const { key, commission } = asOf(validator, epoch);
  return { validatorId: validator.id, publicKey: key, stake, earning: validator.stake, commission };
};

/**
 * `running` is the committee of the epoch that ends. If no validator is eligible, its members stay with their weights,
 * without slashed ones unless that leaves none: the chain never stops for lack of heartbeats.
 */
export function nextCommittee(
  running: Committee,
  candidates: Iterable<Validator>,
  validator: (id: Bytes) => Validator,
): Committee {
  const epoch = running.epoch + 1;
  const eligible = [...candidates].filter((candidate) => isEligible(candidate, epoch)).sort(byStake);
  if (eligible.length > 0)
    return committeeOf(
      epoch,
      eligible.slice(0, MAX_COMMITTEE).map((chosen) => memberOf(chosen, epoch, chosen.stake)),
    );
  const all = running.members.map((member) => ({ member, record: validator(member.validatorId) }));
  const sound = all.filter(({ record }) => record.slashHeight === 0);
  return committeeOf(
    epoch,
    (sound.length > 0 ? sound : all).map(({ member, record }) => memberOf(record, epoch, member.stake)),
  );
}
