/**
 * The state of the ledger after a cut (ledger rule 33): small figures, the roots of the sets, and the 96 anchors whose windows
 * are open. Its canonical bytes are hashed into the state root and are what the store keeps.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { ByteReader, type Bytes, ByteWriter, concat, equalBytes } from '../../protocol/bytes.ts';
import { ID_BYTES, id, LABELS } from '../../protocol/crypto/identifier.ts';
import type { EmissionState } from '../../protocol/ledger/emission.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { epochOf } from '../../protocol/staking/limits.ts';
import { targetOfRate, type WorkRate } from './retarget.ts';
import type { PaidBlock } from './rewards.ts';
import { type Committee, decodeCommittee } from './staking/committee.ts';
import type { StakeState } from './staking/epoch.ts';
import type { PaymentWalk } from './staking/payment.ts';
import type { Sweep } from './staking/slashing.ts';
import type { TrieRoot } from './trie.ts';

/** A registered block inside its anchor's window. `bodyId` keeps its body from being used twice. */
export type WindowBlock = PaidBlock & { readonly bodyId: Bytes };

export type AnchorWindow = {
  readonly anchorHeight: number;
  /** Work half of the anchor's subsidy. */
  readonly workHalf: bigint;
  readonly blocks: readonly WindowBlock[];
  readonly bytes: Bytes;
  readonly digest: Bytes;
};

export type LedgerState = {
  readonly chainId: Bytes;
  readonly height: number;
  readonly previousId: Bytes;
  readonly timestampMillis: number;
  readonly outputs: TrieRoot;
  readonly keys: TrieRoot;
  /** The sets of validators, positions and consensus keys ever used. */
  readonly validators: TrieRoot;
  readonly positions: TrieRoot;
  readonly usedKeys: TrieRoot;
  readonly minted: bigint;
  readonly burned: bigint;
  readonly bonded: bigint;
  readonly unbonding: bigint;
  readonly workReserve: bigint;
  readonly stakeReserve: bigint;
  readonly emission: EmissionState;
  /** Work halves of closed anchors without work, carried over to the next one with work. */
  readonly workCarry: bigint;
  readonly workRate: WorkRate;
  readonly minimumWork: bigint;
  /** Cuts of an interval. */
  readonly intervalCuts: number;
  readonly stake: StakeState;
  /** Ascending anchors, the last is this cut. At most 96. */
  readonly windows: readonly AnchorWindow[];
};

export function anchorWindow(anchorHeight: number, workHalf: bigint, blocks: readonly WindowBlock[]): AnchorWindow {
  const writer = new ByteWriter(32 + blocks.length * 160).height(anchorHeight).u64(workHalf).u32(blocks.length);
  for (const block of blocks) writer.raw(block.id).raw(block.payout).u64(block.feeShare).raw(block.bodyId);
  const bytes = writer.done();
  return { anchorHeight, workHalf, blocks, bytes, digest: id(LABELS.window, bytes) };
}

export function decodeWindow(bytes: Bytes): AnchorWindow {
  const reader = new ByteReader(bytes);
  const anchorHeight = reader.height();
  const workHalf = reader.u64();
  const blocks: WindowBlock[] = [];
  for (let left = reader.u32(); left > 0; left--)
    blocks.push({
      id: reader.take(ID_BYTES),
      payout: reader.take(ADDRESS_PAYLOAD_BYTES),
      feeShare: reader.u64(),
      bodyId: reader.take(ID_BYTES),
    });
  reader.end();
  return anchorWindow(anchorHeight, workHalf, blocks);
}

const writeRoot = (writer: ByteWriter, root: TrieRoot): ByteWriter =>
  writer.raw(root.digest).u64(root.sum).height(root.count);

const readRoot = (reader: ByteReader): TrieRoot => ({
  digest: reader.take(ID_BYTES),
  sum: reader.u64(),
  count: reader.height(),
});

/** Rates can pass 64 bits; 32 bytes hold any work of a 256-bit target at 64 blocks a cut, scaled. */
const RATE_WORDS = 3;

const NO_CURSOR = new Uint8Array(ID_BYTES);
const writeCursor = (writer: ByteWriter, reached: Bytes | undefined): ByteWriter => writer.raw(reached ?? NO_CURSOR);
/** No position has the identifier zero. */
function readCursor(reader: ByteReader): Bytes | undefined {
  const reached = reader.take(ID_BYTES);
  return equalBytes(reached, NO_CURSOR) ? undefined : reached;
}

function writeStake(
  writer: ByteWriter,
  { pool, committee, previous, attendance, walk, sweeps }: StakeState,
): ByteWriter {
  writer.u64(pool).raw(committee.digest).raw(previous.digest);
  writer.u64(attendance.signed).u8(attendance.windows.length);
  for (const windows of attendance.windows) writer.u8(windows);
  writer.u8(walk === undefined ? 0 : 1);
  if (walk !== undefined)
    writeCursor(
      writer
        .height(walk.interval)
        .u64(walk.pool)
        .u64(walk.paid)
        .u64(walk.earned)
        .u64(walk.total)
        .u8(walk.member)
        .u64(walk.gathered),
      walk.reached,
    );
  writer.u32(sweeps.length);
  for (const sweep of sweeps) writeCursor(writer.raw(sweep.validator).height(sweep.height), sweep.reached);
  return writer;
}

