/** The bare ledger over maps: applyCut without store, doors or clock, for tests of many cuts. */
import {
  type AppliedCut,
  applyCut,
  type CutInput,
  type LedgerView,
  updateStaking,
} from '../../node/ledger/apply-cut.ts';
import type { CutEffects } from '../../node/ledger/effects.ts';
import type { CheckWitnesses } from '../../node/ledger/execution.ts';
import { genesisCut } from '../../node/ledger/genesis-cut.ts';
import { findOutput, KEY_LAYOUT, OUTPUT_LAYOUT } from '../../node/ledger/output-set.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import type { StakeState } from '../../node/ledger/staking/epoch.ts';
import { StakingLayer, type StakingReads } from '../../node/ledger/staking/layer.ts';
import type { LedgerState } from '../../node/ledger/state.ts';
import { Trie } from '../../node/ledger/trie.ts';
import { StakingSets } from '../../node/store/staking-sets.ts';
import type { Genesis } from '../../protocol/ledger/genesis.ts';

export class MemoryLedger {
  state!: LedgerState;
  #cutId!: Uint8Array;
  readonly #nodes = new Map<string, Uint8Array>();
  readonly #publicKeys = new Map<string, Uint8Array>();
  readonly #outputs = new Trie(OUTPUT_LAYOUT, (key) => this.#nodes.get(nameOf(key)));
  readonly #keys = new Trie(KEY_LAYOUT, (key) => this.#nodes.get(nameOf(key)));
  readonly #sets = new StakingSets((key) => this.#nodes.get(nameOf(key)));

  constructor(genesis: Genesis) {
    this.#take(genesisCut(genesis, { outputTrie: this.#outputs, keyTrie: this.#keys, stakingTries: this.#sets.tries }));
  }

  #take(cut: AppliedCut): CutEffects {
    const staking = this.#sets.operations(cut.staking, cut.effects.staking);
    for (const operations of [cut.outputs.operations, cut.keys.operations, staking])
      for (const operation of operations)
        if (operation.type === 'put') this.#nodes.set(nameOf(operation.key), operation.value);
        else this.#nodes.delete(nameOf(operation.key));
    this.#outputs.committed(cut.outputs);
    this.#keys.committed(cut.keys);
    this.#sets.committed(cut.staking, cut.effects.staking);
    for (const { address, publicKey } of cut.effects.keys) this.#publicKeys.set(nameOf(address), publicKey);
    this.state = cut.state;
    this.#cutId = cut.effects.cutId;
    return cut.effects;
  }

  /** Puts staking records into the ledger that no cut made, with the coins that they hold: for more than genesis could bond. */
  inject(change: (layer: StakingLayer) => void, stake: (state: LedgerState) => StakeState): void {
    const layer = new StakingLayer(this.staking());
    change(layer);
    const update = updateStaking(this.#sets.tries, this.state, layer);
    for (const operation of this.#sets.operations(update, layer.changes()))
      if (operation.type === 'put') this.#nodes.set(nameOf(operation.key), operation.value);
    this.#sets.committed(update, layer.changes());
    const roots = {
      validators: update.validators.root,
      positions: update.positions.root,
      usedKeys: update.usedKeys.root,
    };
    const { bonded, minted } = this.state;
    this.state = { ...this.state, ...roots, bonded: bonded + layer.bonded, minted: minted + layer.bonded };
    this.state = { ...this.state, stake: stake(this.state) };
  }

  staking(): StakingReads {
    return this.#sets.reads(this.state);
  }

  next(input: Partial<CutInput> = {}): CutEffects {
    return this.#take(this.apply(input));
  }

  /** Executes a cut and changes nothing. */
  apply(input: Partial<CutInput> = {}, check: CheckWitnesses = () => 'valid'): AppliedCut {
    const { state } = this;
    const view: LedgerView = {
      state,
      cutId: this.#cutId,
      networkId: 4,
      outputTrie: this.#outputs,
      keyTrie: this.#keys,
      stakingTries: this.#sets.tries,
      staking: this.staking(),
      output: (outpoint) => findOutput(this.#outputs, state.outputs, outpoint),
      spender: () => undefined,
      isExecuted: () => false,
      publicKey: (address) => this.#publicKeys.get(nameOf(address)),
      isRegistered: () => false,
    };
    const defaults = {
      timestampMillis: state.timestampMillis + 2_500,
      signers: 1n,
      blocks: [],
      expired: [],
      lost: () => [],
    };
    return applyCut(view, { ...defaults, ...input }, check);
  }
}
