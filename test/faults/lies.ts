/** What a lying node says, by name: each changes one thing and passes the rest on. */

import { randomBytes } from 'node:crypto';
import { newIdentity } from '../../node/api/identity.ts';
import { fromHex, toHex } from '../../protocol/bytes.ts';
import { datasetSeed } from '../../protocol/crypto/pow.ts';
import { decodeHeader, encodeHeader, type Header } from '../../protocol/ledger/header.ts';
import { NETWORKS, POW_EPOCH_CUTS, powEpoch } from '../../protocol/network.ts';
import type { Asked, Json, Lie } from './lying-node.ts';

const BLOCK_PATH = /^\/v1\/blocks\/([0-9a-f]{96})/;
const TEMPLATE_PATH = '/v1/mining/templates';
const UNSENT_HEADER = '00'.repeat(312);
/** An answer without an end is sent in pieces of this size. */
const PIECE = Buffer.alloc(65_536, 0x20);

const times = (amount: string | null): string | null => (amount === null ? null : String(BigInt(amount) * 1_000n));

/** Frames of finalized cuts, changed; all others pass. */
const cuts =
  (change: (data: Json) => Json): NonNullable<Lie['frame']> =>
  (text, send) => {
    const frame = JSON.parse(text) as { type: string; data: Json };
    send(frame.type === 'cut_finalized' ? JSON.stringify({ ...frame, data: change(frame.data) }) : text);
  };

const blocks =
  (change: (document: Json) => Json) =>
  ({ path }: Asked, document: Json): Json =>
    BLOCK_PATH.test(path) ? change(document) : document;

/** Rewards a thousand times too high. */
const amounts = (): Lie => ({
  json: blocks((document) => ({ ...document, reward: { ...document.reward, amount: times(document.reward.amount) } })),
  frame: cuts((data) => ({
    ...data,
    rewards: data.rewards.map((reward: Json) => ({ ...reward, amount: times(reward.amount) })),
  })),
});

/** Every block is said to pay the given address, whatever its finder. */
const anotherMiner = (payout: string): Lie => ({ json: blocks((document) => ({ ...document, payout })) });

/** Every cut pays for a block that nobody ever sent. */
const neverSent = (payout: string): Lie => {
  let last: Json;
  const idOf = (height: number) => height.toString(16).padStart(96, 'e');
  return {
    async http({ path }, response, truth) {
      const answer = await truth();
      const id = BLOCK_PATH.exec(path)?.[1];
      const document: Json = answer.status === 200 ? JSON.parse(answer.body.toString()) : undefined;
      if (id !== undefined && document !== undefined) last = document;
      const isMade = id?.startsWith('eeee') === true && last !== undefined;
      const made = isMade && {
        ...last,
        block_id: id,
        payout,
        header_hex: UNSENT_HEADER,
        anchor_height: Number.parseInt(id.replace(/^e+/, ''), 16) - 96,
      };
      const body = isMade ? Buffer.from(JSON.stringify(made)) : answer.body;
      response.writeHead(isMade ? 200 : answer.status, { ...answer.headers, 'content-length': body.length }).end(body);
    },
    frame: cuts((data) => ({
      ...data,
      rewards: [
        ...data.rewards,
        { block_id: idOf(data.cut.height), transaction_id: 'ab'.repeat(48), output_index: 0, amount: '5000000000' },
      ],
    })),
  };
};

/** Templates with the right seed of the wrong epoch. */
const epochs = (): Lie => ({
  json: ({ path }, document) =>
    path === TEMPLATE_PATH
      ? { ...document, pow: { ...document.pow, epoch: 7, seed: toHex(datasetSeed(NETWORKS.development.id, 7)) } }
      : document,
});

const templates =
  (change: (document: Json, header: Header) => Json): NonNullable<Lie['json']> =>
  ({ path }, document) =>
    path === TEMPLATE_PATH ? change(document, decodeHeader(fromHex(document.header_hex))) : document;

/** Work on a cut that is far from being there, of the epoch that belongs to it. */
const anchors = (): Lie => ({
  json: templates((document, header) => {
    const anchorHeight = header.anchorHeight + 10_000_000;
    const epoch = powEpoch(anchorHeight, document.pow.epoch_length ?? POW_EPOCH_CUTS);
    const pow = { ...document.pow, epoch, seed: toHex(datasetSeed(NETWORKS.development.id, epoch)) };
    return { ...document, pow, header_hex: toHex(encodeHeader({ ...header, anchorHeight })) };
  }),
});

