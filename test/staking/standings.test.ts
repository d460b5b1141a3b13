/** What a node advises about a key that is, was or will be that of a validator: an operator who follows it never runs one key twice, and never bonds a second time for nothing. */
import { expect, test } from 'vitest';
import type { Staking } from '../../node/full-node.ts';
import type { Validator } from '../../node/ledger/staking/validator.ts';
import { STANDINGS, standingOf, validatorOfKey } from '../../node/validator/validator-state.ts';
import { type Bytes, equalBytes } from '../../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { EVIDENCE_EPOCHS } from '../../protocol/staking/limits.ts';
import { consensusKeyHash, validatorId } from '../../protocol/staking/names.ts';

const key = (n: number): Bytes => new Uint8Array(PUBLIC_KEY_BYTES).fill(n);
const [first, second, third, stranger] = [key(1), key(2), key(3), key(9)] as [Bytes, Bytes, Bytes, Bytes];
const id = validatorId(first);
const record: Validator = {
  id,
  owner: new Uint8Array(49),
  key: first,
  keyFrom: 0,
  formerKeys: [],
  endpoint: new Uint8Array(0),
  commission: 0,
  seatFrom: 0,
  heartbeatEpoch: 100,
  jailedUntil: 0,
  stake: 1n,
  exitHeight: 0,
  slashHeight: 0,
};

/** A ledger with these records, in which these keys were registered once. */
function ledger(epoch: number, records: readonly Validator[], used: readonly Bytes[], members: readonly Bytes[] = []) {
  const committee = { members: members.map((publicKey) => ({ validatorId: id, publicKey, stake: 1n })) };
  return {
    epoch,
    stake: { committee },
    validator: (wanted: Bytes) => records.find((one) => equalBytes(one.id, wanted)),
    activeValidators: () => records.filter(({ exitHeight, slashHeight }) => exitHeight + slashHeight === 0).values(),
    isKeyUsed: (hash: Bytes) => used.some((one) => equalBytes(consensusKeyHash(one), hash)),
  } as unknown as Staking;
}

const rotated: Validator = { ...record, nextKey: { value: second, epoch: 7 } };
const LATE = 7 + EVIDENCE_EPOCHS + 1;

test('a key that was rotated away stays so for good, whether it was the first or a later one', () => {
  const keys = [first, second];
  for (const epoch of [7, LATE - 1, LATE, 1_000])
    expect(standingOf(ledger(epoch, [rotated], keys, [second]), id, first)).toBe('rotated');
  const twice: Validator = { ...record, key: second, keyFrom: 7, nextKey: { value: third, epoch: 9 } };
  const staking = ledger(1_000, [twice], [first, second, third], [third]);
  for (const former of [first, second]) expect(standingOf(staking, id, former)).toBe('rotated');
  // Without an identifier in node.json, and once the record is written anew, only the first key names its validator.
  const anew = ledger(1_000, [{ ...record, key: third, keyFrom: 9 }], [first, second, third], [third]);
  expect(standingOf(anew, validatorOfKey(anew, first), first)).toBe('rotated');
  expect(standingOf(anew, id, second)).toBe('rotated');
  expect(standingOf(anew, validatorOfKey(anew, second), second)).toBe('retired');
});

test('a key that no validator ever had is another one, or none', () => {
  const staking = ledger(5, [record], [first], [first]);
  expect(standingOf(staking, id, second)).toBe('other_key');
  expect(standingOf(staking, validatorOfKey(staking, second), second)).toBe('unregistered');
});

test('a rotated validator without a seat is found by its key: the advice is never to register it again', () => {
  const lapsed: Validator = { ...record, key: second, keyFrom: 7, heartbeatEpoch: 9 };
  const staking = ledger(12, [lapsed], [first, second]);
  expect(validatorOfKey(staking, second)).toEqual(id);
  expect(standingOf(staking, validatorOfKey(staking, second), second)).toBe('lapsed');
  const pending = ledger(5, [rotated], [first, second], [first]);
  expect(standingOf(pending, validatorOfKey(pending, second), second)).toBe('key_pending');
  const gone = ledger(40, [{ ...lapsed, exitHeight: 700 }], [first, second]);
  expect(standingOf(gone, validatorOfKey(gone, second), second)).toBe('retired');
  expect(standingOf(gone, id, second)).toBe('left');
});

test('an identifier of another validator, or of none, is named as the mistake', () => {
  const other: Validator = { ...record, id: validatorId(stranger), key: stranger };
  const staking = ledger(5, [record, other], [first, stranger], [first]);
  expect(standingOf(staking, validatorId(stranger), first)).toBe('other_validator');
  expect(standingOf(staking, new Uint8Array(48).fill(7), first)).toBe('other_validator');
});

test('no advice about a key that was registered says to register or to export one', () => {
  for (const standing of ['rotated', 'retired', 'other_key', 'other_validator', 'lapsed', 'left'] as const)
    expect(STANDINGS[standing].advice).not.toMatch(/validator-register|key-export/);
});
