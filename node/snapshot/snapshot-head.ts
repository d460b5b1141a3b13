/**
 * The first part of a snapshot: the cut S that it is of with its certificate, the 96 cuts before it, the bytes of the states of S and S-96, and what the state of S contains as digests. Everything is
 * proven from the identifier of S, which is trusted.
 */
import { ByteReader, type Bytes, ByteWriter, equalBytes } from '../../protocol/bytes.ts';
import { ID_BYTES } from '../../protocol/crypto/identifier.ts';
import {
  blocksRoot,
  type Certificate,
  CUT_HEADER_BYTES,
  type CutHeader,
  cutId,
  decodeCertificate,
  decodeCutHeader,
  MAX_CUT_BLOCKS,
} from '../../protocol/ledger/cut.ts';
import { chainId, decodeGenesis, type Genesis } from '../../protocol/ledger/genesis.ts';
import { NETWORKS, REGISTRATION_WINDOW } from '../../protocol/network.ts';
import { epochOf } from '../../protocol/staking/limits.ts';
import { verifyCertificate } from '../chain/certificate.ts';
import type { WorkRate } from '../ledger/retarget.ts';
import { type Committee, decodeCommittee } from '../ledger/staking/committee.ts';
import { checkValueEquation, decodeState, type LedgerState, stateRoot, workRateOf } from '../ledger/state.ts';
import { endsStep } from '../store/kept-certificates.ts';
import { checkPart, falsePart, SnapshotError } from './snapshot-error.ts';

/** S, and the 96 cuts before it. */
export const SNAPSHOT_CUTS = REGISTRATION_WINDOW + 1;
/** The first cut before which a whole step lies. */
export const FIRST_SNAPSHOT = 2 * REGISTRATION_WINDOW - 1;

export const isSnapshotHeight = (height: number): boolean => endsStep(height) && height >= FIRST_SNAPSHOT;

export type SnapshotHead = {
  readonly genesis: Bytes;
  readonly certificate: Bytes;
  readonly state: Bytes;
  readonly oldState: Bytes;
  /** Committees of the epoch of the next cut, and of the previous one. */
  readonly committees: readonly Bytes[];
  /** Ascending. */
  readonly windows: readonly Bytes[];
  /** Ascending, the last is S. */
  readonly cuts: readonly { readonly header: Bytes; readonly blockIds: readonly Bytes[] }[];
};

const COMMITTEES = 2;

export function encodeSnapshotHead(head: SnapshotHead): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(1024 * 1024);
  const { genesis, certificate, state, oldState, committees, windows } = head;
  for (const part of [genesis, certificate, state, oldState, ...committees, ...windows])
    writer.u32(part.length).raw(part);
  for (const { header, blockIds } of head.cuts) {
    writer.raw(header).u8(blockIds.length);
    for (const id of blockIds) writer.raw(id);
  }
  return writer.done();
}

export function decodeSnapshotHead(bytes: Bytes): SnapshotHead {
  const reader = new ByteReader(bytes);
  const part = (): Bytes => reader.take(reader.u32());
  const parts = (count: number): Bytes[] => Array.from({ length: count }, part);
  const [genesis, certificate, state, oldState] = parts(4) as [Bytes, Bytes, Bytes, Bytes];
  const [committees, windows] = [parts(COMMITTEES), parts(REGISTRATION_WINDOW)];
  const cuts = Array.from({ length: SNAPSHOT_CUTS }, () => {
    const header = reader.take(CUT_HEADER_BYTES);
    const count = reader.u8();
    if (count > MAX_CUT_BLOCKS) throw falsePart('a cut has too many blocks');
    return { header, blockIds: Array.from({ length: count }, () => reader.take(ID_BYTES)) };
  });
  reader.end();
  return { genesis, certificate, state, oldState, committees, windows, cuts };
}

export type ProvenCut = {
  readonly header: CutHeader;
  readonly headerBytes: Bytes;
  readonly cutId: Bytes;
  readonly blockIds: readonly Bytes[];
};

export type ProvenHead = {
  readonly genesis: Genesis;
  readonly state: LedgerState;
  readonly cut: ProvenCut;
  readonly cuts: readonly ProvenCut[];
  readonly certificate: Certificate;
  readonly committees: readonly Committee[];
  /** After the first of the cuts. */
  readonly firstRate: WorkRate;
};

