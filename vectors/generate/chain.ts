/** Genesis, state and cut (ledger rules 30 to 34): a small chain's document, the state it makes, cut 0, and a later header. */
import { genesisCut } from '../../node/ledger/genesis-cut.ts';
import { KEY_LAYOUT, OUTPUT_LAYOUT } from '../../node/ledger/output-set.ts';
import { Trie } from '../../node/ledger/trie.ts';
import { StakingSets } from '../../node/store/staking-sets.ts';
import { keyAddressPayload } from '../../protocol/address.ts';
import { toHex } from '../../protocol/bytes.ts';
import { type CutHeader, certificateMessage, cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { GENESIS_SUPPLY } from '../../protocol/ledger/emission.ts';
import { chainId, encodeGenesis, type Genesis, genesisOutpoint, SEED_BYTES } from '../../protocol/ledger/genesis.ts';
import { encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import { PUBLIC_KEY_BYTES } from '../../protocol/transactions/transaction.ts';
import { pattern } from './pattern.ts';

const BOND = 100_000n * 100_000_000n;

export function chainVectors() {
  const publicKey = pattern('chain/validator', PUBLIC_KEY_BYTES);
  const outputs = Array.from({ length: 20 }, (_, i) => ({
    address: keyAddressPayload(pattern(`chain/owner ${i}`, PUBLIC_KEY_BYTES)),
    amount: i < 19 ? BigInt(i + 1) : GENESIS_SUPPLY - BOND - 190n,
  }));
  const genesis: Genesis = {
    network: 'development',
    timestampMillis: 1_800_000_000_000,
    powEpochLength: 1_000,
    initialWork: 4_096n,
    minimumWork: 64n,
    intervalCuts: 24,
    validators: [
      {
        publicKey,
        principal: BOND,
        owner: keyAddressPayload(pattern('chain/validator owner', PUBLIC_KEY_BYTES)),
        rewardAddress: keyAddressPayload(publicKey),
        commission: 500,
        endpoint: encodeEndpoint({
          overlayKey: pattern('chain/overlay', 32),
          routes: [{ kind: 'ipv4', host: Uint8Array.of(192, 0, 2, 1), port: 28_704 }],
        }),
      },
    ],
    outputs,
  };
  const document = encodeGenesis(genesis);
  const seeded = encodeGenesis({ ...genesis, seed: pattern('chain/seed', SEED_BYTES) });
  const chain = chainId(document);
  const nothing = () => undefined;
  const cut = genesisCut(genesis, {
    outputTrie: new Trie(OUTPUT_LAYOUT, nothing),
    keyTrie: new Trie(KEY_LAYOUT, nothing),
    stakingTries: new StakingSets(nothing).tries,
  });
  const later: CutHeader = {
    networkId: 4,
    height: 12_345_678,
    timestampMillis: 1_830_864_195_000,
    previousId: pattern('chain/previous', 48),
    blocksRoot: pattern('chain/blocks', 48),
    stateRoot: pattern('chain/state', 48),
    validatorSetId: pattern('chain/set', 48),
    blockCount: 64,
    signers: 0b1011n,
  };
  return {
    genesis: {
      document: toHex(document),
      chain_id: toHex(chain),
      validator_id: toHex(validatorId(publicKey)),
      output_ids: outputs.map((_, i) => toHex(genesisOutpoint(chain, i).transactionId)),
      output_root: {
        digest: toHex(cut.state.outputs.digest),
        sum: cut.state.outputs.sum.toString(),
        count: cut.state.outputs.count,
      },
      committee: toHex(cut.state.stake.committee.bytes),
      validator_set_id: toHex(cut.state.stake.committee.setId),
      state: toHex(cut.stateBytes),
      state_root: toHex(cut.effects.header.stateRoot),
      cut_header: toHex(cut.effects.headerBytes),
      cut_id: toHex(cut.effects.cutId),
      certificate_messages: [0, 3].map((round) => ({
        round,
        message: toHex(certificateMessage(chain, { height: 0, cutId: cut.effects.cutId }, round)),
      })),
    },
    seeded_genesis: { document: toHex(seeded), chain_id: toHex(chainId(seeded)) },
    cut: {
      network_id: later.networkId,
      height: later.height,
      timestamp_millis: later.timestampMillis,
      previous_id: toHex(later.previousId),
      blocks_root: toHex(later.blocksRoot),
      state_root: toHex(later.stateRoot),
      validator_set_id: toHex(later.validatorSetId),
      block_count: later.blockCount,
      signers: later.signers.toString(),
      header: toHex(encodeCutHeader(later)),
      cut_id: toHex(cutId(encodeCutHeader(later))),
    },
  };
}
