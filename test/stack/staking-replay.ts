/**
 * What a chain must have paid to stakers, worked out a second time from its transactions and headers alone with the model of the rules (test/staking/model.ts): the store of a node that
 * has ended gives operations and signers, its API the order of execution and the fees.
 */
import { LedgerStore } from '../../node/store/ledger-store.ts';
import type { ApiClient } from '../../protocol/api/client.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { decodeBody } from '../../protocol/ledger/body.ts';
import { emissionOfInterval, splitHalves, subsidyOfCut } from '../../protocol/ledger/emission.ts';
import type { Genesis } from '../../protocol/ledger/genesis.ts';
import { delegationId, selfBondId, validatorId } from '../../protocol/staking/names.ts';
import { decodeOperation } from '../../protocol/staking/operation.ts';
import { decodeTransaction } from '../../protocol/transactions/transaction.ts';
import { Model, type Payment, shortKey } from '../staking/model.ts';

/** By height, in the order of execution. */
export type Executed = Map<number, { readonly id: string; readonly block: string; readonly fee: bigint }[]>;

export async function executedTransactions(client: ApiClient): Promise<{ height: number; executed: Executed }> {
  const executed: Executed = new Map();
  let top: number | undefined;
  for (let before: number | undefined; ; ) {
    const page = await client.cuts({ limit: 100, ...(before === undefined ? {} : { before }) });
    top ??= page.cuts[0]?.height;
    for (const { height, transactions } of page.cuts) {
      if (transactions === 0) continue;
      const { transactions: list, next_cursor: more } = await client.cutTransactions({ height, limit: 64 });
      if (more !== undefined) throw new Error(`cut ${height} has more transactions than this test makes`);
      const final = list.filter(({ outcome }) => outcome === 'finalized');
      executed.set(
        height,
        final.map(({ transaction_id: id, block_id: block, fee }) => ({ id, block, fee: BigInt(fee) })),
      );
    }
    before = page.next_before;
    if (before === undefined) return { height: top ?? 0, executed };
  }
}

export type Replay = {
  readonly model: Model;
  readonly payments: readonly (Payment & { readonly height: number })[];
  /** Names of the operations that were executed, in order. */
  readonly operations: readonly string[];
};

function modelOf(genesis: Genesis): Model {
  const model = new Model(genesis.intervalCuts);
  const validators = genesis.validators.map(({ publicKey, owner, rewardAddress, principal, commission }) => ({
    id: toHex(validatorId(publicKey)),
    key: shortKey(publicKey),
    owner: toHex(owner),
    reward: toHex(rewardAddress),
    amount: principal,
    rate: commission,
  }));
  model.genesis(validators);
  for (const { id } of validators) model.selfBonds.set(toHex(selfBondId(fromHex(id))), `self ${id}`);
  return model;
}

/** Throws where the model would have refused what the chain has executed. */
export async function replay(
  genesis: Genesis,
  directory: string,
  { height: top, executed }: { readonly height: number; readonly executed: Executed },
): Promise<Replay> {
  const store = await LedgerStore.open(directory);
  const { intervalCuts } = genesis;
  const model = modelOf(genesis);
  const payments: (Payment & { height: number })[] = [];
  const operations: string[] = [];
  const operationOf = (block: string, id: string) => {
    const carrier = store.transaction(fromHex(id))?.carriedBy;
    const wire =
      carrier && decodeBody(store.body(fromHex(block)) as Uint8Array<ArrayBuffer>).transactions[carrier.index];
    if (wire === undefined) throw new Error(`transaction ${id} is not where the store says`);
    const { operation } = decodeTransaction(wire).body;
    return operation && decodeOperation(operation);
  };
  try {
    for (let height = 0; height <= top; height++) {
      model.height = height;
      const { amount } = emissionOfInterval(model.epochOf(height));
      let half = splitHalves(subsidyOfCut(amount, height % intervalCuts, intervalCuts)).stake;
      if (height === 0) {
        model.pool = half;
        continue;
      }
      for (const { id, block, fee } of executed.get(height) ?? []) {
        half += splitHalves(fee).stake;
        const operation = operationOf(block, id);
        if (operation === undefined) continue;
        const isRegister = operation.name === 'register';
        const made = isRegister ? validatorId(operation.consensusKey) : delegationId(fromHex(id));
        const outcome = model.operate(operation, toHex(made));
        if ('refused' in outcome) throw new Error(`cut ${height} has ${operation.name}: ${outcome.refused}`);
        if (isRegister) model.selfBonds.set(toHex(selfBondId(made)), `self ${toHex(made)}`);
        operations.push(operation.name);
      }
      const signers = store.cut(height)?.header.signers ?? 0n;
      for (const payment of model.finish(half, signers)) payments.push({ ...payment, height });
    }
  } finally {
    await store.close();
  }
  return { model, payments, operations };
}