function readStake(reader: ByteReader, committee: Committee, previous: Committee): StakeState {
  const pool = reader.u64();
  for (const { digest } of [committee, previous])
    if (!equalBytes(reader.take(ID_BYTES), digest))
      throw new Error('the committees in the store are not those of its state');
  const signed = reader.u64();
  const windows: number[] = [];
  for (let left = reader.u8(); left > 0; left--) windows.push(reader.u8());
  const walk = reader.u8() === 1 ? readWalk(reader) : undefined;
  const sweeps: Sweep[] = [];
  for (let left = reader.u32(); left > 0; left--)
    sweeps.push({ validator: reader.take(ID_BYTES), height: reader.height(), reached: readCursor(reader) });
  return { pool, committee, previous, attendance: { signed, windows }, ...(walk && { walk }), sweeps };
}

const readWalk = (reader: ByteReader): PaymentWalk => ({
  interval: reader.height(),
  pool: reader.u64(),
  paid: reader.u64(),
  earned: reader.u64(),
  total: reader.u64(),
  member: reader.u8(),
  gathered: reader.u64(),
  reached: readCursor(reader),
});

/** Everything but windows and committees: the state contains their digests, and the store keeps them by anchor and epoch. */
export function encodeState(state: LedgerState): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(16_384)
    .raw(state.chainId)
    .height(state.height)
    .raw(state.previousId)
    .height(state.timestampMillis);
  for (const root of [state.outputs, state.keys, state.validators, state.positions, state.usedKeys])
    writeRoot(writer, root);
  writer
    .u64(state.minted)
    .u64(state.burned)
    .u64(state.bonded)
    .u64(state.unbonding)
    .u64(state.workReserve)
    .u64(state.stakeReserve)
    .height(state.emission.interval)
    .u64(state.emission.amount)
    .u64(state.emission.remaining)
    .u64(state.emission.carry)
    .u64(state.workCarry);
  for (let word = 0; word < RATE_WORDS; word++)
    writer.u128((state.workRate >> BigInt(128 * word)) & ((1n << 128n) - 1n));
  writeStake(writer.u64(state.minimumWork).u32(state.intervalCuts), state.stake).u32(state.windows.length);
  for (const window of state.windows) writer.raw(window.digest);
  return writer.done();
}

/** Where the parts are stored that a state contains as digests. */
export type StateParts = {
  window(anchorHeight: number): Bytes;
  committee(epoch: number): Bytes;
};

/** The bytes before the parts that a state contains as digests. */
function readFigures(reader: ByteReader) {
  const head = {
    chainId: reader.take(ID_BYTES),
    height: reader.height(),
    previousId: reader.take(ID_BYTES),
    timestampMillis: reader.height(),
    outputs: readRoot(reader),
    keys: readRoot(reader),
    validators: readRoot(reader),
    positions: readRoot(reader),
    usedKeys: readRoot(reader),
    minted: reader.u64(),
    burned: reader.u64(),
    bonded: reader.u64(),
    unbonding: reader.u64(),
    workReserve: reader.u64(),
    stakeReserve: reader.u64(),
    emission: { interval: reader.height(), amount: reader.u64(), remaining: reader.u64(), carry: reader.u64() },
    workCarry: reader.u64(),
  };
  let workRate = 0n;
  for (let word = 0; word < RATE_WORDS; word++) workRate |= reader.u128() << BigInt(128 * word);
  return { ...head, workRate };
}

/** The work rate alone, of a state whose windows and committees are not here. */
export const workRateOf = (stateBytes: Bytes): WorkRate => readFigures(new ByteReader(stateBytes)).workRate;

/** A state whose digests do not match its parts is refused. */
export function decodeState(bytes: Bytes, parts: StateParts): LedgerState {
  const reader = new ByteReader(bytes);
  const head = readFigures(reader);
  const minimumWork = reader.u64();
  const intervalCuts = reader.u32();
  const epoch = epochOf(head.height + 1, intervalCuts);
  const committeeAt = (at: number): Committee => decodeCommittee(parts.committee(at));
  const stake = readStake(reader, committeeAt(epoch), committeeAt(previousEpoch(epoch)));
  const windows: AnchorWindow[] = [];
  const count = reader.u32();
  for (let i = 0; i < count; i++) windows.push(decodeWindow(parts.window(head.height - count + 1 + i)));
  const digests = reader.take(ID_BYTES * count);
  reader.end();
  if (Buffer.compare(digests, concat(...windows.map((open) => open.digest))) !== 0)
    throw new Error('the open windows in the store are not those of its state');
  return { ...head, minimumWork, intervalCuts, stake, windows };
}

/** The first epoch has no previous one, and nothing to pay for it. */
export const previousEpoch = (epoch: number): number => Math.max(0, epoch - 1);

export const stateRoot = (stateBytes: Bytes): Uint8Array<ArrayBuffer> => id(LABELS.state, stateBytes);

export const targetOfState = (state: LedgerState): bigint => targetOfRate(state.workRate);

/** The open window of an anchor, if it is open. */
export function windowOf(state: LedgerState, anchorHeight: number): AnchorWindow | undefined {
  const window = state.windows[anchorHeight - (state.height - state.windows.length + 1)];
  return window !== undefined && window.anchorHeight > state.height - REGISTRATION_WINDOW ? window : undefined;
}

export class LedgerFault extends Error {
  readonly code = 'value_equation_broken';
}

/** outputs + bonded + unbonding + work reserve + stake reserve + burned = minted (ledger rule 40). */
export function checkValueEquation(state: LedgerState): void {
  const held =
    state.outputs.sum + state.bonded + state.unbonding + state.workReserve + state.stakeReserve + state.burned;
  if (held !== state.minted)
    throw new LedgerFault(
      `the value equation fails at cut ${state.height}: ${held} atoms held, ${state.minted} minted`,
    );
  if (state.positions.sum !== state.bonded + state.unbonding)
    throw new LedgerFault(
      `positions hold ${state.positions.sum} atoms at cut ${state.height}, ${state.bonded + state.unbonding} are bonded or unbonding`,
    );
}
