/**
 * A second reader of transactions, written from rules 2 to 4, 13 to 15, 19, 20, 61 and 62 of docs/protocol/ledger.md and nothing else: no code of protocol/ is
 * used in it. Whether bytes are a transaction decides about the block that carries them, so both readers must say the same of all bytes, and count the same
 * signatures (rule 43). Changed are mostly the small fields: nearly all other bytes are keys and signatures.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readTransaction } from '../../node/ledger/work-block.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { attempt } from '../../protocol/errors.ts';
import { encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { encodeOperation, OPERATION_TYPES, type StakingOperation } from '../../protocol/staking/operation.ts';
import { encodeTransaction, type TransactionBody, type Witness } from '../../protocol/transactions/transaction.ts';
import { count, seed } from '../level.ts';
import { groupOf } from '../multisig/members.ts';

const MAX_ATOMS = 20_000_000_000_000_000n;
const COIN = 100_000_000n;
const KEY = 1_952;
const SIGNATURE = 3_309;

/** Why bytes are none: the number of the rule. */
class Refused extends Error {}
const must = (holds: boolean, rule: number): void => {
  if (!holds) throw new Refused(`rule ${rule}`);
};

class Second {
  at = 0;
  /** Where the small fields begin. */
  readonly fields: number[] = [];
  readonly #bytes: Buffer;
  #end: number;

  constructor(bytes: Bytes) {
    this.#bytes = Buffer.from(bytes);
    this.#end = bytes.length;
  }

