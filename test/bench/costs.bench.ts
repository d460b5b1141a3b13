/**
 * What a stranger's bytes cost the reader: each message of consensus, overlay, sync, relay, gossip, the mining listener and the public API, and the
 * costliest contents of blocks, through the real decoders and handlers, in milliseconds of processor time of all threads. Messages are the dearest
 * of their kind: as long as they may be, right up to the last check. The hash of the PoW is not in it. Sorted by cost per byte; which limit
 * holds is in docs/security.md.
 */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { dispatch } from '../../node/api/dispatch.ts';
import { decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/driver/block-exchange.ts';
import { examine } from '../../node/consensus/driver/examine.ts';
import { decodeMessage, encodeMessage } from '../../node/consensus/driver/messages.ts';
import { signatureCheck, signedText } from '../../node/consensus/driver/signatures.ts';
import { Committee } from '../../node/consensus/engine/committee.ts';
import type { Message } from '../../node/consensus/engine/effects.ts';
import { createState } from '../../node/consensus/engine/state.ts';
import { PRECOMMIT, type Vote } from '../../node/consensus/engine/votes.ts';
import { channelKeys, newConnectionKey } from '../../node/consensus/link/channel.ts';
import { decodeIdentity, encodeHello, encodeIdentity, readHello } from '../../node/consensus/link/frames.ts';
import { decodeRecord, isSigned, signRecord } from '../../node/consensus/relays/relay-record.ts';
import type { Submission } from '../../node/full-node.ts';
import { developmentKey, TREASURY, validatorName } from '../../node/genesis/development.ts';
import { addressIndex } from '../../node/index/address-index.ts';
import { INDEX_NAME } from '../../node/index/index-keys.ts';
import { IndexReader } from '../../node/index/index-reader.ts';
import { nameOf } from '../../node/ledger/registration.ts';
import { readCandidate, readTemplateRequest, writeTemplate } from '../../node/mining/requests.ts';
import { signMessage, verifyMessage } from '../../node/ml-dsa.ts';
import {
  decodeBatch,
  decodeRelayQuestion,
  decodeShortBlock,
  encodeBatch,
  encodeRelayQuestion,
} from '../../node/network/relay/relay-messages.ts';
import { answerRelay } from '../../node/network/relay/relay-server.ts';
import { isCertified } from '../../node/network/sync/cut-proof.ts';
import { answerSync } from '../../node/network/sync/cut-server.ts';
import {
  decodeCutsAnswer,
  decodeSyncQuestion,
  encodeCutsAnswer,
  encodeSyncQuestion,
  readCutsOutline,
} from '../../node/network/sync/sync-messages.ts';
import type { ConsensusNode } from '../../node/node.ts';
import { formatAddress } from '../../protocol/address.ts';
import { type Bytes, concat, toHex } from '../../protocol/bytes.ts';
import { decodeBody, encodeBody, transactionsRoot } from '../../protocol/ledger/body.ts';
import { blocksRoot, cutId, encodeCutHeader } from '../../protocol/ledger/cut.ts';
import { decodeHeader, encodeHeader, NONCE_OFFSET } from '../../protocol/ledger/header.ts';
import { meetsTarget, targetToBytes } from '../../protocol/ledger/target.ts';
import { falseEighths, PER_BLOCK } from '../attack/costly-blocks.ts';
import { Bed, payment, quickHash, searchNonce, silentLog } from '../node/bed.ts';
import { falseCut, paidCut } from './costliest-cuts.ts';
import { bench, showValue } from './harness.ts';

/** `work` gets the number of the run, for what is remembered and must differ. */
type Cost = { readonly name: string; readonly bytes: number; readonly work: (run: number) => unknown };
type Measured = { readonly name: string; readonly bytes: number; readonly millis: number };

const RUNS = 12;
/** Code is compiled, and keys are read, before anything counts. */
const WARM_RUNS = 3;
const MEMBERS = 64;
const MEBIBYTE = 1_048_576;
const ZERO = new Uint8Array(48);

async function measured({ name, bytes, work }: Cost): Promise<Measured> {
  for (let run = 0; run < WARM_RUNS; run++) await work(run);
  const before = process.cpuUsage();
  for (let run = WARM_RUNS; run < WARM_RUNS + RUNS; run++) await work(run);
  const { user, system } = process.cpuUsage(before);
  return { name, bytes, millis: (user + system) / 1_000 / RUNS };
}

async function refused(submission: Promise<Submission>, code: string): Promise<void> {
  const outcome = await submission;
  if (outcome.status !== 'refused' || outcome.error.code !== code)
    throw new Error(`${code}: ${JSON.stringify(outcome)}`);
}

/** From a neighbour whose last signature is false. */
function consensusCosts(chainId: Bytes): Cost[] {
  const keys = Array.from({ length: MEMBERS }, (_, i) => developmentKey(validatorName(i)));
  const committee = new Committee(
    ZERO,
    keys.map(({ publicKey }) => ({ publicKey, stake: 10n })),
  );
  const blockIds = Array.from({ length: MEMBERS }, () => randomBytes(48));
  const content = concat(
    encodeCutHeader({
      networkId: 4,
      height: 1,
      timestampMillis: 1,
      previousId: ZERO,
      blocksRoot: blocksRoot(blockIds),
      stateRoot: ZERO,
      validatorSetId: ZERO,
      blockCount: MEMBERS,
      signers: 0n,
    }),
    ...blockIds,
  );
  const cut = nameOf(cutId(content.subarray(0, 228)));
  const place = { kind: PRECOMMIT, height: 1, round: 0, cut } as const;
  const unsigned = { signature: new Uint8Array(0) };
  const votes = keys.map(({ privateKey }, member): Vote => {
    const vote = { ...place, member, ...unsigned };
    return { ...vote, signature: signMessage(privateKey, signedText(chainId, { type: 'vote', vote })) };
  });
  const first = votes[0] as Vote;
  const falseLast = [...votes.slice(0, -1), { ...(votes.at(-1) as Vote), signature: first.signature }];
  const proposal = { height: 1, round: 0, validRound: -1, cut, signers: 0n, content, lastRound: 0 };
  const messages: Readonly<Record<string, Message>> = {
    vote: { type: 'vote', vote: { ...first, member: 1 } },
    proposal: { type: 'proposal', proposal: { ...proposal, signature: first.signature } },
    proof: { type: 'proof', proof: { ...place, votes: falseLast } },
    finalized: {
      type: 'finalized',
      finalized: { proof: { ...place, votes: falseLast }, proposal: { ...proposal, ...unsigned } },
    },
    have: {
      type: 'have',
      have: {
        height: 1,
        round: 0,
        prevotes: 0n,
        precommits: 0n,
        hasProposal: false,
        validRound: -1,
        wantPolka: -1,
        wantCut: cut,
        lastRound: 0,
        lastPrecommits: 0n,
      },
    },
  };
  const check = signatureCheck(chainId);
  const consensus = Object.entries(messages).map(([name, message]) => {
    const bytes = encodeMessage(message);
    return {
      name: `consensus: ${name}${name === 'have' ? '' : ', last signature false'}`,
      bytes: bytes.length,
      work: () => {
        const read = decodeMessage(bytes);
        if (read.type === 'have') return;
        const worth = examine(
          createState(1, committee, 2),
          read,
          check,
          () => true,
          () => true,
        );
        if (worth !== 'invalid') throw new Error(`${name}: ${worth}`);
      },
    };
  });
  const signatures = falseLast.map(({ member, signature }) => ({ member, signature }));
  const cuts = encodeCutsAnswer(
    { head: 1, bodiesFrom: 0 },
    [content],
    [{ index: 0, certificate: { round: 0, signatures } }],
  );
  const members = keys.map(({ publicKey }) => ({ publicKey, stake: 10n }));
  return [
    ...consensus,
    {
      name: 'sync: answer, cuts, last certificate false',
      bytes: cuts.length,
      work: async () => {
        const { last, certificate } = readCutsOutline(cuts);
        if (last === undefined || certificate === undefined || (await isCertified(chainId, last, certificate, members)))
          throw new Error('the certificate is not false');
      },
    },
  ];
}

function overlayCosts(chainId: Bytes): Cost[] {
  const own = {
    chainId,
    process: randomBytes(16),
    challenge: randomBytes(32),
    channelKey: newConnectionKey().channelKey,
    validator: ZERO,
  };
  const hello = encodeHello({ ...own, process: randomBytes(16) });
  const key = developmentKey(validatorName(0));
  const signature = signMessage(key.privateKey, randomBytes(48));
  const identity = encodeIdentity({ publicKey: key.publicKey, signature });
  const pair = generateKeyPairSync('ed25519');
  const overlayKey = pair.publicKey.export({ format: 'der', type: 'spki' }).subarray(-32);
  const relays = Array.from({ length: 2 }, () => randomBytes(48));
  const { bytes: record } = signRecord(
    { chainId, validator: randomBytes(48), sequence: 1n, expiry: 2n, relays },
    (message) => sign(null, message, pair.privateKey),
  );
  return [
    {
      name: 'overlay: hello and keys of a channel',
      bytes: hello.length,
      work: () => {
        const { secret, channelKey } = newConnectionKey();
        const dialler = readHello(hello, own);
        channelKeys(secret, dialler.channelKey, { dialler, dialled: { ...own, channelKey } });
      },
    },
    {
      name: 'overlay: identity, false',
      bytes: identity.length,
      work: (run) => {
        const { publicKey, signature: shown } = decodeIdentity(identity) as NonNullable<
          ReturnType<typeof decodeIdentity>
        >;
        verifyMessage(publicKey, new Uint8Array(48).fill(run), shown);
      },
    },
    { name: 'overlay: relay record', bytes: record.length, work: () => isSigned(decodeRecord(record), overlayKey) },
  ];
}

/** Of a node that has full blocks, and as many waiting payments as its treasury has outputs. */
async function nodeCosts(bed: Bed): Promise<Cost[]> {
  const node = bed.node as ConsensusNode;
  const { chain, mempool } = node;
  const payout = developmentKey(TREASURY).address;
  const spends = Array.from({ length: 8 }, (_, i) => bed.treasury(i));
  await bed.pay([bed.treasury(63)], []);
  await bed.mine(payout);
  await bed.seal();
  /** Also with its transactions in another order, which only the last root shows, and without work. */
  const full = (from: number) => {
    const template = node.template({ payout, maxTransactions: 0 });
    const transactions = falseEighths(chain, spends, from);
    const { extranonce, parents, target } = template;
    const unsealed = encodeHeader({
      ...decodeHeader(template.header),
      transactionsRoot: transactionsRoot({ transactions }),
    });
    const body = encodeBody({ payout, extranonce, parents, transactions });
    const foreign = encodeBody({ payout, extranonce, parents, transactions: transactions.toReversed() });
    const header = searchNonce(unsealed, target);
    const workless = Uint8Array.from(header);
    for (let last = 0; meetsTarget(quickHash(workless), targetToBytes(target)); last++)
      workless[NONCE_OFFSET + 7] = last;
    return { header, body, foreign, workless };
  };
  const taken = full(0);
  const outcome = await node.submitBlock(taken.header, taken.body);
  if (outcome.status !== 'accepted') throw new Error(JSON.stringify(outcome));
  await bed.seal(2);
  for (let i = 9; i < 63; i++) await bed.pay([bed.treasury(i)], []);
  const ids = Array.from({ length: 256 }, () => randomBytes(48));
  const question = (name: string, asked: Parameters<typeof answerSync>[1]): Cost => {
    const bytes = encodeSyncQuestion(asked);
    return {
      name: `sync: question, ${name}`,
      bytes: bytes.length,
      work: () => answerSync(chain, decodeSyncQuestion(bytes) as typeof asked),
    };
  };
  const relayed = (name: string, bytes: Bytes): Cost => ({
    name: `relay: question, ${name}`,
    bytes: bytes.length,
    work: () => answerRelay(node, decodeRelayQuestion(bytes), () => undefined),
  });
  const cuts = answerSync(chain, { type: 'cuts', from: 1, count: 96 });
  const batch = encodeBatch(randomBytes(8), ids);
  const wants = encodeBlockMessage({ type: 'want', ids: Array(64).fill(outcome.id) });
  const fresh = Array.from({ length: WARM_RUNS + RUNS }, (_, i) => full(1_000 + i * PER_BLOCK));
  const falses = Array.from({ length: 2 * (WARM_RUNS + RUNS) }, (_, i) =>
    falseEighths(chain, spends, 10_000 + i, 1).at(0),
  ) as Bytes[];
  const unknown = payment(
    chain,
    spends.map((spend) => ({ ...spend, outpoint: { ...spend.outpoint, outputIndex: 9 } })),
    [],
  );
  const short = concat(taken.header, payout, Uint8Array.of(0, 0, 0x30, 0x01), randomBytes(304 * 8));
  const crumbs = encodeBody({ ...decodeBody(taken.body), transactions: Array(260_000).fill(new Uint8Array(0)) });
  const address = formatAddress(payout, 'development');
  const template = Buffer.from(JSON.stringify({ payout: address, max_transactions: 1_000 }));
  const candidates = fresh.map(({ header, foreign }) =>
    Buffer.from(JSON.stringify({ header_hex: toHex(header), body_hex: toHex(foreign) })),
  );
  const context = {
    node,
    index: new IndexReader(chain.reader(INDEX_NAME), () => chain.head().height),
    version: '0',
    startedMillis: 0,
    state: () => 'ready' as const,
    identity: { identity: ZERO, publicKey: ZERO },
    now: () => bed.now,
  };
  const caller = { allow: () => undefined, turn: async <T>(_cost: number, work: () => T | Promise<T>) => await work() };
  const called = (
    name: string,
    expected: string,
    method: string,
    target: string,
    bodies: readonly Buffer[] = [],
  ): Cost => ({
    name: `api: ${name}`,
    bytes: target.length + (bodies[0]?.length ?? 0),
    work: async (run) => {
      const body = bodies[run % bodies.length] ?? new Uint8Array(0);
      const asked = { method, target, body };
      const { json } = await dispatch(asked, caller, { context: () => context, log: silentLog });
      if (!json.toString().includes(expected)) throw new Error(`${name}: ${json.toString().slice(0, 200)}`);
    },
  });
  const posted = (wire: Bytes) => Buffer.from(JSON.stringify({ api_version: 1, wire_hex: toHex(wire) }));
  return [
    question('96 cuts', { type: 'cuts', from: 1, count: 96 }),
    question('a block of 1 MiB', { type: 'blocks', ids: [outcome.id] }),
    question('1,024 headers', { type: 'headers', to: chain.head().height, count: 1_024 }),
    { name: 'sync: answer, cuts', bytes: cuts.length, work: () => decodeCutsAnswer(cuts) },
    relayed('what waits', encodeRelayQuestion({ type: 'waiting' })),
    relayed('256 transactions', encodeRelayQuestion({ type: 'transactions', ids })),
    relayed('one carried', encodeRelayQuestion({ type: 'carried', block: outcome.id, indexes: [0] })),
    relayed('a block', encodeRelayQuestion({ type: 'block', block: outcome.id })),
    {
      name: 'gossip: 256 unknown transactions',
      bytes: batch.length,
      work: () =>
        decodeBatch(batch).filter((id) => mempool.get(id) === undefined && chain.transactionStatus(id) === undefined),
    },
    {
      name: 'gossip: a block of 304 short names',
      bytes: short.length,
      work: async () => await node.ledger.examineHeader(decodeShortBlock(short).header),
    },
    {
      name: 'overlay: 64 blocks that are wanted',
      bytes: wants.length,
      work: () => {
        const message = decodeBlockMessage(wants);
        if (message?.type === 'want') for (const id of message.ids) chain.block(id);
      },
    },
    {
      name: "block: another's body, 1 MiB",
      bytes: taken.body.length,
      work: async (run) => {
        const { header, foreign } = fresh[run] as typeof taken;
        await refused(node.submitBlock(header, foreign), 'transactions_root_mismatch');
      },
    },
    {
      name: 'block: a body of 260,000 empty transactions',
      bytes: crumbs.length,
      work: async (run) => {
        const { header } = fresh[run] as typeof taken;
        await refused(node.submitBlock(header, crumbs), 'body_malformed');
      },
    },
    {
      name: 'block: no work, 1 MiB',
      bytes: taken.body.length,
      work: async (run) => {
        const { workless, body } = fresh[run] as typeof taken;
        await refused(node.submitBlock(workless, body), 'pow_above_target');
      },
    },
    {
      name: 'transaction by gossip: false eighth signature',
      bytes: (falses[0] as Bytes).length,
      work: (run) => refused(node.submitTransaction(falses[run] as Bytes, 'relayed'), 'signature_invalid'),
    },
    {
      name: 'transaction by gossip: eight unknown inputs',
      bytes: unknown.length,
      work: () => refused(node.submitTransaction(unknown, 'relayed'), 'input_unknown'),
    },
    {
      name: 'mining: template',
      bytes: template.length,
      work: () => {
        const read = readTemplateRequest(JSON.parse(template.toString()), 'development');
        if ('error' in read) throw new Error(JSON.stringify(read.error));
        writeTemplate(node.template(read.value), 'development', chain.chainId, address, (bytes) =>
          Buffer.allocUnsafe(bytes),
        );
      },
    },
    {
      name: "mining: another's body, 2 MiB of hex",
      bytes: (candidates[0] as Buffer).length,
      work: async (run) => {
        const read = readCandidate(JSON.parse((candidates[run] as Buffer).toString()));
        if ('error' in read) throw new Error(JSON.stringify(read.error));
        await refused(node.submitBlock(read.value.header, read.value.body), 'transactions_root_mismatch');
      },
    },
    called(
      'POST transactions, false eighth signature',
      'signature_invalid',
      'POST',
      '/v1/transactions',
      falses.slice(WARM_RUNS + RUNS).map(posted),
    ),
    called('POST transactions, malformed', 'transaction_malformed', 'POST', '/v1/transactions', [
      posted(randomBytes(65_000)),
    ]),
    called('GET blocks/recent, 500', '"blocks":[{', 'GET', '/v1/blocks/recent?limit=500'),
    called('GET address history, 256', '"events":[{', 'GET', `/v1/address/${address}/history?limit=256`),
    called('GET transactions/recent, 500', '"transactions":[{', 'GET', '/v1/transactions/recent?limit=500'),
  ];
}

export default bench('what the bytes of a stranger cost the reader, message by message', async (b) => {
  const bed = await Bed.open({
    genesis: { initialWork: 2n, minimumWork: 2n },
    dependencies: { indexers: [addressIndex] },
  });
  const all: Measured[] = [];
  try {
    const { chainId } = bed.node.chain;
    for (const cost of [...consensusCosts(chainId), ...overlayCosts(chainId), ...(await nodeCosts(bed))])
      all.push(await measured(cost));
  } finally {
    await bed.close();
  }
  for (const [name, costs] of [
    ['false signatures', falseCut()],
    ['payments of new keys, 8 outputs each', paidCut()],
  ] as const) {
    all.push({ name: `cut: ${name}`, bytes: costs.bytes, millis: costs.first });
    all.push({ name: `cut: ${name}, again`, bytes: costs.bytes, millis: costs.again });
  }
  const perMebibyte = ({ bytes, millis }: Measured): number => (millis * MEBIBYTE) / bytes;
  for (const one of all.sort((x, y) => perMebibyte(y) - perMebibyte(x))) {
    b.note(`${one.name}: ${showValue(one.bytes)} bytes, ${showValue(one.millis)} ms`);
    b.figure(one.name, perMebibyte(one), 'ms per MiB');
  }
});
