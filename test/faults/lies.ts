/** What a lying node says, by name: each changes one thing and passes the rest on. */

import { newIdentity } from '../../node/api/identity.ts';
import { toHex } from '../../protocol/bytes.ts';
import { NETWORKS } from '../../protocol/network.ts';
import { datasetSeed } from '../../protocol/pow.ts';
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

/** Every block is said to pay the address that is told, whoever found it. */
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
        ...{ block_id: id, payout, header_hex: UNSENT_HEADER },
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
  endless,
  redirects,
  identity,
};
