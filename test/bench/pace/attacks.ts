/** What one of four validators, or a stranger beside them, does to slow the others down. Each begins on a running chain and returns how it ends. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { decodeBlockMessage, encodeBlockMessage } from '../../../node/consensus/driver/block-exchange.ts';
import { BLOCK_MESSAGE_TYPES, MESSAGE_TYPES } from '../../../node/consensus/link/message-types.ts';
import { developmentKey, TREASURY } from '../../../node/genesis/development.ts';
import {
  encodeBatch,
  encodeWaiting,
  encodeWires,
  MAX_WAITING,
  SALT_BYTES,
} from '../../../node/network/relay/relay-messages.ts';
import { type Bytes, toHex } from '../../../protocol/bytes.ts';
import { genesisOutpoint } from '../../../protocol/ledger/genesis.ts';
import {
  decodeTransaction,
  encodeTransaction,
  type Output,
  transactionIdOfWire,
} from '../../../protocol/transactions/transaction.ts';
import { falseEighths, PER_BLOCK } from '../../attack/costly-blocks.ts';
import { crumbledBlock, OverlayStranger, spoiledBlock } from '../../attack/overlay-stranger.ts';
import { haveAt } from '../../consensus/have-at.ts';
import { VALIDATORS, type ValidatorProcesses } from '../../consensus/processes.ts';
import { treasuryOutput } from '../../network/peers.ts';
import { RawPeer } from '../../network/raw-peer.ts';
import { payment } from '../../node/bed.ts';
import type { LyingMember } from './lying-member.ts';

export const LIAR = VALIDATORS - 1;
/** The one that restarts. */
const RESTARTED = LIAR - 1;
/** The one that gets genuine blocks, so that cuts name them. */
const SPARED = 0;
/** As many as a stranger may send. */
const OFFER_MILLIS = 5;
const HAVE_MILLIS = 20;
/** As many of the costliest blocks as a cut takes. */
export const BLOCKS_A_CUT = 4;
export const FUNDED = 1_500;
const FEEDERS = 3;
const FEED_MILLIS = 20;
const LONG_VALID = 2_000_000;
/** Transactions of eight inputs that an answer holds. */
const AN_ANSWER = 32;

export const FUND: readonly Output[] = Array.from({ length: FUNDED }, () => ({
  address: developmentKey(TREASURY).address,
  amount: 100_000_000n,
}));

export type PaceBed = {
  readonly processes: ValidatorProcesses;
  readonly liar: LyingMember;
  /** Of the first validator's peer-to-peer network. */
  readonly p2p: number;
  /** How many cuts the attack lasts. */
  readonly cuts: number;
  /** Called at each decision. */
  decided: (height: number) => void;
};

export type Attack = {
  readonly name: string;
  /** The attack that it is compared with, where not with a chain at rest: what an honest member does too. */
  readonly control?: string;
  /** Before it is measured. */
  readonly prepare?: (bed: PaceBed) => Promise<unknown>;
  begin(bed: PaceBed, prepared: unknown): Promise<() => void | Promise<void>>;
};

const overlayOf = ({ processes }: PaceBed, member: number): number =>
  processes.validators[member]?.ports.overlay as number;
const chainIdOf = ({ liar }: PaceBed): Bytes => liar.node.chain.chainId;
const others = [0, 1, 2] as const;

function lyingFor(bed: PaceBed, says: LyingMember['says']): () => void {
  bed.liar.says = says;
  return () => bed.liar.honest();
}

/** Strangers at each honest validator. */
function strangers(bed: PaceBed, hear: (member: number, bytes: Bytes, send: (bytes: Bytes) => void) => void) {
  const all = others.map((member) => {
    const stranger: OverlayStranger = new OverlayStranger(overlayOf(bed, member), chainIdOf(bed), (bytes) =>
      hear(member, bytes, (answer) => stranger.send(answer)),
    );
    return stranger;
  });
  return {
    tell: (bytes: Bytes) => {
      for (const stranger of all) stranger.send(bytes);
    },
    close: () => {
      for (const stranger of all) stranger.close();
    },
  };
}

async function restart({ processes }: PaceBed): Promise<void> {
  const victim = processes.validators[RESTARTED] as (typeof processes.validators)[number];
  await victim.end('SIGKILL');
  victim.start();
}

const silent: Attack = {
  name: 'silent',
  begin: async (bed) => lyingFor(bed, () => undefined),
};

/** It proposes and votes, and sends nobody what they ask for: blocks that it alone has are in its cuts. */
const unanswered: Attack = {
  name: 'unanswered',
  begin: async (bed) => {
    const dropped: readonly number[] = [BLOCK_MESSAGE_TYPES.block, MESSAGE_TYPES.finalized, MESSAGE_TYPES.proof];
    return lyingFor(bed, (bytes) => (dropped.includes(bytes[0] as number) ? undefined : bytes));
  },
};

