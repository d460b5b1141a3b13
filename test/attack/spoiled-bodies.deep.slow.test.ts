/** Spoiled bodies between real processes: validators, and a plain node that knows none but a hostile libp2p peer. */
import { join } from 'node:path';
import type { Connection } from '@libp2p/interface';
import { onTestFinished, test } from 'vitest';
import { developmentKey } from '../../node/genesis/development.ts';
import { developmentFiles, writeDevelopmentNetwork } from '../../node/genesis/development-network.ts';
import { loadGenesis } from '../../node/genesis/make-genesis.ts';
import {
  type AnsweredBlock,
  decodeBlocksAnswer,
  encodeBlocksAnswer,
  encodeSyncQuestion,
  type SyncQuestion,
} from '../../node/network/sync/sync-messages.ts';
import { ask } from '../../node/network/thread/asking.ts';
import { PROTOCOLS } from '../../node/network/thread/host-types.ts';
import { toHex } from '../../protocol/bytes.ts';
import { decodeBody, encodeBody } from '../../protocol/ledger/body.ts';
import { chainId as chainIdOf, encodeGenesis } from '../../protocol/ledger/genesis.ts';
import { transactionIdOfWire } from '../../protocol/transactions/transaction.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { freePorts } from '../../runtime/free-port.ts';
import { findBlock } from '../network/find-block.ts';
import { treasuryOutput } from '../network/peers.ts';
import { RawPeer } from '../network/raw-peer.ts';
import { Svcd } from '../network/svcd.ts';
import { payment } from '../node/bed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';

const VALIDATORS = 2;
const CUT_MILLIS = 200;
const BLOCKS = 3;
const BOB = developmentKey('bob').address;
const ANSWER = { bytes: 3 * 1024 * 1024, millis: 20_000 };

/** The transactions twice: what was looked at before the root. */
function spoil({ header, body }: AnsweredBlock): AnsweredBlock {
  const decoded = decodeBody(body);
  return { header, body: encodeBody({ ...decoded, transactions: [...decoded.transactions, ...decoded.transactions] }) };
}

/** What an honest peer serves. */
class Source {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  answer(question: SyncQuestion): Promise<Uint8Array> {
    return ask(this.#connection, PROTOCOLS.sync.name, encodeSyncQuestion(question), ANSWER);
  }
}

test('a hostile peer that spoils blocks does not end a node that syncs: it loses points, and the node comes to the newest cut', async () => {
  const directory = temporaryDirectory();
  const work = { initialWork: 1n, minimumWork: 1n };
  await writeDevelopmentNetwork(join(directory, 'network'), {
    timestampMillis: steadyMillis(),
    validators: VALIDATORS,
    ...work,
  });
  const files = developmentFiles(join(directory, 'network'));
  const genesis = loadGenesis(files.genesis, 'development');
  const chainId = chainIdOf(encodeGenesis(genesis));
  const chain = { genesis, chainId, head: () => ({ height: 0 }) } as unknown as Parameters<typeof payment>[0] &
    Parameters<typeof treasuryOutput>[0];
  const ports = await freePorts(3 * VALIDATORS + 5);
  const port = (i: number) => ports[i] as number;
  const overlay = (member: number) => `127.0.0.1:${port(2 * VALIDATORS + member)}`;
  const [p2p, plainP2p, nobody] = [0, 1, 2].map((i) => port(3 * VALIDATORS + i)) as [number, number, number];
  const common = (name: string) => [
    '--data-dir',
    join(directory, name),
    '--genesis',
    files.genesis,
    '--cut-millis',
    String(CUT_MILLIS),
  ];
  const validators = Array.from({ length: VALIDATORS }, (_, member) => {
    const key = ['--consensus-key-file', files.key(member), '--consensus-password-file', files.password];
    const neighbours = Array.from({ length: VALIDATORS }, (_, i) => i).filter((i) => i !== member);
    const words = [
      ...key,
      '--overlay-listen',
      overlay(member),
      ...neighbours.flatMap((i) => ['--neighbour', overlay(i)]),
    ];
    const peers = member === 0 ? ['--p2p-listen', `127.0.0.1:${p2p}`] : [];
    const binds = { api: port(2 * member), mining: port(2 * member + 1) };
    return new Svcd(binds, [...common(`validator-${member}`), ...words, ...peers]);
  });
  const [first] = validators as [Svcd, Svcd];
  const binds = { api: port(3 * VALIDATORS + 3), mining: port(3 * VALIDATORS + 4) };
  // It makes no cuts itself because it is to follow a peer; that one is not there.
  const words = ['--bootstrap', `/ip4/127.0.0.1/tcp/${nobody}`, '--p2p-listen', `127.0.0.1:${plainP2p}`];
  const plain = new Svcd(binds, [...common('plain'), ...words]);
  onTestFinished(async () => {
    await Promise.all([...validators, plain].map((svcd) => svcd.end('SIGKILL')));
  });
  for (const svcd of validators) svcd.start();
  await until(async () => (await first.height()) >= 2);
  for (let i = 0; i < BLOCKS; i++) await payAndFind(chain, i, port(0), port(1));
  const reached = await first.height();

  let spoiled = 0;
  const peer = await RawPeer.open(chainId, {
    height: () => reached,
    sync: async (question) => {
      const answer = await source.answer(question);
      // Once: a second one would bar it, and this node knows nobody else.
      if (question.type !== 'blocks' || spoiled > 0) return answer;
      const blocks = decodeBlocksAnswer(answer);
      spoiled += blocks.filter((block) => block !== undefined).length;
      return encodeBlocksAnswer(blocks.map((block) => block && spoil(block)));
    },
  });
  onTestFinished(() => peer.close());
  const source = new Source(await peer.join(`/ip4/127.0.0.1/tcp/${p2p}`));
  plain.start();
  await until(async () => (await plain.height()) >= 0);
  await peer.join(`/ip4/127.0.0.1/tcp/${plainP2p}`);
  // Their heights are asked for: one that has ended by itself fails the test.
  const why = () => `${peer.asked.join(', ')}\n${plain.output}`;
  await until(async () => (await plain.height()) >= reached && spoiled > 0, { why });
  type Figures = { readonly barred: number; readonly peers: readonly { readonly lost_score: number }[] };
  // Two spoiled blocks in one answer are enough to be sent away. Figures come from the network's thread now and then.
  await until(async () => {
    const figures = await plain.peers<Figures>();
    return figures?.barred === 1 || figures?.peers.some(({ lost_score: lost }) => lost > 0);
  });
});

/** A payment, and a block that carries it, until the payment is final. */
async function payAndFind(
  chain: Parameters<typeof payment>[0] & Parameters<typeof treasuryOutput>[0],
  i: number,
  api: number,
  mining: number,
): Promise<void> {
  const wire = payment(chain, [treasuryOutput(chain, i)], [{ address: BOB, amount: 5n }]);
  const url = `http://127.0.0.1:${api}/v1/transactions`;
  const body = JSON.stringify({ api_version: 1, wire_hex: toHex(wire) });
  const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  // 503: the node has not read its dataset yet.
  await until(async () => {
    const sent = await fetch(url, request);
    if (!sent.ok && sent.status !== 503) throw new Error(await sent.text());
    return sent.ok;
  });
  await findBlock(mining, i + 1);
  await until(async () => {
    const status = (await (await fetch(`${url}/${toHex(transactionIdOfWire(wire))}/status`)).json()) as {
      readonly lifecycle?: string;
    };
    return status.lifecycle === 'finalized';
  });
}
