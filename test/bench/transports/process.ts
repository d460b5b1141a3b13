/**
 * One side of the measurement, as a process: the measured member (`hub`) or all others (`others`). Each turn every member sends one vote, and two blocks go each way. The hub with libp2p runs it as the
 * node does, in a thread of its own, with each message handed over.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { Bytes } from '../../../protocol/bytes.ts';
import { libp2pLine } from './libp2p-line.ts';
import { ageOf, kindOf, type Line, stamped, type Take } from './line.ts';
import { ownLine } from './own-line.ts';

export type Side = {
  readonly transport: 'own' | 'libp2p' | 'libp2p-thread';
  readonly role: 'hub' | 'others';
  readonly members: number;
  readonly port: number;
  readonly turns: number;
  readonly turnMillis: number;
  readonly blockBytes: number;
};

/** Of a vote: 3,309 bytes of signature and what it is about. */
const VOTE_BYTES = 3_420;
const BLOCKS_A_TURN = 2;

type FromThread = { readonly ends: number } | { readonly bytes: Bytes };

async function threadLine(side: Side, take: Take): Promise<Line> {
  const worker = new Worker(new URL(import.meta.url), { workerData: side });
  let ends = 0;
  worker.on('message', (message: FromThread) => {
    if ('ends' in message) ends = message.ends;
    else take(message.bytes);
  });
  // The first message comes when it listens.
  await once(worker, 'message');
  return {
    ends: () => ends,
    send: (bytes, kind, end) => worker.postMessage({ bytes, kind, end }),
    close: async () => void (await worker.terminate()),
  };
}

const openHub = (side: Side, take: Take): Promise<Line> => {
  const listen = { host: '127.0.0.1', port: side.port };
  if (side.transport === 'own') return ownLine(0, side.members, { listen }, take);
  return side.transport === 'libp2p' ? libp2pLine(0, { listen }, take) : threadLine(side, take);
};

async function openOther(side: Side, member: number, take: Take): Promise<Line> {
  const dial = { host: '127.0.0.1', port: side.port };
  return side.transport === 'own' ? ownLine(member, side.members, { dial }, take) : libp2pLine(member, { dial }, take);
}

async function run(side: Side): Promise<void> {
  const ages: Record<'vote' | 'block', number[]> = { vote: [], block: [] };
  let isMeasured = false;
  const take: Take = (bytes) => {
    if (isMeasured && bytes.length > 16) ages[kindOf(bytes)].push(ageOf(bytes));
  };
  const wanted = side.members - 1;
  const lines: Line[] = [];
  if (side.role === 'hub') {
    lines.push(await openHub(side, take));
    process.send?.('listening');
  }
  if (side.role === 'others')
    for (let member = 1; member <= wanted; member++) lines.push(await openOther(side, member, take));
  const isReady = () => lines.reduce((sum, line) => sum + line.ends(), 0) >= wanted;
  while (!isReady()) await sleep(20);
  process.send?.('ready');
  await once(process, 'message');
  isMeasured = true;
  const before = process.cpuUsage();
  for (let turn = 0; turn < side.turns; turn++) {
    const next = sleep(side.turnMillis);
    for (let i = 0; i < BLOCKS_A_TURN && side.blockBytes > 0; i++) {
      const end = (turn * BLOCKS_A_TURN + i) % wanted;
      const block = stamped('block', side.blockBytes);
      if (side.role === 'hub') lines[0]?.send(block, 'block', end);
      else lines[end]?.send(block, 'block', 0);
    }
    for (const line of lines) line.send(stamped('vote', VOTE_BYTES), 'vote');
    await next;
  }
  await sleep(1_000);
  const { user, system } = process.cpuUsage(before);
  process.send?.({ ...ages, processorMillis: (user + system) / 1_000 });
  for (const line of lines) await line.close();
  process.disconnect?.();
}

if (isMainThread) {
  process.once('message', (side: Side) => void run(side));
} else {
  const side = workerData as Side;
  const port = parentPort as NonNullable<typeof parentPort>;
  const line = await libp2pLine(0, { listen: { host: '127.0.0.1', port: side.port } }, (bytes) =>
    port.postMessage({ bytes }),
  );
  const tell = setInterval(() => port.postMessage({ ends: line.ends() }), 50);
  tell.unref();
  port.on('message', ({ bytes, kind, end }: { bytes: Bytes; kind: 'vote' | 'block'; end?: number }) =>
    line.send(bytes, kind, end),
  );
}