/** `trust` is the identifier of the cut; without it the snapshot is only compared with itself. */
export function proveHead(head: SnapshotHead, trust: Bytes | undefined): ProvenHead {
  const genesis = checkPart('the genesis document', () => decodeGenesis(head.genesis));
  const cuts = provenCuts(head, genesis);
  const cut = cuts.at(-1) as ProvenCut;
  const first = cuts[0] as ProvenCut;
  if (trust !== undefined && !equalBytes(cut.cutId, trust))
    throw new SnapshotError(
      'snapshot_other_cut',
      `the snapshot is of another cut than the trusted one: ${Buffer.from(cut.cutId).toString('hex')}`,
    );
  const { height } = cut.header;
  if (!isSnapshotHeight(height)) throw falsePart(`cut ${height} is none that snapshots are made of`);
  if (!equalBytes(stateRoot(head.state), cut.header.stateRoot))
    throw falsePart(`the state is not that of cut ${height}`);
  if (!equalBytes(stateRoot(head.oldState), first.header.stateRoot))
    throw falsePart(`the old state is not that of cut ${first.header.height}`);
  const committees = head.committees.map((bytes) => checkPart('a committee', () => decodeCommittee(bytes)));
  const state = checkPart('the state', () => stateOf(head, committees, height));
  // In the first epoch both are the same: a second one beside it would go into the store in its place.
  const ofState = [state.stake.committee, state.stake.previous];
  if (!committees.every(({ digest }, i) => equalBytes(digest, (ofState[i] as Committee).digest)))
    throw falsePart('a committee is none of the state');
  if (!equalBytes(state.chainId, chainId(head.genesis)))
    throw new SnapshotError('snapshot_other_chain', 'the genesis document is not that of the state');
  checkPart('the state', () => checkValueEquation(state));
  const certificate = checkPart('the certificate', () => decodeCertificate(head.certificate));
  const committee = committees.find(({ epoch }) => epoch === epochOf(height, state.intervalCuts));
  const members = committee?.members ?? [];
  const certifiable = { chainId: state.chainId, height, cutId: cut.cutId, committee: members };
  if (
    committee === undefined ||
    !equalBytes(committee.setId, cut.header.validatorSetId) ||
    !checkPart('the certificate', () => verifyCertificate(certificate, certifiable))
  )
    throw falsePart(`the certificate of cut ${height} does not verify`);
  return { genesis, state, cut, cuts, certificate, committees, firstRate: workRateOf(head.oldState) };
}

function stateOf(head: SnapshotHead, committees: readonly Committee[], height: number): LedgerState {
  const missing = (what: string) => falsePart(`${what} is missing`);
  return decodeState(head.state, {
    window: (anchor) => {
      const bytes = head.windows[anchor - (height - REGISTRATION_WINDOW + 1)];
      if (bytes === undefined) throw missing(`the window of anchor ${anchor}`);
      return bytes;
    },
    committee: (epoch) => {
      const found = committees.find((committee) => committee.epoch === epoch);
      if (found === undefined) throw missing(`the committee of epoch ${epoch}`);
      return found.bytes;
    },
  });
}

function provenCuts({ cuts }: SnapshotHead, { network }: Genesis): ProvenCut[] {
  let before: ProvenCut | undefined;
  return cuts.map(({ header: headerBytes, blockIds }) => {
    const header = checkPart('a cut', () => decodeCutHeader(headerBytes));
    if (header.networkId !== NETWORKS[network].id)
      throw new SnapshotError('snapshot_other_chain', 'a cut is of another network than the genesis document');
    if (
      before !== undefined &&
      (header.height !== before.header.height + 1 || !equalBytes(header.previousId, before.cutId))
    )
      throw falsePart(`cut ${header.height} does not follow the one before`);
    if (header.blockCount !== blockIds.length || !equalBytes(blocksRoot(blockIds), header.blocksRoot))
      throw falsePart(`the blocks of cut ${header.height} are not those of its header`);
    before = { header, headerBytes, cutId: cutId(headerBytes), blockIds };
    return before;
  });
}

export const MAX_SNAPSHOT_AGE_MILLIS = 7 * 24 * 60 * 60 * 1000;

/** Old keys can sign another history once their stake is withdrawn: an old snapshot proves nothing, and an old cut proves no later one. */
export function checkAge({ height, timestampMillis }: CutHeader, nowMillis: number): void {
  const age = nowMillis - timestampMillis;
  if (age > MAX_SNAPSHOT_AGE_MILLIS)
    throw new SnapshotError(
      'snapshot_too_old',
      `cut ${height} is ${Math.floor(age / (24 * 60 * 60 * 1000))} days old, one to begin with at most 7: take a newer one, or read the chain from genesis`,
    );
}