const spoiledMember: Attack = {
  name: 'spoiled-member',
  begin: async (bed) =>
    lyingFor(bed, (bytes, to) => {
      const isSpared = bytes[0] !== BLOCK_MESSAGE_TYPES.block || bed.liar.isMember(to, SPARED);
      return isSpared ? bytes : spoiledBlock(bytes);
    }),
};

/** Of all neighbours it offers a new block first, and sends two of three another body. */
const spoilingStranger = (name: string, spoiled: (block: Bytes) => Bytes): Attack => ({
  name,
  begin: async (bed) => {
    const blocks = new Map<string, Bytes>();
    const { tell, close } = strangers(bed, (member, bytes, send) => {
      if (bytes[0] !== BLOCK_MESSAGE_TYPES.want) return;
      const message = decodeBlockMessage(bytes);
      for (const id of message?.type === 'want' ? message.ids : []) {
        const block = blocks.get(toHex(id));
        if (block !== undefined) send(member === SPARED ? block : spoiled(block));
      }
    });
    // The member who found it tells nobody, unless it is asked for what it proposes.
    bed.liar.says = (bytes) => (bytes[0] === BLOCK_MESSAGE_TYPES.offer ? undefined : bytes);
    bed.liar.found = ({ id, header, body }) => {
      blocks.set(toHex(id), encodeBlockMessage({ type: 'block', header, body }));
      tell(encodeBlockMessage({ type: 'offer', ids: [id] }));
    };
    return () => {
      bed.liar.honest();
      close();
    };
  },
});

const spoiledStranger = spoilingStranger('spoiled-stranger', spoiledBlock);
const crumbledStranger = spoilingStranger('crumbled-stranger', crumbledBlock);

/** Without end, and what is asked for never comes. */
const keptSlots: Attack = {
  name: 'kept-slots',
  begin: async (bed) => {
    const { tell, close } = strangers(bed, () => undefined);
    let newest: Bytes | undefined;
    bed.liar.found = ({ id }) => {
      newest = id;
    };
    const timer = setInterval(() => {
      if (newest !== undefined) tell(encodeBlockMessage({ type: 'offer', ids: [newest] }));
    }, OFFER_MILLIS);
    return () => {
      clearInterval(timer);
      bed.liar.honest();
      close();
    };
  },
};

/** It is far behind, and asks to be sent old cuts; it is far ahead, and has nothing to show for it. */
const falseHeights: Attack = {
  name: 'false-heights',
  begin: async (bed) => {
    const { liar } = bed;
    const { tell, close } = strangers(bed, () => undefined);
    let isAhead = false;
    const timer = setInterval(() => {
      isAhead = !isAhead;
      const claim = haveAt(isAhead ? liar.node.chain.head().height + 1_000 : 1);
      for (const peer of liar.transport.peers()) liar.send(peer, claim);
      tell(claim);
    }, HAVE_MILLIS);
    return () => {
      clearInterval(timer);
      close();
    };
  },
};

/** It is read until what it may send is used up, and each connection is a new one of the same member. */
const comesAgain: Attack = {
  name: 'comes-again',
  begin: async (bed) => {
    const file = fileURLToPath(new URL('./comes-again-process.ts', import.meta.url));
    const ports = others.map((member) => String(overlayOf(bed, member)));
    const words = [file, String(LIAR), toHex(chainIdOf(bed)), ...ports];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'inherit', 'inherit'] });
    return async () => {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await gone;
    };
  },
};

const restarted: Attack = {
  name: 'restart',
  begin: async (bed) => {
    await restart(bed);
    return () => undefined;
  },
};

/** It brings genuine final cuts before members do, is asked for their blocks, and sends other bodies. */
const spoiledRestart: Attack = {
  name: 'spoiled-restart',
  control: 'restart',
  begin: async (bed) => {
    const source = new OverlayStranger(overlayOf(bed, SPARED), chainIdOf(bed), (bytes) => {
      if (bytes[0] === MESSAGE_TYPES.finalized) target.send(bytes);
      if (bytes[0] === BLOCK_MESSAGE_TYPES.block) target.send(spoiledBlock(bytes));
    });
    const target = new OverlayStranger(overlayOf(bed, RESTARTED), chainIdOf(bed), (bytes) => {
      if (bytes[0] === MESSAGE_TYPES.have || bytes[0] === BLOCK_MESSAGE_TYPES.want) source.send(bytes);
    });
    await restart(bed);
    return () => {
      source.close();
      target.close();
    };
  },
};

