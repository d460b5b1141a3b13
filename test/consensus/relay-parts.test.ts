/** Relays of validators without an open port (consensus rule 24): records, slots, circuits and dials, without a network. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { expect, test } from 'vitest';
import { circuitOpening, tokenIn } from '../../node/consensus/link/frames.ts';
import {
  type CircuitMessage,
  decodeCircuitMessage,
  encodeCircuitMessage,
} from '../../node/consensus/relays/circuit-messages.ts';
import { OwnSlots } from '../../node/consensus/relays/own-slots.ts';
import { RelayBook } from '../../node/consensus/relays/relay-book.ts';
import { RelayDials } from '../../node/consensus/relays/relay-dials.ts';
import { CIRCUIT, RECORD, SLOT } from '../../node/consensus/relays/relay-limits.ts';
import {
  decodeRecord,
  judgeRecord,
  MAX_RECORD_BYTES,
  type RelayRecord,
  signRecord,
} from '../../node/consensus/relays/relay-record.ts';
import { type Circuit, RelaySlots } from '../../node/consensus/relays/relay-slots.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import { FIRST_ROUTE_RETRY_MILLIS } from '../../node/validator/dial-plan.ts';
import type { Bytes } from '../../protocol/bytes.ts';

const NOW = 1_800_000_000_000;
const of = (byte: number): Bytes => new Uint8Array(48).fill(byte);
const [CHAIN, VALIDATOR] = [of(7), of(1)];

function overlayKey() {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const spki = publicKey.export({ format: 'der', type: 'spki' });
  return {
    publicKey: new Uint8Array(spki.subarray(spki.length - 32)),
    sign: (message: Bytes) => new Uint8Array(sign(null, message, privateKey)),
  };
}
const own = overlayKey();

const record = (changes: Partial<RelayRecord> = {}): RelayRecord => ({
  chainId: CHAIN,
  validator: VALIDATOR,
  sequence: 5n,
  expiry: BigInt(NOW + RECORD.millis),
  relays: [of(2), of(3)],
  ...changes,
});
const signed = (changes: Partial<RelayRecord> = {}, key = own) => signRecord(record(changes), key.sign);
const context = { chainId: CHAIN, now: NOW, overlayKeys: [own.publicKey] };

test('a record is what its validator signed for this chain, newer than the one before and good for a while', () => {
  const good = signed();
  expect(good.bytes.length).toBe(MAX_RECORD_BYTES);
  expect(decodeRecord(good.bytes)).toEqual(good);
  expect(judgeRecord(good, undefined, context)).toBe('take');
  expect(judgeRecord(good, record({ sequence: 4n }), context)).toBe('take');
  expect(judgeRecord(good, record({ sequence: 5n }), context)).toBe('not_newer');
  expect(judgeRecord(good, record({ sequence: 6n }), context)).toBe('not_newer');
  expect(judgeRecord(signed({ chainId: of(8) }), undefined, context)).toBe('wrong_chain');
  expect(judgeRecord(signed({ expiry: BigInt(NOW) }), undefined, context)).toBe('expired');
  expect(judgeRecord(signed({ expiry: BigInt(NOW + RECORD.longestMillis + 1) }), undefined, context)).toBe(
    'lasts_too_long',
  );
  expect(judgeRecord(signed({}, overlayKey()), undefined, context)).toBe('forged');
  // Bytes that were registered as a key and are none.
  expect(judgeRecord(good, undefined, { ...context, overlayKeys: [new Uint8Array(32).fill(255)] })).toBe('forged');
  for (const at of [48, 96, 100, 104, 113, 150, good.bytes.length - 64, good.bytes.length - 1]) {
    const bytes = new Uint8Array(good.bytes);
    bytes[at] = (bytes[at] as number) ^ 1;
    expect(judgeRecord(decodeRecord(bytes), undefined, context), `byte ${at}`).toBe('forged');
  }
});

test('a record of another form is none', () => {
  const { bytes } = signed();
  expect(() => decodeRecord(bytes.subarray(0, -1))).toThrow();
  expect(() => decodeRecord(new Uint8Array([...bytes, 0]))).toThrow('a record of');
  expect(() => signed({ relays: [] })).toThrow('1 to 2 relays');
  expect(() => signed({ relays: [of(2), of(3), of(4)] })).toThrow('1 to 2 relays');
  expect(() => decodeRecord(signed({ relays: [of(2), of(2)] }).bytes)).toThrow('twice');
  const three = new Uint8Array(bytes);
  three[112] = 3;
  expect(() => decodeRecord(three)).toThrow('1 to 2 relays');
});

test('one record of each listed validator is kept; replays, forgeries and too many news are not, and forgeries use up nothing', () => {
  let now = NOW;
  const book = new RelayBook({ chainId: CHAIN, now: () => now, steady: () => now });
  const name = nameOf(VALIDATOR);
  expect(book.take(signed().bytes)).toBe('unknown_validator');
  book.know(new Map([[name, [own.publicKey]]]));
  expect(book.take(signed().bytes)).toBe('take');
  const forger = overlayKey();
  for (let i = 0; i < 100; i++) expect(book.take(signed({ sequence: 100n }, forger).bytes)).toBe('forged');
  expect(book.take(signed({ sequence: 6n }).bytes, () => false)).toBe('too_often');
  expect(book.take(signed({ sequence: 6n, relays: [of(4)] }).bytes)).toBe('take');
  expect(book.take(signed().bytes)).toBe('not_newer');
  expect(book.relaysOf(name)).toEqual([of(4)]);
  expect(book.all()).toHaveLength(1);
  for (let i = 2; i < RECORD.ofOne.burst; i++)
    expect(book.take(signed({ sequence: BigInt(10 + i) }).bytes)).toBe('take');
  expect(book.take(signed({ sequence: 1_000n }).bytes)).toBe('too_often');
  now += RECORD.millis;
  expect([book.relaysOf(name), book.all()]).toEqual([[], []]);
  // Expired, so a replay of it is too.
  expect(book.take(signed({ sequence: 1_000n }).bytes)).toBe('expired');
  expect(book.take(signed({ sequence: 2n, expiry: BigInt(now + 1) }).bytes)).toBe('take');
  book.know(new Map());
  expect(book.all()).toEqual([]);
});

test('a record that is over, one of a key that was replaced and one from far ahead are not in the way of the next', () => {
  let now = NOW;
  const book = new RelayBook({ chainId: CHAIN, now: () => now, steady: () => now });
  const [name, next] = [nameOf(VALIDATOR), overlayKey()];
  book.know(new Map([[name, [own.publicKey]]]));
  const ahead = BigInt(NOW + RECORD.longestMillis);
  expect(book.take(signed({ sequence: ahead + 1n }).bytes)).toBe('too_early');
  expect(book.take(signed({ sequence: ahead }).bytes)).toBe('take');
  expect(book.take(signed({ sequence: BigInt(NOW) }).bytes)).toBe('not_newer');
  now += RECORD.millis;
  const later = { sequence: BigInt(now), expiry: BigInt(now + RECORD.millis) };
  expect(book.take(signed(later).bytes)).toBe('take');
  // In the last window of an epoch either key counts.
  book.know(new Map([[name, [own.publicKey, next.publicKey]]]));
  expect(book.relaysOf(name)).toHaveLength(2);
  book.know(new Map([[name, [next.publicKey]]]));
  expect(book.relaysOf(name)).toEqual([]);
  expect(book.take(signed(later, next).bytes)).toBe('take');
});

test('a slot at two relays; one that is silent is passed over, one that is gone is replaced, none that was not asked is believed', () => {
  const slots = new OwnSlots();
  const candidates = ['a', 'b', 'c'].map((name) => ({ name, peer: `${name}#1` }));
  const first = () => 0;
  slots.granted('c#1');
  expect(slots.relays()).toEqual([]);
  expect(slots.ask(candidates, 0, first).map(({ name }) => name)).toEqual(['a', 'b']);
  expect(slots.ask(candidates, 1, first)).toEqual([]);
  slots.granted('b#1');
  slots.granted('c#1');
  expect(slots.relays()).toEqual(['b']);
  expect(['b#1', 'a#1', 'c#1'].map((peer) => slots.mayInvite(peer, 1))).toEqual([true, false, false]);
  // `a` says nothing.
  expect(slots.ask(candidates, SLOT.answerMillis, first).map(({ name }) => name)).toEqual(['c']);
  slots.granted('c#1');
  expect(slots.relays()).toEqual(['b', 'c']);
  // `b` is gone; `a` is the only one left, though it was passed over.
  const left = candidates.filter(({ name }) => name !== 'b');
  expect(slots.ask(left, SLOT.answerMillis + 1, first).map(({ name }) => name)).toEqual(['a']);
  slots.granted('a#1');
  expect(slots.relays()).toEqual(['c', 'a']);
  // A slot is asked for again, and kept meanwhile; a relay that gives none any more is left.
  const later = 2 * SLOT.answerMillis + SLOT.renewMillis;
  expect(slots.ask(left, later, first).map(({ name }) => name)).toEqual(['c', 'a']);
  slots.granted('a#1');
  expect(slots.relays()).toEqual(['c', 'a']);
  slots.ask(left, later + SLOT.answerMillis, first);
  expect(slots.relays()).toEqual(['a']);
  // Another connection to the same relay has no slot yet.
  slots.ask([{ name: 'a', peer: 'a#2' }], later + SLOT.answerMillis, first);
  expect([slots.relays(), slots.mayInvite('a#1', later)]).toEqual([[], false]);
});

test('a relay that invites too often is left for another one, and a new connection to it has no more', () => {
  const slots = new OwnSlots();
  const [relay, other] = [
    { name: 'a', peer: 'a#1' },
    { name: 'b', peer: 'b#1' },
  ];
  const invited = (peer: string, times: number, now: number) =>
    Array.from({ length: times }, () => slots.mayInvite(peer, now)).filter(Boolean).length;
  slots.ask([relay], 0, () => 0);
  slots.granted('a#1');
  expect(invited('a#1', CIRCUIT.invited.burst, 0)).toBe(CIRCUIT.invited.burst);
  expect(slots.relays()).toEqual(['a']);
  expect(invited('a#1', 10, 0)).toBe(0);
  expect(slots.relays()).toEqual([]);
  // There is no other yet.
  const again = { name: 'a', peer: 'a#2' };
  expect(slots.ask([again], 1_000, () => 0)).toEqual([again]);
  slots.granted('a#2');
  expect(invited('a#2', 10, 1_000)).toBe(CIRCUIT.invited.perSecond);
  const more = { name: 'c', peer: 'c#1' };
  expect(slots.ask([again, other, more], 1_001, () => 0)).toEqual([other, more]);
});

test('slots and circuits of a relay are bounded, for each validator, for two and together', () => {
  const slots = new RelaySlots();
  for (let i = 0; i < SLOT.most; i++) expect(slots.grant(`v${i}`, `v${i}#1`)).toBe(true);
  expect(slots.grant('one more', 'x#1')).toBe(false);
  expect(slots.grant('v0', 'v0#2')).toBe(true);
  expect(slots.at('v0')).toBe('v0#2');
  slots.left('v0#1');
  expect(slots.at('v0')).toBe('v0#2');
  expect(slots.open('v1', 'v1', NOW)).toBe('same_validator');
  expect(slots.open('v1', 'nobody', NOW)).toBe('no_slot');
  slots.left('v0#2');
  expect(slots.open('v1', 'v0', NOW)).toBe('no_slot');
  // Two between the same two, whoever asks.
  expect([slots.open('v1', 'v2', NOW), slots.open('v2', 'v1', NOW)].every((each) => typeof each === 'object')).toBe(
    true,
  );
  expect(slots.open('v1', 'v2', NOW)).toBe('too_many');
  // That wait, of one that asked.
  for (let i = 3; i < 3 + CIRCUIT.waitingOfOne - 1; i++) expect(slots.open('v1', `v${i}`, NOW)).toBeTypeOf('object');
  expect(slots.open('v1', 'v40', NOW)).toBe('too_many');
  expect(slots.late(NOW + CIRCUIT.joinMillis)).toEqual([]);
  expect(slots.late(NOW + CIRCUIT.joinMillis + 1)).toHaveLength(CIRCUIT.waitingOfOne + 1);
  expect(slots.size).toBe(0);
  // Together.
  let open = 0;
  for (let a = 1; a < SLOT.most; a++)
    for (let b = a + 1; b < SLOT.most; b++) {
      const circuit = slots.open(`v${a}`, `v${b}`, NOW + 1_000_000 * a);
      if (typeof circuit === 'string') continue;
      circuit.isOpen = true;
      open++;
    }
  expect([open, slots.size]).toEqual([CIRCUIT.most, CIRCUIT.most]);
  // Who is no member any more has no slot.
  slots.keep(new Set(['v5']), new Set(['v5', 'v6']));
  expect([slots.at('v5'), slots.at('v6')]).toEqual(['v5#1', undefined]);
});

test('a circuit ends where an end of it has not been listed for a minute', () => {
  const slots = new RelaySlots();
  slots.grant('b', 'b#1');
  const circuit = slots.open('a', 'b', NOW) as Circuit;
  circuit.isOpen = true;
  const [both, one] = [new Set(['a', 'b']), new Set(['b'])];
  const later = NOW + CIRCUIT.unlistedMillis;
  expect(slots.unlisted(one, NOW)).toEqual([]);
  expect(slots.unlisted(one, later)).toEqual([]);
  expect(slots.unlisted(both, later + 1)).toEqual([]);
  expect(slots.unlisted(one, later + 2)).toEqual([]);
  expect(slots.unlisted(one, later + 3 + CIRCUIT.unlistedMillis)).toEqual([circuit.number]);
});

test('one validator asks for so many circuits, and then for one a second', () => {
  const slots = new RelaySlots();
  for (let i = 0; i < CIRCUIT.asked.burst; i++) expect(slots.open('a', 'b', NOW)).toBe('no_slot');
  expect(slots.open('a', 'b', NOW)).toBe('too_often');
  expect(slots.open('c', 'b', NOW)).toBe('no_slot');
  expect(slots.open('a', 'b', NOW + 1_000)).toBe('no_slot');
});

test('one validator gets four circuits to the same other one, then one in ten seconds, and no more with a new connection', () => {
  const slots = new RelaySlots();
  const listed = new Set(['a', 'b', 'c']);
  for (const validator of ['b', 'c']) slots.grant(validator, `${validator}#1`);
  const opened = (from: string, to: string, now: number) => {
    const circuit = slots.open(from, to, now);
    if (typeof circuit === 'string') return circuit;
    slots.end(circuit.number);
    return 'opened';
  };
  for (let i = 0; i < CIRCUIT.toOne.burst; i++) expect(opened('a', 'b', NOW)).toBe('opened');
  expect(opened('a', 'b', NOW)).toBe('too_often');
  expect([opened('a', 'c', NOW), opened('c', 'b', NOW)]).toEqual(['opened', 'opened']);
  // The one that asks is away for a moment.
  slots.keep(new Set(['b', 'c']), listed);
  expect(opened('a', 'b', NOW)).toBe('too_often');
  for (let i = CIRCUIT.toOne.burst + 3; i < CIRCUIT.asked.burst; i++) slots.open('a', 'nobody', NOW);
  slots.keep(new Set(['b', 'c']), listed);
  expect(opened('a', 'c', NOW)).toBe('too_often');
  expect(opened('a', 'b', NOW + 10_000)).toBe('opened');
  expect(opened('a', 'b', NOW + 10_000)).toBe('too_often');
});

test('the relays of a record are asked in turn, more and more seldom, and in turn again after a connection', () => {
  const dials = new RelayDials();
  const listed = new Set(['w']);
  const wanted = [{ name: 'w', afterMillis: 1_000, relays: ['r1', 'r2'] }];
  const first = FIRST_ROUTE_RETRY_MILLIS;
  expect(dials.next(wanted, listed, 0)).toEqual([]);
  expect(dials.next(wanted, listed, 999)).toEqual([]);
  expect(dials.next(wanted, listed, 1_000)).toEqual([{ name: 'w', relay: 'r1' }]);
  expect(dials.next(wanted, listed, 999 + first)).toEqual([]);
  expect(dials.next(wanted, listed, 1_000 + first)).toEqual([{ name: 'w', relay: 'r2' }]);
  expect(dials.next(wanted, listed, 999 + 3 * first)).toEqual([]);
  // Connected by r2, which then breaks it.
  expect(dials.next([], listed, 1_001 + first)).toEqual([]);
  expect(dials.next(wanted, listed, 1_002 + first)).toEqual([]);
  expect(dials.next(wanted, listed, 2_002 + first)).toEqual([{ name: 'w', relay: 'r1' }]);
  // No relay of it is connected.
  expect(dials.next([{ ...(wanted[0] as (typeof wanted)[0]), relays: [] }], listed, 1e9)).toEqual([]);
});

test('messages about relays', () => {
  const token = new Uint8Array(16).fill(9);
  const messages: CircuitMessage[] = [
    { type: 'record', bytes: signed().bytes },
    { type: 'slot' },
    { type: 'granted' },
    { type: 'circuit', validator: of(1) },
    { type: 'invitation', validator: of(1), role: 'dialler', token },
    { type: 'invitation', validator: of(1), role: 'dialled', token },
  ];
  for (const message of messages) {
    const bytes = encodeCircuitMessage(message);
    expect(decodeCircuitMessage(bytes)).toEqual(message);
    if (message.type !== 'record') expect(() => decodeCircuitMessage(new Uint8Array([...bytes, 0]))).toThrow();
  }
  expect(decodeCircuitMessage(Uint8Array.of(13))).toBeUndefined();
  expect(decodeCircuitMessage(Uint8Array.of(19))).toBeUndefined();
  const role = encodeCircuitMessage(messages[4] as CircuitMessage);
  role[49] = 3;
  expect(() => decodeCircuitMessage(role)).toThrow('a role is 1 or 2');
  expect(tokenIn(circuitOpening(token).subarray(4))).toEqual(token);
  expect(tokenIn(new Uint8Array(20))).toBeUndefined();
});
