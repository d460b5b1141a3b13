/**
 * The holes that the credit test is there for, put back for the length of a test: it must find them. Both change what the
 * running server does and nothing else.
 */
import { Bodies, type Body } from '../../../bridge/session/bodies.ts';
import { serialOf } from '../../../bridge/session/job-book.ts';
import { JobLog, type Terms } from '../../../bridge/session/job-log.ts';
import { type Bytes, toHex } from '../../../protocol/bytes.ts';

/** Any id of a template that was sent is taken, and a nonce counts once per id. */
export function judgeByJobId(): () => void {
  const { find, judge } = JobLog.prototype;
  const asked = new WeakMap<JobLog, number>();
  const judged = new WeakMap<JobLog, Set<string>>();
  JobLog.prototype.find = function (this: JobLog, jobId: number): Terms | undefined {
    asked.set(this, jobId);
    for (let revision = jobId; serialOf(revision) === serialOf(jobId); revision--) {
      const terms = find.call(this, revision);
      if (terms !== undefined) return terms;
    }
    return undefined;
  };
  JobLog.prototype.judge = function (this: JobLog, _terms: Terms, _serial: number, nonce: Bytes) {
    const seen = judged.get(this) ?? new Set();
    judged.set(this, seen);
    const key = `${asked.get(this)} ${toHex(nonce)}`;
    if (seen.has(key)) return 'again';
    seen.add(key);
    return 'fresh';
  };
  return () => Object.assign(JobLog.prototype, { find, judge });
}

/** A farm job takes every generation from its first on, also those of a later one, and each job has a price and a memory of its own. */
export function anyGenerationOfAFarm(): () => void {
  const { ofGeneration } = JobLog.prototype;
  JobLog.prototype.ofGeneration = function (this: JobLog, job: Terms, generation: number): Terms | undefined {
    const { shareWork, owner, farm } = job;
    const fresh = { generation, shareWork, isSpent: false, seen: undefined, owner, farm: null };
    return farm?.bodies.get(generation) ?? fresh;
  };
  return () => Object.assign(JobLog.prototype, { ofGeneration });
}

/** Another share work goes out on the same header, under another id; a nonce still counts once per header. For one instance. */
export function sameHeaderForAnotherWork(): () => void {
  const { forJob, find } = Bodies.prototype;
  const { judge } = JobLog.prototype;
  const roots = new Map<string, Body>();
  const bodies = new Map<string, Body>();
  const judged = new Set<string>();
  Bodies.prototype.forJob = function (this: Bodies, owner, shareWork, on) {
    const [name, isSpent] = [toHex(owner.owner), this.current.terms.isSpent];
    const fresh = forJob.call(this, owner, shareWork, on);
    const { extranonce, rewardRoot } = (isSpent ? undefined : roots.get(name)) ?? fresh;
    this.current = { terms: fresh.terms, extranonce, rewardRoot, named: null };
    roots.set(name, this.current);
    bodies.set(`${name} ${fresh.terms.generation}`, this.current);
    return this.current;
  };
  Bodies.prototype.find = function (this: Bodies, owner, terms) {
    return bodies.get(`${toHex(owner.owner)} ${terms.generation}`) ?? find.call(this, owner, terms);
  };
  JobLog.prototype.judge = function (this: JobLog, _terms: Terms, serial: number, nonce: Bytes) {
    // The prefix in the nonce is the session's.
    const key = `${serial} ${toHex(nonce)}`;
    if (judged.has(key)) return 'again';
    judged.add(key);
    return 'fresh';
  };
  return () => {
    Object.assign(Bodies.prototype, { forJob, find });
    Object.assign(JobLog.prototype, { judge });
  };
}