  raw(length: number): Buffer {
    must(this.at + length <= this.#end, 13);
    if (length <= 64) this.fields.push(this.at);
    const found = this.#bytes.subarray(this.at, this.at + length);
    this.at += length;
    return found;
  }
  u8 = () => this.raw(1).readUInt8();
  u16 = () => this.raw(2).readUInt16LE();
  u32 = () => this.raw(4).readUInt32LE();
  u64 = () => this.raw(8).readBigUInt64LE();
  height(): bigint {
    const value = this.u64();
    must(value < 1n << 53n, 2);
    return value;
  }
  /** Everything in it is read, and nothing beyond. */
  inside<T>(length: number, read: () => T): T {
    const outer = this.#end;
    must(this.at + length <= outer, 13);
    this.#end = this.at + length;
    const value = read();
    must(this.at === this.#end, 13);
    this.#end = outer;
    return value;
  }
  get left(): number {
    return this.#end - this.at;
  }

  address(isOwner = false): void {
    const kind = this.raw(49).readUInt8();
    must(isOwner ? kind <= 1 : kind <= 2, 3);
  }

  bonded(least: bigint): void {
    const amount = this.u64();
    must(amount >= least && amount <= MAX_ATOMS, 62);
  }

  commission(): void {
    const points = this.u16();
    must(points <= 1_000 && points % 10 === 0, 62);
  }

  endpoint(): void {
    must(this.u8() === 1, 61);
    this.raw(32);
    const routes = this.u8();
    must(routes <= 4, 61);
    for (let i = 0; i < routes; i++) {
      const kind = this.u8();
      const host = this.raw(this.u8());
      must(kind === 4 ? host.length === 4 : kind === 6 ? host.length === 16 : kind === 0 && isName(host), 61);
      must(this.u16() > 0, 61);
    }
  }

  vote(): { place: string; cut: string } {
    const kind = this.u8();
    must(kind === 1 || kind === 2, 31);
    const place = `${kind} ${this.height()} ${this.u32()}`;
    return { place, cut: this.raw(48).toString('hex') };
  }

  /** Gives the signatures inside. */
  operation(type: number): number {
    switch (type) {
      case 1:
        this.raw(KEY);
        this.raw(SIGNATURE);
        this.address(true);
        this.address();
        this.bonded(100_000n * COIN);
        this.commission();
        this.endpoint();
        return 1;
      case 2:
        this.raw(48);
        this.address(true);
        this.address();
        this.bonded(100n * COIN);
        return 0;
      case 3: {
        this.raw(48);
        const amount = this.u64();
        must(amount === 0n || (amount >= 100n * COIN && amount <= MAX_ATOMS), 62);
        return 0;
      }
      case 4:
      case 10:
        this.raw(48);
        return 0;
      case 5:
        this.raw(48);
        this.address();
        return 0;
      case 6:
        this.raw(48);
        this.height();
        return 0;
      case 7:
        this.raw(48 + KEY + SIGNATURE);
        this.endpoint();
        return 1;
      case 8:
        this.raw(48 + SIGNATURE);
        this.endpoint();
        return 1;
      case 9:
        this.raw(48);
        this.commission();
        return 0;
      case 11: {
        this.raw(48);
        const [first] = [this.vote(), this.raw(SIGNATURE)];
        const [second] = [this.vote(), this.raw(SIGNATURE)];
        must(first.place === second.place && first.cut !== second.cut, 68);
        return 2;
      }
      default:
        throw new Refused('rule 62');
    }
  }

  body(chainId: Bytes): { witnesses: number; inside: number } {
    must(this.u16() === 1 && this.u16() === 1, 13);
    must(this.raw(48).equals(chainId), 13);
    const [first, last] = [this.height(), this.height()];
    must(first <= last, 13);
    const inputs = Array.from({ length: this.u8() }, () => `${this.raw(48).toString('hex')} ${this.u32()}`);
    must(inputs.length >= 1 && inputs.length <= 8 && new Set(inputs).size === inputs.length, 13);
    let total = 0n;
    const outputs = this.u8();
    must(outputs <= 8, 13);
    for (let i = 0; i < outputs; i++) {
      this.address();
      const amount = this.u64();
      must(amount >= 1n, 13);
      total += amount;
    }
    must(total <= MAX_ATOMS, 13);
    const payload = this.u16();
    must(payload <= 2_048, 13);
    if (payload > 0) {
      must(this.u8() <= 2, 14);
      this.raw(payload - 1);
    }
    const marker = this.u8();
    must(marker <= 1, 13);
    if (marker === 0) return { witnesses: inputs.length, inside: 0 };
    const type = this.u8();
    const length = this.u16();
    must(length <= 8_192, 13);
    return { witnesses: inputs.length + 1, inside: this.inside(length, () => this.operation(type)) };
  }

  witness(): number {
    const profile = this.u8();
    if (profile <= 1) {
      this.raw((profile === 0 ? KEY : 0) + SIGNATURE);
      return 1;
    }
    must(profile <= 3, 15);
    const [threshold, members] = [this.u8(), this.u8()];
    must((threshold === 2 && members === 3) || (threshold === 3 && members === 5), 19);
    const named = Array.from({ length: members }, () => this.raw(profile === 2 ? KEY : 48).toString('hex'));
    if (profile === 2)
      must(
        named.every((key, i) => i === 0 || (named[i - 1] as string) < key),
        19,
      );
    let before = -1;
    for (let i = 0; i < threshold; i++) {
      const member = this.u8();
      must(member > before && member < members, 20);
      before = member;
      this.raw(SIGNATURE);
    }
    return threshold;
  }
}

/** Without a pattern, as the text says it. */
function isName(host: Buffer): boolean {
  if (host.length < 1 || host.length > 253) return false;
  return host
    .toString('latin1')
    .split('.')
    .every(
      (part) =>
        part.length >= 1 &&
        part.length <= 63 &&
        [...part].every((letter) => 'abcdefghijklmnopqrstuvwxyz0123456789-'.includes(letter)) &&
        !part.startsWith('-') &&
        !part.endsWith('-'),
    );
}

/** How many signatures it carries; or why it is none. */
function second(wire: Bytes, reader = new Second(wire)): number | string {
  try {
    must(wire.length <= 65_000, 15);
    const length = reader.u16();
    const { witnesses, inside } = reader.inside(length, () => reader.body(CHAIN));
    let signatures = inside;
    for (let i = 0; i < witnesses; i++) signatures += reader.witness();
    must(reader.left === 0, 15);
    return signatures;
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

const CHAIN = new Uint8Array(48).fill(7);
const bytesOf = (length: number, first: number): Uint8Array<ArrayBuffer> => new Uint8Array(length).fill(first);
const address = (kind: number): Bytes => bytesOf(49, kind);
const endpoint = encodeEndpoint({
  overlayKey: bytesOf(32, 1),
  routes: [
    { kind: 'name', host: Buffer.from('a-1.node.example'), port: 9 },
    { kind: 'ipv4', host: bytesOf(4, 1), port: 1 },
    { kind: 'ipv6', host: bytesOf(16, 1), port: 65_535 },
  ],
});
const possession = bytesOf(SIGNATURE, 1);
const vote = (first: number) => ({
  vote: { kind: 'prevote' as const, height: 5, round: 1, cutId: bytesOf(48, first) },
  signature: possession,
});
const OPERATIONS: readonly (StakingOperation | undefined)[] = [
  undefined,
  {
    name: 'register',
    consensusKey: bytesOf(KEY, 1),
    possession,
    owner: address(0),
    rewardAddress: address(2),
    amount: 100_000n * COIN,
    commission: 1_000,
    endpoint,
  },
  { name: 'bond', validator: bytesOf(48, 1), owner: address(1), rewardAddress: address(0), amount: 100n * COIN },
  { name: 'unbond', position: bytesOf(48, 1), amount: 100n * COIN },
  { name: 'withdraw', position: bytesOf(48, 1) },
  { name: 'reward_address', position: bytesOf(48, 1), address: address(0) },
  { name: 'heartbeat', validator: bytesOf(48, 1), epoch: 3 },
  { name: 'rotate', validator: bytesOf(48, 1), consensusKey: bytesOf(KEY, 1), possession, endpoint },
  { name: 'endpoint', validator: bytesOf(48, 1), signature: possession, endpoint },
  { name: 'commission', validator: bytesOf(48, 1), commission: 10 },
  { name: 'exit', validator: bytesOf(48, 1) },
  { name: 'evidence', validator: bytesOf(48, 1), votes: [vote(1), vote(2)] },
];

const groups = [groupOf(2), groupOf(3)];
const signatures = (threshold: number) =>
  Array.from({ length: threshold }, (_, member) => ({ member, signature: possession }));
const WITNESSES: readonly Witness[] = [
  { profile: 'inline', publicKey: bytesOf(KEY, 1), signature: possession },
  { profile: 'referenced', signature: possession },
  ...groups.flatMap(({ descriptor, members }): Witness[] => [
    { profile: 'multisig_inline', descriptor, signatures: signatures(descriptor.threshold) },
    {
      profile: 'multisig_referenced',
      threshold: descriptor.threshold,
      keyHashes: members.map((member) => member.address.subarray(1)),
      signatures: signatures(descriptor.threshold),
    },
  ]),
];

const SAMPLES: readonly Bytes[] = OPERATIONS.flatMap((operation, i) =>
  [0, 1, 2].map((inputs) => {
    const body: TransactionBody = {
      chainId: CHAIN,
      validFromHeight: 1,
      validUntilHeight: 9,
      inputs: Array.from({ length: inputs + 1 }, (_, n) => ({ transactionId: bytesOf(48, 1), outputIndex: n })),
      outputs: Array.from({ length: (i + inputs) % 3 }, (_, n) => ({ address: address(n), amount: COIN })),
      payload: inputs === 1 ? bytesOf(4, 2) : bytesOf(0, 0),
      ...(operation && { operation: encodeOperation(operation) }),
    };
    const needed = inputs + 1 + (operation ? 1 : 0);
    const witnesses = Array.from({ length: needed }, (_, n) => WITNESSES[(n + i) % WITNESSES.length] as Witness);
    return encodeTransaction({ body, witnesses });
  }),
);

const fieldsOf = (wire: Bytes): readonly number[] => {
  const reader = new Second(wire);
  expect(typeof second(wire, reader)).toBe('number');
  return reader.fields;
};
const PLACES = SAMPLES.map(fieldsOf);

function verdicts(wire: Bytes): void {
  const first = attempt(() => readTransaction(wire, CHAIN));
  const other = second(wire);
  // There are tens of thousands of looks.
  if ((first.ok ? first.value.signatures : 'refused') === (typeof other === 'number' ? other : 'refused')) return;
  expect([first.ok ? first.value.signatures : 'refused', other]).toEqual([
    typeof other === 'number' ? other : 'refused',
    other,
  ]);
}

test('every kind of operation and witness is read by both', () => {
  expect(OPERATIONS.flatMap((operation) => operation?.name ?? [])).toEqual(Object.keys(OPERATION_TYPES));
  for (const wire of SAMPLES) verdicts(wire);
});

/** Around the bounds of the rules. */
const EDGES: readonly bigint[] = [
  ...[0n, 1n, 2n, 3n, 10n, 45n, 46n, 255n, 256n, 1_000n, 1_010n, 2_048n, 2_049n, 8_192n, 8_193n, 65_535n],
  ...[100n * COIN, 100_000n * COIN, MAX_ATOMS, 1n << 53n, 1n << 63n, (1n << 64n) - 1n].flatMap((edge) => [
    edge - 1n,
    edge,
    BigInt.asUintN(64, edge + 1n),
  ]),
];

/** At quick a field has every fifth bound in it, its neighbours the others. */
const STEP = count({ quick: 5, full: 1, deep: 1 });

test.each([2, 8])('every small field with every bound in it, in %i bytes', (width) => {
  for (const [i, places] of PLACES.entries())
    for (const [field, at] of (i % 3 === 0 ? places : []).entries())
      for (const [which, edge] of EDGES.entries()) {
        if ((field + which) % STEP !== 0) continue;
        const wire = Buffer.from(SAMPLES[i] as Bytes);
        const eight = Buffer.alloc(8);
        eight.writeBigUInt64LE(edge);
        eight.copy(wire, at, 0, width);
        verdicts(wire);
      }
});

const change = fc.record({
  how: fc.constantFrom('edge', 'byte', 'cut', 'longer', 'flip', 'copy'),
  place: fc.nat(),
  into: fc.nat(60),
  edge: fc.constantFrom(...EDGES),
  width: fc.constantFrom(1, 2, 4, 8),
  value: fc.nat(255),
});

test('changed bytes are read by both or by neither, with the same signatures', () => {
  let [read, refused] = [0, 0];
  const runs = fc.property(fc.nat(), fc.array(change, { minLength: 1, maxLength: 3 }), (which, changes) => {
    const sample = which % SAMPLES.length;
    let wire = Buffer.from(SAMPLES[sample] as Bytes);
    const places = PLACES[sample] as readonly number[];
    for (const { how, place, into, edge, width, value } of changes) {
      const at = Math.min(wire.length - 8, places[place % places.length] as number);
      if (how === 'edge') {
        const eight = Buffer.alloc(8);
        eight.writeBigUInt64LE(edge);
        eight.copy(wire, at, 0, width);
      } else if (how === 'byte') wire[Math.min(wire.length - 1, at + into)] = value;
      else if (how === 'flip') wire[at] = (wire[at] as number) ^ (1 << (value % 8));
      else if (how === 'cut') wire = wire.subarray(0, Math.max(8, wire.length - 1 - (place % 5_000)));
      else if (how === 'longer') wire = Buffer.concat([wire, Buffer.alloc(1 + into, value)]);
      else wire = Buffer.concat([wire.subarray(0, at), wire.subarray(Math.max(0, at - into), at), wire.subarray(at)]);
    }
    if (typeof second(wire) === 'number') read++;
    else refused++;
    verdicts(wire);
  });
  fc.assert(runs, { numRuns: count({ quick: 500, full: 4_000, deep: 1_000_000 }), seed });
  // Both happen often.
  expect(Math.min(read, refused)).toBeGreaterThan(read / 20);
});