/** A miner's blocks: seven good signatures and a false eighth, as many as a cut takes, for every cut. */
const falseSignatures: Attack = {
  name: 'false-signatures',
  prepare: async ({ liar, processes, cuts }) => {
    const { chain } = liar.node;
    // The key must be registered for witnesses that are short enough for so many in a block.
    await processes.mine([payment(chain, [treasuryOutput(chain, 63)], [], { validUntil: LONG_VALID })]);
    const spends = Array.from({ length: 8 }, (_, i) => treasuryOutput(chain, i));
    const blocks: Bytes[][] = [];
    for (let i = 0; i < cuts * BLOCKS_A_CUT; i++) {
      blocks.push(falseEighths(chain, spends, i * PER_BLOCK));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return blocks;
  },
  begin: async (bed, prepared) => {
    const blocks = [...(prepared as Bytes[][])];
    let isBusy = false;
    bed.decided = () => {
      if (isBusy) return;
      isBusy = true;
      void (async () => {
        for (const transactions of blocks.splice(0, BLOCKS_A_CUT)) await bed.processes.mine(transactions);
      })()
        .catch(() => undefined)
        .finally(() => {
          isBusy = false;
        });
    };
    return () => {
      bed.decided = () => undefined;
    };
  },
};

/** Peers of a relaying validator that announce one transaction at a time, all of them valid. */
const singleBatches: Attack = {
  name: 'single-batches',
  prepare: async ({ liar }) => {
    const { chain } = liar.node;
    const wires: Bytes[] = [];
    for (let i = 0; i < FUNDED; i++) {
      const output = {
        ...(chain.genesis.outputs[i] as Output),
        outpoint: genesisOutpoint(chain.chainId, i),
        source: 'genesis' as const,
      };
      wires.push(payment(chain, [output], [], { validUntil: LONG_VALID }));
      await new Promise((resolve) => setImmediate(resolve));
    }
    return wires;
  },
  begin: async (bed, prepared) => {
    const wires = prepared as Bytes[];
    const byId = new Map(wires.map((wire) => [toHex(transactionIdOfWire(wire)), wire]));
    const ids = wires.map((wire) => transactionIdOfWire(wire));
    const peers: RawPeer[] = [];
    for (let i = 0; i < FEEDERS; i++) {
      const peer = await RawPeer.open(chainIdOf(bed), {
        height: () => bed.liar.node.chain.head().height,
        relay: async (question) =>
          question.type === 'transactions' ? encodeWires(question.ids.map((id) => byId.get(toHex(id)))) : undefined,
      });
      await peer.join(`/ip4/127.0.0.1/tcp/${bed.p2p}`);
      peers.push(peer);
    }
    let next = 0;
    const timer = setInterval(() => {
      const id = ids[next++];
      if (id !== undefined)
        void peers[next % FEEDERS]
          ?.publish('transactions', encodeBatch(new Uint8Array(SALT_BYTES), [id]))
          .catch(() => undefined);
    }, FEED_MILLIS);
    return async () => {
      clearInterval(timer);
      await Promise.all(peers.map((peer) => peer.close()));
    };
  },
};

/** Peers of a relaying validator that say that thousands wait, and send transactions over outputs of others with signatures of something else: they sign nothing. */
const falseWaiting: Attack = {
  name: 'false-waiting',
  prepare: async ({ liar }) => {
    const { chain } = liar.node;
    const spends = Array.from({ length: 8 }, (_, i) => treasuryOutput(chain, i));
    const { body, witnesses } = decodeTransaction(payment(chain, spends, [], { validUntil: LONG_VALID }));
    const wires = Array.from(
      { length: FEEDERS * MAX_WAITING.transactions },
      (_, i) => () => encodeTransaction({ body: { ...body, validUntilHeight: LONG_VALID + 1 + i }, witnesses }),
    );
    const byId = new Map<string, () => Bytes>();
    const ids: Bytes[] = [];
    for (const wire of wires) {
      const id = transactionIdOfWire(wire());
      ids.push(id);
      byId.set(toHex(id), wire);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { byId, ids };
  },
  begin: async (bed, prepared) => {
    const { byId, ids } = prepared as { byId: Map<string, () => Bytes>; ids: Bytes[] };
    const peers: RawPeer[] = [];
    for (let i = 0; i < FEEDERS; i++) {
      const transactions = ids.slice(i * MAX_WAITING.transactions, (i + 1) * MAX_WAITING.transactions);
      const peer = await RawPeer.open(chainIdOf(bed), {
        height: () => bed.liar.node.chain.head().height,
        relay: async (question) => {
          if (question.type === 'waiting') return encodeWaiting({ transactions, blocks: [] });
          if (question.type !== 'transactions') return undefined;
          return encodeWires(question.ids.map((id, n) => (n < AN_ANSWER ? byId.get(toHex(id))?.() : undefined)));
        },
      });
      await peer.join(`/ip4/127.0.0.1/tcp/${bed.p2p}`);
      peers.push(peer);
    }
    return async () => {
      await Promise.all(peers.map((peer) => peer.close()));
    };
  },
};

export const ATTACKS: readonly Attack[] = [
  silent,
  unanswered,
  spoiledMember,
  spoiledStranger,
  crumbledStranger,
  keptSlots,
  falseHeights,
  comesAgain,
  restarted,
  spoiledRestart,
  falseSignatures,
  singleBatches,
  falseWaiting,
];
