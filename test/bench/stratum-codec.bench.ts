/** How fast a server reads submits, answers them and writes jobs, in both wire forms. */
import { concat, fromHex, utf8 } from '../../protocol/bytes.ts';
import { targetToBytes } from '../../protocol/ledger/target.ts';
import { FrameSplitter } from '../../protocol/stratum/frame.ts';
import { JobFrameTemplate, NotifyTemplate } from '../../protocol/stratum/job-template.ts';
import { LineSplitter } from '../../protocol/stratum/line.ts';
import { encodeAccepted, encodeNotification, encodeResult } from '../../protocol/stratum/v1-answer.ts';
import { decodeRequest } from '../../protocol/stratum/v1-request.ts';
import { decodeClientFrame, encodeServerFrame } from '../../protocol/stratum/v2.ts';
import { v1, v2 } from '../protocol/stratum-vectors.ts';
import { bench, rates } from './harness.ts';

/** Messages in one chunk, as a busy socket delivers them. */
const BATCH = 20;

const submitText = v1.toServer.find(({ name }) => name === 'submit a share')!.text;
const submitFrame = fromHex(v2.toServer.find(({ name }) => name === 'submit a share')!.hex);
const otherSpelling = utf8(v1.toServerSpellings[0]!.text);
const sample = v2.toMiner.find(({ name }) => name === 'job of a bridge')!.value;
if (sample.type !== 'job') throw new Error('vectors/stratum-v2.json has no job');
const { job } = sample;
const part = { ...job, rewardRoot: job.header.slice(176, 224), shareTarget: targetToBytes(job.shareTarget) };

export default bench('stratum messages: submits read, answers and jobs written', async (b) => {
  const lines = concat(...Array.from({ length: BATCH }, () => utf8(`${submitText}\n`)));
  const frames = concat(...Array.from({ length: BATCH }, () => submitFrame));
  const line = utf8(submitText);
  const decoder = new TextDecoder();
  const lineSplitter = new LineSplitter();
  const frameSplitter = new FrameSplitter();
  const notify = new NotifyTemplate(job);
  const frame = new JobFrameTemplate(job);
  const measured = await rates({
    parse: () => JSON.parse(decoder.decode(line)),
    v1Submit: () => decodeRequest(line),
    v1OtherSpelling: () => decodeRequest(otherSpelling),
    v1Stream: () => lineSplitter.push(lines, (each) => decodeRequest(each).kind === 'request'),
    v2Stream: () =>
      frameSplitter.push(frames, (type, payload) => decodeClientFrame({ type, payload }).type === 'submit'),
    v1Accepted: () => encodeAccepted(3, 16n),
    v1Result: () => encodeResult(3, { method: 'mining.submit', result: { work: 16n, blockId: null } }),
    v1Job: () => notify.fill(part),
    v1JobPlain: () => encodeNotification({ method: 'mining.notify', params: job }),
    v2Job: () => frame.fill(part),
    v2JobPlain: () => encodeServerFrame({ type: 'job', job }),
  });
  const against = (value: number, base: number, yardstick: string) => ({ ratio: value / base, yardstick });
  const parse = 'JSON.parse of the same line, nothing checked';
  b.figure('v1-submit-read', measured.v1Submit, 'msg/s', against(measured.v1Submit, measured.parse, parse));
  b.figure(
    'v1-submit-read-any-spelling',
    measured.v1OtherSpelling,
    'msg/s',
    against(measured.v1OtherSpelling, measured.parse, parse),
  );
  b.figure('v1-stream-read', measured.v1Stream * BATCH, 'msg/s');
  b.figure('v2-stream-read', measured.v2Stream * BATCH, 'msg/s');
  b.figure(
    'v1-accepted-write',
    measured.v1Accepted,
    'msg/s',
    against(measured.v1Accepted, measured.v1Result, 'the general encoder'),
  );
  b.figure(
    'v1-job-write',
    measured.v1Job,
    'msg/s',
    against(measured.v1Job, measured.v1JobPlain, 'the general encoder'),
  );
  b.figure(
    'v2-job-write',
    measured.v2Job,
    'msg/s',
    against(measured.v2Job, measured.v2JobPlain, 'the general encoder'),
  );
});
