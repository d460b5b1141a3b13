/** A stranger at the overlay of a validator that restarts, between real processes: it brings genuine final cuts before any member does, is asked for their blocks, and sends other bodies. */
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { BLOCK_MESSAGE_TYPES, decodeBlockMessage, encodeBlockMessage } from '../../node/consensus/block-exchange.ts';
import { MESSAGE_TYPES } from '../../node/consensus/messages.ts';
import { FrameReader, MAX_FRAME_BYTES, TAG_BYTES } from '../../node/consensus/tcp-frames.ts';
import { developmentKey } from '../../node/development.ts';
import { decodeBody, encodeBody } from '../../protocol/body.ts';
import type { Bytes } from '../../protocol/bytes.ts';
import { chainId as chainIdOf, encodeGenesis } from '../../protocol/genesis.ts';
import { VALIDATORS, ValidatorProcesses } from '../consensus/processes.ts';
import { RawEnd } from '../consensus/raw-end.ts';
import { treasuryOutput } from '../network/peers.ts';
import { payment } from '../node/bed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';

const CUT_MILLIS = 400;
const BOB = developmentKey('bob').address;
const VICTIM = VALIDATORS - 1;
/** Once would be too few: a node that finds fault with a certified cut gets its blocks once more before it ends. */
const SPOILED = 3;
const RETRY_MILLIS = 50;

let running: ValidatorProcesses | undefined;
const sockets = new Set<Socket>();
let isOver = false;
afterEach(async () => {
  isOver = true;
  for (const socket of sockets) socket.destroy();
  await running?.close();
});

/** A connection of a stranger that comes again whenever it is ended. */
function dial(port: number, chainId: Bytes, hear: (bytes: Bytes) => void): { readonly send: (bytes: Bytes) => void } {
  let [end, socket] = [new RawEnd(chainId), newSocket(port)];
  const open = () => {
    const reader = new FrameReader();
    let isIdentified = false;
    socket.on('error', () => undefined);
    socket.on('data', (piece) => {
      for (const frame of reader.push(piece)) {
        if (!end.isMet) {
          socket.write(end.open(frame));
          reader.limit = MAX_FRAME_BYTES + TAG_BYTES;
        } else if (isIdentified) hear(end.read(frame));
        else {
          end.read(frame);
          isIdentified = true;
        }
      }
    });
    socket.on('close', () => {
      sockets.delete(socket);
      // It may not listen yet.
      setTimeout(() => {
        if (isOver) return;
        [end, socket] = [new RawEnd(chainId), newSocket(port)];
        open();
      }, RETRY_MILLIS);
    });
  };
  open();
  return { send: (bytes) => void (end.isMet && socket.write(end.frame(bytes))) };
}

function newSocket(port: number): Socket {
  const socket = connect({ host: '127.0.0.1', port });
  sockets.add(socket);
  return socket;
}

/** The transactions twice: what was once looked at before the root. */
function spoil(bytes: Bytes): Bytes {
  const message = decodeBlockMessage(bytes);
  if (message?.type !== 'block') return bytes;
  const body = decodeBody(message.body);
  const transactions = [...body.transactions, ...body.transactions];
  return encodeBlockMessage({ ...message, body: encodeBody({ ...body, transactions }) });
}

test(
  'a stranger that brings final cuts to a validator that restarts, and spoils their blocks, does not end it: members come, and it is at the head',
  lasts(300, 'validators start, and one starts again'),
  async () => {
    const processes = new ValidatorProcesses(temporaryDirectory());
    running = processes;
    await processes.prepare(CUT_MILLIS);
    const victim = processes.validators[VICTIM] as (typeof processes.validators)[0];
    const others = processes.all.filter((process) => process !== victim);
    for (const process of processes.all) process.start();
    await processes.reached(2);
    await victim.end('SIGKILL');
    const chainId = chainIdOf(encodeGenesis(processes.genesis));
    const chain = { genesis: processes.genesis, chainId, head: () => ({ height: 0 }) } as unknown as Parameters<
      typeof payment
    >[0] &
      Parameters<typeof treasuryOutput>[0];
    await processes.mine([payment(chain, [treasuryOutput(chain, 0)], [{ address: BOB, amount: 5n }])]);
    const mined = await processes.highest();
    // So much later that its cut is final: what the victim lacks has a block.
    await processes.reached(mined + 3, others);

    processes.part([VICTIM]);
    victim.start();
    let spoiled = 0;
    // It asks a validator in the victim's words, and hands on what it is told.
    const source = dial(processes.validators[0]?.ports.overlay as number, chainId, (bytes) => {
      if (bytes[0] === MESSAGE_TYPES.finalized) target.send(bytes);
      if (bytes[0] !== BLOCK_MESSAGE_TYPES.block) return;
      spoiled++;
      target.send(spoil(bytes));
    });
    const target = dial(victim.ports.overlay, chainId, (bytes) => {
      if (bytes[0] === MESSAGE_TYPES.have || bytes[0] === BLOCK_MESSAGE_TYPES.want) source.send(bytes);
    });
    // Its height is asked for: one that has ended by itself fails the test.
    await until(async () => (await victim.height()) >= 0 && spoiled >= SPOILED, { why: () => victim.output });
    processes.heal();
    const head = await processes.highest();
    await processes.reached(head + 1, [victim]);
    expect(victim.starts).toBe(2);
  },
);
