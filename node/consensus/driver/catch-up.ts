/**
 * Reads of the store for consensus: final cuts for members that are behind (rule 17), and the previous cut with its
 * certificate.
 */
import { concat } from '../../../protocol/bytes.ts';
import type { CutLedger } from '../../chain/cut-ledger.ts';
import { nameOf } from '../../ledger/registration.ts';
import { finalizedOf, haveOf } from '../engine/anti-entropy.ts';
import { Committee } from '../engine/committee.ts';
import type { Finalized, Message } from '../engine/effects.ts';
import type { ConsensusState } from '../engine/state.ts';
import { type Proof, proofOfCertificate } from '../engine/votes.ts';

function proofIn(ledger: CutLedger, height: number): Proof | undefined {
  const record = ledger.cut(height);
  const certificate = ledger.certificate(height);
  if (record === undefined || certificate === undefined || height === 0) return undefined;
  return proofOfCertificate(height, nameOf(record.cutId), certificate);
}

/** Undefined if the cut or its certificate was deleted. */
function finalizedIn(ledger: CutLedger, height: number): Finalized | undefined {
  const proof = proofIn(ledger, height);
  const record = ledger.cut(height);
  if (proof === undefined || record === undefined) return undefined;
  return finalizedOf(proof, record.header.signers, concat(record.headerBytes, ...record.blockIds));
}

/**
 * The answer to a member at that height. If its cut was deleted, only this node's own height can be sent, perhaps
 * again.
 */
export function servedOf(ledger: CutLedger, height: number, state: ConsensusState): Message {
  const finalized = finalizedIn(ledger, height);
  return finalized === undefined ? { type: 'have', have: haveOf(state) } : { type: 'finalized', finalized };
}

/** The proof of the newest cut; undefined for cut 0, which is not signed (rule 9). */
export function lastProofIn(ledger: CutLedger): { readonly proof: Proof; readonly committee: Committee } | undefined {
  const { height } = ledger.head();
  const proof = proofIn(ledger, height);
  const committee = ledger.committee(height);
  if (proof === undefined || committee === undefined) return undefined;
  return { proof, committee: new Committee(committee.setId, committee.members) };
}
