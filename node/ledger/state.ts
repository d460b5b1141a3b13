/**
 * The state of the ledger after a cut (ledger rule 33): small figures, the roots of the sets, and the 96 anchors whose windows
 * are open. Its canonical bytes are hashed into the state root and are what the store keeps.
 */
import { ADDRESS_PAYLOAD_BYTES } from '../../protocol/address.ts';
import { ByteReader, type Bytes, ByteWriter, concat } from '../../protocol/bytes.ts';
import type { EmissionState } from '../../protocol/emission.ts';
import { ID_BYTES, id, LABELS } from '../../protocol/identifier.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/transaction.ts';
import type { Position } from '../full-node.ts';
import { targetOfRate, type WorkRate } from './retarget.ts';
import type { PaidBlock } from './rewards.ts';
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

/** A payment of an interval's stake pool that is due; a cut pays at most 64 of them. */
export type DueStake = { readonly interval: number; readonly position: number; readonly amount: bigint };

/** Attendance of the running interval: who signed in the running window, and windows attended so far, by member. */
export type Attendance = { readonly signed: bigint; readonly windows: readonly number[] };

export type LedgerState = {
  readonly chainId: Bytes;
  readonly height: number;
  readonly previousId: Bytes;
  readonly timestampMillis: number;
  readonly outputs: TrieRoot;
  readonly keys: TrieRoot;
  readonly minted: bigint;
  readonly burned: bigint;
  readonly bonded: bigint;
  readonly unbonding: bigint;
  readonly workReserve: bigint;
  readonly stakeReserve: bigint;
  readonly emission: EmissionState;
  /** Work halves of paid-out anchors without work, for the next one that has some. */
  readonly workCarry: bigint;
  readonly workRate: WorkRate;
  readonly minimumWork: bigint;
  readonly stakePool: bigint;
  readonly dueStake: readonly DueStake[];
  readonly attendance: Attendance;
  readonly positions: readonly Position[];
  readonly validatorSetId: Bytes;
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

const positionBytes = new WeakMap<readonly Position[], Uint8Array<ArrayBuffer>>();

function encodePositions(positions: readonly Position[]): Uint8Array<ArrayBuffer> {
  const known = positionBytes.get(positions);
  if (known !== undefined) return known;
  const writer = new ByteWriter(2200 * positions.length + 4).u32(positions.length);
  for (const position of positions)
    writer
      .raw(position.id)
      .raw(position.validatorId)
      .u64(position.principal)
      .raw(position.rewardAddress)
      .raw(position.publicKey);
  const bytes = writer.done();
  positionBytes.set(positions, bytes);
  return bytes;
}

/** Everything but the windows, which stand in it by their digests and in the store by their anchors. */
export function encodeState(state: LedgerState): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(16_384)
    .raw(state.chainId)
    .height(state.height)
    .raw(state.previousId)
    .height(state.timestampMillis);
  writeRoot(writeRoot(writer, state.outputs), state.keys)
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
  writer.u64(state.minimumWork).u64(state.stakePool).u32(state.dueStake.length);
  for (const due of state.dueStake) writer.height(due.interval).u32(due.position).u64(due.amount);
  writer.u64(state.attendance.signed).u8(state.attendance.windows.length);
  for (const windows of state.attendance.windows) writer.u8(windows);
  writer.raw(state.validatorSetId).raw(encodePositions(state.positions)).u32(state.windows.length);
  for (const window of state.windows) writer.raw(window.digest);
  return writer.done();
}

/** `window(anchor)` gives the stored bytes of an open window; a state that names another digest is refused. */
export function decodeState(bytes: Bytes, window: (anchorHeight: number) => Bytes): LedgerState {
  const reader = new ByteReader(bytes);
  const head = {
    chainId: reader.take(ID_BYTES),
    height: reader.height(),
    previousId: reader.take(ID_BYTES),
    timestampMillis: reader.height(),
    outputs: readRoot(reader),
    keys: readRoot(reader),
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
  const minimumWork = reader.u64();
  const stakePool = reader.u64();
  const dueStake: DueStake[] = [];
  for (let left = reader.u32(); left > 0; left--)
    dueStake.push({ interval: reader.height(), position: reader.u32(), amount: reader.u64() });
  const signed = reader.u64();
  const windowsAttended: number[] = [];
  for (let left = reader.u8(); left > 0; left--) windowsAttended.push(reader.u8());
  const validatorSetId = reader.take(ID_BYTES);
  const positions: Position[] = [];
  for (let left = reader.u32(); left > 0; left--)
    positions.push({
      kind: 'self_bond',
      id: reader.take(ID_BYTES),
      validatorId: reader.take(ID_BYTES),
      principal: reader.u64(),
      rewardAddress: reader.take(ADDRESS_PAYLOAD_BYTES),
      publicKey: reader.take(PUBLIC_KEY_BYTES),
    });
  const windows: AnchorWindow[] = [];
  const count = reader.u32();
  for (let i = 0; i < count; i++) windows.push(decodeWindow(window(head.height - count + 1 + i)));
  const digests = reader.take(ID_BYTES * count);
  reader.end();
  if (Buffer.compare(digests, concat(...windows.map((open) => open.digest))) !== 0)
    throw new Error('the open windows in the store are not those of its state');
  const attendance = { signed, windows: windowsAttended };
  return { ...head, workRate, minimumWork, stakePool, dueStake, attendance, positions, validatorSetId, windows };
}

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
}
