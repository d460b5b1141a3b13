/** A member that votes twice: whoever sees it tells the others, a validator with a fee key brings it into the chain, and the member is slashed. */
import { afterEach, expect, test } from 'vitest';
import { encodeMessage } from '../../node/consensus/driver/messages.ts';
import { signedText } from '../../node/consensus/driver/signatures.ts';
import { cutBytes, NIL, PREVOTE, type Vote } from '../../node/consensus/engine/votes.ts';
import type { UnspentOutput } from '../../node/full-node.ts';
import { developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { EvidenceDesk } from '../../node/validator/evidence.ts';
import { genesisOutpoint } from '../../protocol/ledger/genesis.ts';
import type { Evidence } from '../../protocol/staking/operation.ts';
import { silentLog } from '../node/bed.ts';
import { until } from '../until.ts';
import { type Driven, DrivenNetwork, MEMBERS, mineOn } from './driven.ts';

let network: DrivenNetwork | undefined;
afterEach(() => network?.close());

test('two votes of one member reach every node, and the chain slashes it', async () => {
  network = new DrivenNetwork(96);
  const found: Evidence[][] = [];
  const members: Driven[] = [];
  // The last one has its key elsewhere.
  for (let member = 0; member < MEMBERS - 1; member++) {
    const own: Evidence[] = [];
    found.push(own);
    members.push(await network.start(`${member}`, member, { onEvidence: (evidence) => own.push(evidence) }));
  }
  const [{ node, driver }] = members as [Driven];
  await until(() => node.chain.head().height > 1);
  const { privateKey, publicKey } = developmentKey(validatorName(MEMBERS - 1));
  const liar = node.ledger
    .committee(node.chain.head().height + 1)
    ?.members.findIndex((member) => Buffer.from(member.publicKey).equals(publicKey)) as number;
  const twice = () => {
    const place = { kind: PREVOTE, height: driver.state.height, round: driver.state.round, member: liar } as const;
    for (const cut of [NIL, 'x'.repeat(48)]) {
      const vote: Vote = { ...place, cut, signature: new Uint8Array(0) };
      const signature = signMessage(privateKey, signedText(node.chain.chainId, { type: 'vote', vote }));
      network?.network.deliver('stranger', '0', encodeMessage({ type: 'vote', vote: { ...vote, signature } }));
    }
  };
  expect(cutBytes(NIL).every((byte) => byte === 0)).toBe(true);
  while (found.some((own) => own.length === 0)) {
    twice();
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  const [[evidence]] = found as [[Evidence]];

  const key = developmentKey(TREASURY);
  const outputs = node.chain.genesis.outputs.flatMap(({ address, amount }, i): Omit<UnspentOutput, 'address'>[] =>
    Buffer.from(address).equals(key.address)
      ? [{ outpoint: genesisOutpoint(node.chain.chainId, i), amount, source: 'genesis' }]
      : [],
  );
  const desk = (maxFeeAtoms: bigint) =>
    new EvidenceDesk({ node, fees: { key, maxFeeAtoms }, unspent: async () => outputs, log: silentLog });
  // A cap that is too low sends nothing.
  const capped = desk(1n);
  capped.add(evidence);
  await capped.tick();
  expect(node.mempool.count).toBe(0);
  const open = desk(10_000_000_000n);
  open.add(evidence);
  const isSlashed = () =>
    members.every((each) => each.node.chain.staking().validator(evidence.validator)?.slashHeight !== 0);
  while (!isSlashed()) {
    await open.tick();
    if (node.mempool.count > 0) await mineOn(node, key.address);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});
