/** Recorded sessions of both wires: what a miner of a release sends is read by the present server, and what its server sends by the present miner. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bytes, concat, fromHex, toHex } from '../../protocol/bytes.ts';
import { FrameSplitter, readFrame } from '../../protocol/stratum/frame.ts';
import { decodeServerMessage } from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest, type Method, type RequestId } from '../../protocol/stratum/v1-request.ts';
import { decodeClientFrame, decodeServerFrame } from '../../protocol/stratum/v2.ts';
import { deskBed } from '../bridge/desk-bed.ts';
import { DeskFarm } from '../bridge/desk-farm.ts';
import { DeskMiner } from '../bridge/desk-miner.ts';
import { type Fixture, plain } from './fixture.ts';

/** `> hex` is what the miner sent, `< hex` what the server sent; one message a line. */
type Line = { readonly from: 'miner' | 'server'; readonly bytes: Bytes };
const FILE = 'session';

const write = (folder: string, lines: readonly Line[]): void =>
  writeFileSync(
    join(folder, FILE),
    lines.map(({ from, bytes }) => `${from === 'miner' ? '>' : '<'} ${toHex(bytes)}\n`).join(''),
  );

const read = (folder: string): Line[] =>
  readFileSync(join(folder, FILE), 'latin1')
    .trimEnd()
    .split('\n')
    .map((line) => ({ from: line.startsWith('>') ? 'miner' : 'server', bytes: fromHex(line.slice(2)) }));

type Recorded = Pick<DeskMiner | DeskFarm, 'conversation' | 'peer'>;

/** Puts what is sent into the list, and what was answered when it is asked for. */
function record({ conversation, peer }: Recorded, split: (bytes: Bytes) => Bytes[]): () => Line[] {
  const lines: Line[] = [];
  let answered = 0;
  const take = (): Line[] => {
    const bytes = concat(...peer.written.slice(answered));
    answered = peer.written.length;
    for (const each of split(bytes)) lines.push({ from: 'server', bytes: each });
    return lines;
  };
  const receive = conversation.receive.bind(conversation);
  conversation.receive = (bytes) => {
    take();
    for (const each of split(bytes)) lines.push({ from: 'miner', bytes: each });
    return receive(bytes);
  };
  return take;
}

const linesOf = (bytes: Bytes): Bytes[] =>
  Buffer.from(bytes)
    .toString('latin1')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Buffer.from(line, 'latin1'));

function framesOf(bytes: Bytes): Bytes[] {
  const frames: Bytes[] = [];
  new FrameSplitter().push(bytes, (type, payload) => {
    frames.push(Uint8Array.of(payload.length & 0xff, payload.length >> 8, type, ...payload));
    return true;
  });
  return frames;
}

const v1: Fixture = {
  name: 'stratum-v1',
  async write(folder) {
    const bed = await deskBed();
    const miner = new DeskMiner(bed);
    const lines = record(miner, linesOf);
    await miner.login();
    const [job] = miner.jobs;
    if (job === undefined) throw new Error('no job');
    await miner.hit(job);
    await miner.hit({ jobId: job.jobId + 7 });
    await bed.publish(1_001);
    await bed.settle();
    write(folder, lines());
    miner.end();
  },
  async read(folder) {
    const methods = new Map<RequestId, Method>();
    return plain(
      read(folder).map(({ from, bytes }) => {
        if (from === 'server') return decodeServerMessage(bytes, (id) => methods.get(id));
        const request = decodeRequest(bytes);
        if (request.kind === 'request') methods.set(request.id, request.method);
        return request;
      }),
    );
  },
};

const v2: Fixture = {
  name: 'stratum-v2',
  async write(folder) {
    const bed = await deskBed();
    const farm = new DeskFarm(bed);
    const lines = record(farm, framesOf);
    await farm.begin(['first', 'second']);
    await farm.submit(farm.job.firstGeneration);
    await farm.submit(farm.job.firstGeneration, { rig: 5 });
    await farm.send({ type: 'ping', value: 7n });
    await bed.publish(1_001);
    await farm.send();
    write(folder, lines());
  },
  async read(folder) {
    return plain(
      read(folder).map(({ from, bytes }) =>
        from === 'miner' ? decodeClientFrame(readFrame(bytes)) : decodeServerFrame(readFrame(bytes)),
      ),
    );
  },
};

export const STRATUM_FIXTURES: readonly Fixture[] = [v1, v2];
