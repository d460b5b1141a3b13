/**
 * Staking over two epochs of 24 cuts and the first cut of a third (ledger rules 60 to 69): genesis, who signed, the operations of each cut, and after each cut
 * the reserves, the payments and the roots of the three sets. Keys and signatures are patterns; every transaction pays the same fee.
 */
import { updateStaking } from '../../node/ledger/apply-cut.ts';
import { genesisCut } from '../../node/ledger/genesis-cut.ts';
import { KEY_LAYOUT, OUTPUT_LAYOUT } from '../../node/ledger/output-set.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import type { Committee } from '../../node/ledger/staking/committee.ts';
import { advanceStake } from '../../node/ledger/staking/epoch.ts';
import { StakingLayer } from '../../node/ledger/staking/layer.ts';
import { prepare } from '../../node/ledger/staking/operations.ts';
import { isPaymentDue } from '../../node/ledger/staking/payment.ts';
import type { Sweep } from '../../node/ledger/staking/slashing.ts';
import type { LedgerState } from '../../node/ledger/state.ts';
import { Trie } from '../../node/ledger/trie.ts';
import type { BatchOp } from '../../node/store/cut-indexer.ts';
import { StakingSets } from '../../node/store/staking-sets.ts';
import { keyAddressPayload } from '../../protocol/address.ts';
import { type Bytes, toHex } from '../../protocol/bytes.ts';
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from '../../protocol/crypto/key-sizes.ts';
import { emissionOfInterval, GENESIS_SUPPLY, splitHalves, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import { encodeGenesis, type Genesis } from '../../protocol/ledger/genesis.ts';
import { encodeEndpoint } from '../../protocol/staking/endpoint.ts';
import { delegationId, validatorId } from '../../protocol/staking/names.ts';
import { encodeOperation, type StakingOperation } from '../../protocol/staking/operation.ts';
import { pattern } from './pattern.ts';

const COIN = 100_000_000n;
const INTERVAL = 24;
const LAST = 2 * INTERVAL;
const FEE = 2_000n;
const OUTPUTS = 16;

const key = (name: string): Bytes => pattern(`epoch/key ${name}`, PUBLIC_KEY_BYTES);
const address = (name: string): Bytes => keyAddressPayload(key(`of ${name}`));
const endpoint = (name: string): Bytes =>
  encodeEndpoint({ overlayKey: pattern(`epoch/overlay ${name}`, 32), routes: [] });
const signature = (name: string): Bytes => pattern(`epoch/signature ${name}`, SIGNATURE_BYTES);
const validator = (name: string): Bytes => validatorId(key(name));
const transactionId = (name: string): Bytes => pattern(`epoch/transaction ${name}`, 48);
const position = (name: string): Bytes => delegationId(transactionId(name));

const VALIDATORS = [
  { name: 'a', principal: 300_000n * COIN, commission: 500 },
  { name: 'b', principal: 200_000n * COIN, commission: 0 },
  { name: 'c', principal: 150_000n * COIN, commission: 1_000 },
];

function genesisOf(): Genesis {
  const left = VALIDATORS.reduce((sum, { principal }) => sum - principal, GENESIS_SUPPLY);
  return {
    network: 'development',
    timestampMillis: 1_800_000_000_000,
    powEpochLength: 1_000,
    initialWork: 1n,
    minimumWork: 1n,
    intervalCuts: INTERVAL,
    validators: VALIDATORS.map(({ name, principal, commission }) => ({
      publicKey: key(name),
      principal,
      owner: address(name),
      rewardAddress: address(`${name} rewards`),
      commission,
      endpoint: endpoint(name),
    })),
    outputs: Array.from({ length: OUTPUTS }, () => ({ address: address('purse'), amount: left / BigInt(OUTPUTS) })),
  };
}

const bond = (to: string, by: string, amount: bigint): StakingOperation => ({
  name: 'bond',
  validator: validator(to),
  owner: address(by),
  rewardAddress: address(by),
  amount,
});
const heartbeat = (name: string, epoch: number): StakingOperation => ({
  name: 'heartbeat',
  validator: validator(name),
  epoch,
});
const vote = (name: string) => ({
  vote: { kind: 'precommit' as const, height: 20, round: 0, cutId: pattern(`epoch/cut ${name}`, 48) },
  signature: signature(`vote ${name}`),
});

/** The transactions of each cut that has some, by name. */
const OPERATIONS: Readonly<Record<number, Readonly<Record<string, StakingOperation>>>> = {
  3: {
    'register d': {
      name: 'register',
      consensusKey: key('d'),
      possession: signature('d'),
      owner: address('d'),
      rewardAddress: address('d'),
      amount: 120_000n * COIN,
      commission: 250,
      endpoint: endpoint('d'),
    },
    'bond a': bond('a', 'x', 1_000n * COIN + 50_000_001n),
  },
  4: { 'bond b': bond('b', 'x', 5_000n * COIN), 'bond c': bond('c', 'y', 777n * COIN) },
  6: {
    'unbond b': { name: 'unbond', position: position('bond b'), amount: 2_000n * COIN },
    'heartbeat again': heartbeat('c', 0),
  },
  10: {
    'rotate a': {
      name: 'rotate',
      validator: validator('a'),
      consensusKey: key('a two'),
      possession: signature('a two'),
      endpoint: endpoint('a two'),
    },
    'commission b': { name: 'commission', validator: validator('b'), commission: 300 },
    'endpoint c': {
      name: 'endpoint',
      validator: validator('c'),
      endpoint: endpoint('c two'),
      signature: signature('c two'),
    },
  },
  12: { 'unbond c': { name: 'unbond', position: position('bond c'), amount: 0n } },
  24: { 'heartbeat a': heartbeat('a', 1), 'heartbeat b': heartbeat('b', 1) },
  25: { redirect: { name: 'reward_address', position: position('bond a'), address: address('z') } },
  26: { 'evidence b': { name: 'evidence', validator: validator('b'), votes: [vote('one'), vote('two')] } },
  27: { 'withdraw early': { name: 'withdraw', position: position('bond c') } },
  30: { 'exit c': { name: 'exit', validator: validator('c') } },
  46: { 'heartbeat d': heartbeat('d', 1) },
};

/** C, third by stake, stays away in epoch 0. */
const signersOf = (height: number): bigint => (height < INTERVAL ? 0b011n : 0b11n);

const root = ({ digest, sum, count }: LedgerState['positions']) => ({
  digest: toHex(digest),
  sum: sum.toString(),
  count,
});
const figures = ({ bonded, unbonding, burned, stake, ...sets }: LedgerState) => ({
  pool: stake.pool.toString(),
  bonded: bonded.toString(),
  unbonding: unbonding.toString(),
  burned: burned.toString(),
  validators: root(sets.validators),
  positions: root(sets.positions),
  used_keys: root(sets.usedKeys),
});
const committee = ({ epoch, members, setId }: Committee) => ({
  epoch,
  validator_set_id: toHex(setId),
  members: members.map(({ validatorId, stake, commission }) => ({
    validator_id: toHex(validatorId),
    stake: stake.toString(),
    commission,
  })),
});

export function stakingEpochVectors() {
  const genesis = genesisOf();
  const nodes = new Map<string, Uint8Array>();
  const sets = new StakingSets((name) => nodes.get(nameOf(name)));
  const store = (operations: readonly BatchOp[]): void => {
    for (const operation of operations)
      if (operation.type === 'put') nodes.set(nameOf(operation.key), operation.value);
      else nodes.delete(nameOf(operation.key));
  };
  const nothing = () => undefined;
  const first = genesisCut(genesis, {
    outputTrie: new Trie(OUTPUT_LAYOUT, nothing),
    keyTrie: new Trie(KEY_LAYOUT, nothing),
    stakingTries: sets.tries,
  });
  store(sets.operations(first.staking, first.effects.staking));
  sets.committed(first.staking, first.effects.staking);
  let { state } = first;
  const committees = [committee(state.stake.committee)];
  const cuts: object[] = [];
  for (let height = 1; height <= LAST; height++) {
    const layer = new StakingLayer(sets.reads(state));
    const { chainId, stake: before } = state;
    const begun: Sweep[] = [];
    let fees = 0n;
    const operations = Object.entries(OPERATIONS[height] ?? {}).map(([name, operation]) => {
      const answer = prepare(operation, {
        staking: layer,
        height,
        intervalCuts: INTERVAL,
        chainId,
        transactionId: transactionId(name),
        payer: address('purse'),
        sweeps: [...before.sweeps, ...begun],
        isPaymentDue: (id) => isPaymentDue(before.walk, before.previous, id),
      });
      const { type, data } = encodeOperation(operation);
      const sent = { transaction_id: toHex(transactionId(name)), name: operation.name, type, data: toHex(data) };
      if ('reason' in answer) return { ...sent, outcome: answer.detail };
      answer.apply(layer);
      if (answer.sweep !== undefined) begun.push(answer.sweep);
      fees += FEE;
      return { ...sent, outcome: 'executed' };
    });
    const { amount } = emissionOfInterval(Math.floor(height / INTERVAL));
    const subsidy = subsidyOfCut(amount, height % INTERVAL, INTERVAL);
    const signers = signersOf(height);
    const earned = splitHalves(subsidy).stake + splitHalves(fees).stake;
    const { stake, payouts } = advanceStake(before, layer, { height, intervalCuts: INTERVAL, signers, earned, begun });
    const update = updateStaking(sets.tries, state, layer);
    store(sets.operations(update, layer.changes()));
    sets.committed(update, layer.changes());
    state = {
      ...state,
      height,
      stake,
      validators: update.validators.root,
      positions: update.positions.root,
      usedKeys: update.usedKeys.root,
      bonded: state.bonded + layer.bonded,
      unbonding: state.unbonding + layer.unbonding,
      burned: state.burned + layer.burned,
    };
    if (stake.committee !== before.committee) committees.push(committee(stake.committee));
    cuts.push({
      height,
      signers: Number(signers),
      earned: earned.toString(),
      operations,
      payments: payouts.map(({ positionId, interval, rewardAddress, amount }) => ({
        position_id: toHex(positionId),
        interval,
        address: toHex(rewardAddress),
        amount: amount.toString(),
      })),
      ...figures(state),
    });
  }
  return {
    interval_cuts: INTERVAL,
    fee: Number(FEE),
    genesis: toHex(encodeGenesis(genesis)),
    at_genesis: figures(first.state),
    cuts,
    committees,
  };
}