/** Every hash is said to be a block. */
const targets = (): Lie => ({
  json: templates((document, header) => ({
    ...document,
    header_hex: toHex(encodeHeader({ ...header, target: 2n ** 256n - 1n })),
  })),
});

/** The same text everywhere, in answers and in frames. */
const everywhere = (change: (text: string) => string): Lie => ({
  json: (_asked, document) => change(JSON.stringify(document)),
  frame: (text, send) => send(change(text)),
});

/** Another chain with the same identifier: all cuts have other names. */
const rolledBack = (): Lie =>
  everywhere((text) => text.replace(/"cut_id":"([0-9a-f]{8})/g, (_, first: string) => `"cut_id":"${flipped(first)}`));
const flipped = (hex: string): string => ((Number.parseInt(hex, 16) ^ 0x5a5a5a5a) >>> 0).toString(16).padStart(8, '0');

/** The node says to be at another height than it is. */
const height = (change: (height: number) => number, frame: NonNullable<Lie['frame']>): Lie => {
  const moved = (text: string) =>
    text.replace(HEIGHT, (_, name: string, told: string) => `${name}${change(Number(told))}`);
  return {
    json: ({ path }, document) => (HEADS.has(path) ? moved(JSON.stringify(document)) : document),
    frame: (text, send, socket) => frame(moved(text), send, socket),
  };
};
const HEIGHT = /("(?:height|finalized_height)":)(\d+)/g;
const HEADS = new Set(['/v1/node/sync', '/v1/chain/head']);

/** As if the last fifty cuts had never been, and no new one came. */
const behind = (): Lie =>
  height(
    (told) => Math.max(0, told - 50),
    (text, send) => {
      if (text.includes('"checkpoint"')) send(text);
    },
  );

/** As if years had passed: a reader that asks for what came since gets the answer that it is too much, and that it must begin at the head. */
const heights = (): Lie => {
  const RESYNC = JSON.stringify({ type: 'resync_required', data: { reason: 'history_unavailable' } });
  let connections = 0;
  return height(
    (told) => told + 1_000_000_000,
    (text, send, socket) => {
      if (text.includes('"checkpoint"')) connections++;
      if (connections % 2 === 0) return send(text);
      send(RESYNC);
      socket.close();
    },
  );
};

/** Cuts come in another order than they were made, some twice, some never. */
const disorder = (): Lie => {
  let kept: string | undefined;
  let frames = 0;
  return {
    frame(text, send) {
      if (!text.includes('"cut_finalized"')) return send(text);
      frames++;
      if (frames % 5 === 0) return;
      if (kept === undefined) kept = text;
      else {
        for (const each of [text, kept, text]) send(each);
        kept = undefined;
      }
    },
  };
};

/** Takes connections and requests, and never says a word. */
const hangs = (): Lie => ({ http: () => undefined, socket: () => undefined });

const garbage = (): Lie => ({
  http: (_asked, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(randomBytes(2_000)),
  frame: (_text, send) => send(randomBytes(2_000).toString('latin1')),
});

/** Does what it is asked to do and says that it failed: a client that then does it again, differently, does it twice. */
const denies = (): Lie => ({
  async http({ method, path }, response, truth) {
    const { status, headers, body } = await truth();
    if (method === 'POST' && DEEDS.test(path) && status === 200) response.writeHead(503).end();
    else response.writeHead(status, { ...headers, 'content-length': body.length }).end(body);
  },
});
const DEEDS = /^\/v1\/(mining\/candidates|transactions)$/;

const endless = (): Lie => ({
  http(_asked, response) {
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = (): void => {
      if (!response.destroyed) response.write(PIECE, more);
    };
    more();
  },
});

const redirects = (): Lie => ({
  http: (_asked, response) => response.writeHead(307, { location: 'http://127.0.0.1:9/elsewhere' }).end(),
});

/** The node says to be another than it is. */
const identity = (): Lie => {
  const other = toHex(newIdentity().identity);
  return {
    json: ({ path }, document) => (path === '/v1/node/identity' ? { ...document, identity: other } : document),
  };
};

export const LIES: Readonly<Record<string, (payout: string) => Lie>> = {
  truth: () => ({}),
  amounts,
  'another-miner': anotherMiner,
  'never-sent': neverSent,
  epochs,
  anchors,
  targets,
  heights,
  behind,
  'rolled-back': rolledBack,
  disorder,
  denies,
  hangs,
  garbage,
  endless,
  redirects,
  identity,
};
