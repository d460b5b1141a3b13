/**
 * A proposer that signs whatever it likes (consensus rules 3, 5, 7 and 9), with real ledgers, stores, logs and signatures: another state, time, cut before, committee, blocks that are nowhere or twice, signers that did not sign. Nobody votes for any of it,
 * the chain goes on with the proposals of others, and nobody stops.
 */
import { afterEach, expect, test } from 'vitest';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import { signedText } from '../../node/consensus/driver/signatures.ts';
import { MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey, validatorName } from '../../node/genesis/development.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import { signMessage } from '../../node/ml-dsa.ts';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { decodeProposedCut } from '../../protocol/consensus/proposal.ts';
import { blocksRoot, type CutHeader, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { type Driven, DrivenNetwork, MEMBERS, mineOn } from '../consensus/driven.ts';
import { until } from '../until.ts';

let network: DrivenNetwork | undefined;
afterEach(async () => {
  await network?.close();
});

const junk = (bytes: number) => new Uint8Array(bytes).fill(9);
type Lie = (header: CutHeader, ids: readonly Bytes[], before: number) => { header: CutHeader; ids: readonly Bytes[] };
const naming = (header: CutHeader, ids: readonly Bytes[]) => ({
  header: { ...header, blockCount: ids.length, blocksRoot: blocksRoot(ids) },
  ids,
});

const LIES: Readonly<Record<string, Lie>> = {
  'another state': (header, ids) => ({ header: { ...header, stateRoot: junk(48) }, ids }),
  'too early': (header, ids, before) => ({ header: { ...header, timestampMillis: before + 1 }, ids }),
  'an hour ahead': (header, ids) => ({
    header: { ...header, timestampMillis: header.timestampMillis + 3_600_000 },
    ids,
  }),
  'another cut before': (header, ids) => ({ header: { ...header, previousId: junk(48) }, ids }),
  'another committee': (header, ids) => ({ header: { ...header, validatorSetId: junk(48) }, ids }),
  'another network': (header, ids) => ({ header: { ...header, networkId: header.networkId === 1 ? 2 : 1 }, ids }),
  'nobody signed the cut before': (header, ids) => ({ header: { ...header, signers: 0n }, ids }),
  'somebody signed who is nobody': (header, ids) => ({
    header: { ...header, signers: header.signers | (1n << 40n) },
    ids,
  }),
  'a block that is nowhere': (header, ids) => naming(header, [...ids, junk(48)]),
  'sixty-four blocks that are nowhere': (header) =>
    naming(
      header,
      Array.from({ length: 64 }, (_, i) => new Uint8Array(48).fill(i)),
    ),
  'a block twice': (header, ids) => naming(header, ids.length > 0 ? [...ids, ids[0] as Bytes] : [junk(48), junk(48)]),
};

test('whatever a proposer signs, no lie becomes a cut: the chain goes on, and nobody stops', async () => {
  const driven = new DrivenNetwork();
  network = driven;
  const { privateKey } = developmentKey(validatorName(1));
  const names = Object.keys(LIES);
  const told = new Map<string, { name: string; bytes: Bytes; cut: string }>();
  driven.network.carries = (from, to, bytes) => {
    if (from !== 'm1' || bytes[0] !== MESSAGE_TYPES.proposal) return true;
    const message = decodeMessage(bytes);
    const { node, driver } = driven.running.get('m1') as Driven;
    if (message.type !== 'proposal') return true;
    const { proposal } = message;
    const { height, round } = proposal;
    // What it forwards for others it cannot sign.
    if (driver.state.committee.proposer(height, round) !== driver.state.self || proposal.validRound >= 0) return true;
    if (height < 2) return true;
    const place = `${height}/${round}`;
    let lie = told.get(place);
    if (lie === undefined) {
      const name = names[told.size % names.length] as string;
      const { header, blockIds } = decodeProposedCut(proposal.content);
      const before = node.chain.cut(height - 1)?.header.timestampMillis ?? 0;
      const altered = (LIES[name] as Lie)(header, blockIds, before);
      const content = concat(encodeCutHeader(altered.header), ...altered.ids);
      const cut = nameOf(decodeProposedCut(content).cutId);
      const unsigned = { ...proposal, content, cut, signers: altered.header.signers };
      const text = signedText(node.chain.chainId, { type: 'proposal', proposal: unsigned });
      const signed = { ...unsigned, signature: signMessage(privateKey, text) };
      lie = { name, cut, bytes: encodeMessage({ type: 'proposal', proposal: signed }) };
      told.set(place, lie);
    }
    driven.network.deliver(from, to, lie.bytes);
    return false;
  };
  for (let member = 0; member < MEMBERS; member++) await driven.start(`m${member}`, member);
  const nodes = () => [...driven.running.values()].map(({ node }) => node);
  const alice = developmentKey('alice').address;
  const [first] = nodes();
  let height = 0;
  while (told.size < names.length) {
    await until(() => nodes().every((node) => node.chain.head().height > height));
    height = first?.chain.head().height as number;
    if (height % 4 === 0) await mineOn(first as NonNullable<typeof first>, alice);
  }
  const last = Math.max(...nodes().map((node) => node.chain.head().height));
  await until(() => nodes().every((node) => node.chain.head().height >= last + 2));
  const lies = new Map([...told.values()].map(({ name, cut }) => [cut, name]));
  for (let at = 1; at <= last; at++) {
    const ids = new Set(nodes().map((node) => toHex(node.chain.cut(at)?.cutId as Bytes)));
    expect(ids.size).toBe(1);
    expect(lies.get(nameOf(nodes()[0]?.chain.cut(at)?.cutId as Bytes))).toBeUndefined();
  }
  for (const { driver } of driven.running.values()) expect(driver.state.stopped).toBe(false);
  expect(new Set([...told.values()].map(({ name }) => name)).size).toBe(names.length);
});
