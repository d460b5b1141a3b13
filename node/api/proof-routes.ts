/** Routes that prove: outputs, positions and validators against the state root of the finalized cut (ledger rule 34). */
import type { OutpointDocument } from '../../protocol/api/documents.ts';
import { type Bytes, fromHex } from '../../protocol/bytes.ts';
import { encodeOutputProof, verifyOutputProof } from '../../protocol/proofs/output-proof.ts';
import { encodeSetProof } from '../../protocol/proofs/set-proof.ts';
import { verifyPositionProof, verifyValidatorProof } from '../../protocol/staking/proof.ts';
import { nativeHex } from '../../runtime/native/native-hex.ts';
import type { Chain } from '../full-node.ts';
import { encodeValidator } from '../ledger/staking/validator.ts';
import { addressText } from './address-routes.ts';
import type { ApiContext, Handlers } from './api-context.ts';
import { refusal } from './api-error.ts';

const PROOF_TRIES = 50;
const RETRY_MILLIS = 1_000;

/**
 * Proofs of the present head. The store may already hold the next cut while the node's head is still this one. Then a
 * path does not lead to the root; the check in `prove` detects it and the read is repeated.
 */
async function proven<T>({ node: { chain } }: ApiContext, prove: (chain: Chain) => T) {
  for (let tries = 0; tries < PROOF_TRIES; tries++) {
    const head = chain.head();
    try {
      const proofs = prove(chain);
      const place = {
        api_version: 1 as const,
        finalized_height: head.height,
        cut: {
          height: head.height,
          cut_id: nativeHex(head.cutId),
          state_root: nativeHex(head.stateRoot),
          validator_set_id: nativeHex(head.validatorSetId),
        },
        state_hex: nativeHex(chain.stateBytes()),
      };
      return { place, proofs };
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
  throw refusal('too_busy', 'the sets change too fast to be proven; try again', {}, RETRY_MILLIS);
}

const movedOn = (): Error => new Error('the store has moved on');

function outputProof(chain: Chain, { transaction_id, output_index }: OutpointDocument) {
  const outpoint = { transactionId: fromHex(transaction_id), outputIndex: output_index };
  const proof = chain.outputProof(outpoint);
  if (!verifyOutputProof(proof.root, outpoint, proof).ok) throw movedOn();
  return proof;
}

function positionProof(chain: Chain, id: Bytes) {
  const proof = chain.stakingProof('positions', id);
  const verdict = verifyPositionProof(proof.root, id, proof);
  if (!verdict.ok) throw movedOn();
  return { entry_hex: verdict.entry === undefined ? null : nativeHex(verdict.entry), proof_hex: hexOf(proof) };
}

function validatorProof(chain: Chain, id: Bytes) {
  const proof = chain.stakingProof('validators', id);
  const validator = chain.staking().validator(id);
  const record = validator && encodeValidator(validator);
  if (!verifyValidatorProof(proof.root, id, record, proof)) throw movedOn();
  return { record_hex: record === undefined ? null : nativeHex(record), proof_hex: hexOf(proof) };
}

const hexOf = (proof: Parameters<typeof encodeSetProof>[0]): string => nativeHex(encodeSetProof(proof));

export const proofRoutes: Pick<Handlers, 'utxoProofs' | 'stakingProofs'> = {
  async utxoProofs(context, { body }) {
    const { place, proofs } = await proven(context, (chain) => body.outpoints.map((each) => outputProof(chain, each)));
    return {
      ...place,
      proofs: proofs.map((proof, i) => {
        const outpoint = body.outpoints[i] as OutpointDocument;
        return {
          outpoint,
          output:
            proof.output === undefined
              ? null
              : { address: addressText(context, proof.output.address), amount: proof.output.amount.toString() },
          proof_hex: nativeHex(encodeOutputProof(proof)),
        };
      }),
    };
  },

  async stakingProofs(context, { body }) {
    const { place, proofs } = await proven(context, (chain) => ({
      positions: body.position_ids.map((id) => ({ position_id: id, ...positionProof(chain, fromHex(id)) })),
      validators: body.validator_ids.map((id) => ({ validator_id: id, ...validatorProof(chain, fromHex(id)) })),
    }));
    return { ...place, ...proofs };
  },
};
