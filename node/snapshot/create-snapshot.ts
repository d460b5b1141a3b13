/** Writes a snapshot from a store that does not change meanwhile: the state after its newest cut, which must end a step of 96, and what the next cuts need beside it (docs/decisions/0009-snapshots.md). */
import { keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, concat } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import { REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { epochOf } from '../../protocol/staking/limits.ts';
import type { CutRecord } from '../full-node.ts';
import { decodeState, type LedgerState, previousEpoch } from '../ledger/state.ts';
import { SetWalk, type Subtree, wholeSet } from '../ledger/trie-walk.ts';
import type { FrozenStore } from '../store/database.ts';
import { KEYS } from '../store/keys.ts';
import { decodeBlockRecord, decodeCutRecord } from '../store/records.ts';
import { encodePiece } from './beside-entries.ts';
import { SET_NAMES, SETS, type SetName } from './committed-sets.ts';
import { encodeOutline, isPiece, MAX_PIECES } from './set-outline.ts';
import { SnapshotError } from './snapshot-error.ts';
import { type PartWriter, writeParts } from './snapshot-file.ts';
import { encodeSnapshotHead, FIRST_SNAPSHOT, isSnapshotHeight, SNAPSHOT_CUTS } from './snapshot-head.ts';

export type CreatedSnapshot = { readonly height: number; readonly cutId: Bytes; readonly bytes: number };

const notHere = (message: string): SnapshotError => new SnapshotError('snapshot_not_here', message);

/** `isStopped` is checked between parts. */
export async function createSnapshot(
  store: Pick<FrozenStore, 'get'>,
  path: string,
  isStopped: () => boolean = () => false,
): Promise<CreatedSnapshot> {
  const found = (key: Bytes, what: string): Uint8Array => {
    const bytes = store.get(key);
    if (bytes === undefined) throw notHere(`${what} is not in the store`);
    return bytes;
  };
  const stateBytes = found(KEYS.state, 'a chain');
  const state = decodeState(stateBytes, {
    window: (anchor) => found(KEYS.window(anchor), `the window of anchor ${anchor}`),
    committee: (epoch) => found(KEYS.committee(epoch), `the committee of epoch ${epoch}`),
  });
  const { height } = state;
  if (!isSnapshotHeight(height)) throw notHere(nextOne(height));
  const first = height - SNAPSHOT_CUTS + 1;
  const cuts = Array.from({ length: SNAPSHOT_CUTS }, (_, i) =>
    decodeCutRecord(found(KEYS.cut(first + i), `cut ${first + i}`)),
  );
  const oldState = store.get(KEYS.steppedState(first));
  if (oldState === undefined)
    throw notHere(
      `the state after cut ${first} was not kept: a snapshot can be made ${2 * REGISTRATION_WINDOW} cuts after the start of this release`,
    );
  const epoch = epochOf(height + 1, state.intervalCuts);
  const head = encodeSnapshotHead({
    genesis: found(KEYS.genesis, 'a genesis document'),
    certificate: found(KEYS.certificate(height), `the certificate of cut ${height}`),
    state: stateBytes,
    oldState,
    committees: [epoch, previousEpoch(epoch)].map((at) => found(KEYS.committee(at), `the committee of epoch ${at}`)),
    windows: state.windows.map(({ bytes }) => bytes),
    cuts: cuts.map(({ headerBytes, blockIds }) => ({ header: headerBytes, blockIds })),
  });
  const sets = SET_NAMES.map((set) => outlined(set, state, store));
  const bytes = await writeParts(path, async (writer) => {
    const parts = function* (): Generator<Bytes> {
      yield head;
      for (const { outline } of sets) yield outline;
      yield* blocksOf(cuts, found);
      for (const { pieces } of sets) yield* pieces();
    };
    await writeAll(writer, parts(), isStopped);
  });
  return { height, cutId: (cuts.at(-1) as CutRecord).cutId, bytes };
}

async function writeAll(writer: PartWriter, parts: Iterable<Bytes>, isStopped: () => boolean): Promise<void> {
  for (const part of parts) {
    if (isStopped()) throw notHere('the node stopped meanwhile');
    await writer.part(part);
  }
}

function nextOne(height: number): string {
  const next = Math.max(FIRST_SNAPSHOT, (Math.floor((height + 1) / REGISTRATION_WINDOW) + 1) * REGISTRATION_WINDOW - 1);
  return `the newest cut is ${height}, and a snapshot can be made after cut ${next}: a node that runs with --write-snapshots makes it then`;
}

/** Of the first cut's blocks only the headers are needed: bodies may be deleted by then. */
function* blocksOf(cuts: readonly CutRecord[], found: (key: Bytes, what: string) => Uint8Array): Generator<Bytes> {
  for (const [i, { blockIds, header }] of cuts.entries())
    for (const id of blockIds) {
      const what = `a block of cut ${header.height}`;
      const record = decodeBlockRecord(id, found(KEYS.block(id), what));
      yield i === 0 ? record.header : concat(record.header, found(KEYS.body(id), `the body of ${what}`));
    }
}

function outlined(set: SetName, state: LedgerState, store: Pick<FrozenStore, 'get'>) {
  const { layout, pieceEntries } = SETS[set];
  const walk = new SetWalk(layout, (key) => store.get(key));
  const steps = [...walk.subtrees(wholeSet(state[set]), pieceEntries)];
  const subtrees = steps.filter((step): step is Subtree => step !== 'node' && step.side.count > 0);
  if (subtrees.length > MAX_PIECES) throw notHere(`${set} has more than ${MAX_PIECES} pieces`);
  const pieces = function* (): Generator<Bytes> {
    for (const subtree of subtrees) {
      const entries = walk.entries(subtree);
      if (!isPiece(layout, subtree, entries)) throw notHere(`the records of ${set} in the store are damaged`);
      yield encodePiece(set, entries, (entry) => besideOf(set, entry, store));
    }
  };
  return { outline: encodeOutline(steps), pieces };
}

/** Keys are registered under the address that they hash to. */
const KIND_OF_KEY = keyAddressPayload(new Uint8Array(0)).subarray(0, 1);

function besideOf(set: SetName, entry: Bytes, store: Pick<FrozenStore, 'get'>): Bytes {
  const key = set === 'keys' ? KEYS.publicKey(concat(KIND_OF_KEY, entry)) : KEYS.validator(entry.subarray(0, ID_BYTES));
  const bytes = store.get(key);
  if (bytes === undefined) throw notHere(`what belongs to an entry of ${set} is not in the store`);
  return bytes;
}
