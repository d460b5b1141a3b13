/** What a node's API says of a multisig address: balance, outputs, history, registered keys of its members, and proofs of its outputs. */
import { expect, test } from 'vitest';
import type { UnspentOutput } from '../../node/full-node.ts';
import { formatAddress } from '../../protocol/address.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { decodeOutputProof, outputSetRoot, verifyOutputProof } from '../../protocol/proofs/output-proof.ts';
import { completePackage } from '../../protocol/transactions/multisig-package.ts';
import { ApiBed } from '../api/api-bed.ts';
import { funded, groupOf, mined, proposal, signedBy } from './members.ts';

test('a multisig address is read like any other, and its members’ keys are registered with its first payment', async () => {
  const { bed, client } = await ApiBed.forTest();
  const group = groupOf(2);
  const address = formatAddress(group.address, 'development');
  const members = group.members.map((member) => formatAddress(member.address, 'development'));
  const [first, second] = (await funded(bed, group.address, 2)) as [UnspentOutput, UnspentOutput];
  expect(await client.addressBalance({ address })).toMatchObject({ balance: '2000000000', utxos: 2 });
  const registered = async () =>
    (await client.registeredKeys({ addresses: members })).keys.map((key) => key.registered);
  expect(await registered()).toEqual([false, false, false]);

  const wire = completePackage(signedBy(proposal(bed.node.chain, group, [first], []), ...group.members.slice(1)));
  const { transaction_id: paid } = await client.submitTransaction(wire);
  await mined(bed);
  expect(await registered()).toEqual([true, true, true]);
  expect((await client.transactionStatus({ id: paid })).lifecycle).toBe('finalized');
  const { events } = await client.addressHistory({ address });
  expect(events.map(({ kind, transaction_id }) => [kind, transaction_id === paid])).toEqual(
    expect.arrayContaining([
      ['spent', true],
      ['received', true],
      ['received', false],
    ]),
  );

  const at = ({ outpoint }: UnspentOutput) => ({
    transaction_id: toHex(outpoint.transactionId),
    output_index: outpoint.outputIndex,
  });
  const answer = await client.utxoProofs({ outpoints: [at(second), at(first)] });
  const root = outputSetRoot(fromHex(answer.state_hex), fromHex(answer.cut.state_root));
  const verdicts = answer.proofs.map(({ proof_hex }, i) =>
    verifyOutputProof(
      root,
      [second, first][i]?.outpoint as UnspentOutput['outpoint'],
      decodeOutputProof(fromHex(proof_hex)),
    ),
  );
  expect(verdicts).toEqual([
    { ok: true, output: { address: group.address, amount: second.amount } },
    { ok: true, output: undefined },
  ]);
});
