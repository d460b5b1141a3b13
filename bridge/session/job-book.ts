/**
 * Job ids and the templates behind them. A job id is `template serial << 6 | revision`: the template is shared by everyone,
 * and revisions are a session's further jobs on it, each with a body of its own (job-log.ts).
 *
 * A job stays good until its window closes or `graceMillis` after a newer template superseded its own, whichever is
 * first: miners go on while the node is away. For `memoryMillis` more it is known as expired, since a late share may still
 * be a block.
 */
const REVISION_BITS = 6;
export const MAX_REVISION = (1 << REVISION_BITS) - 1;
export const MAX_SERIAL = 2 ** (32 - REVISION_BITS) - 1;

export const jobIdOf = (serial: number, revision: number): number => serial * (MAX_REVISION + 1) + revision;
export const serialOf = (jobId: number): number => Math.floor(jobId / (MAX_REVISION + 1));
export const revisionOf = (jobId: number): number => jobId % (MAX_REVISION + 1);

export type JobLife = {
  readonly graceMillis: number;
  readonly memoryMillis: number;
};
export const JOB_LIFE_DEFAULTS: JobLife = { graceMillis: 30_000, memoryMillis: 120_000 };

export interface JobTemplate {
  readonly registrationWindowEnd: number;
}

type Shelved<T> = { readonly template: T; supersededAtMillis: number | undefined };

export type TemplateLookup<T> =
  | { readonly state: 'good' | 'expired'; readonly template: T }
  | { readonly state: 'unknown' };

/** The templates of a listener thread by serial, oldest first. */
export class TemplateShelf<T extends JobTemplate> {
  readonly #life: JobLife;
  readonly #shelf = new Map<number, Shelved<T>>();

  constructor(life: JobLife) {
    this.#life = life;
  }

  /** Puts the templates of one moment on the shelf (the draws of a cut) and supersedes all older ones, or these of them. */
  add(templates: ReadonlyMap<number, T>, nowMillis: number, supersedes: (older: T) => boolean = () => true): void {
    for (const [serial, shelved] of this.#shelf) {
      if (supersedes(shelved.template)) shelved.supersededAtMillis ??= nowMillis;
      if (nowMillis - (shelved.supersededAtMillis ?? nowMillis) > this.#life.graceMillis + this.#life.memoryMillis)
        this.#shelf.delete(serial);
    }
    for (const [serial, template] of templates) this.#shelf.set(serial, { template, supersededAtMillis: undefined });
  }

  /** The oldest serial still known: sessions forget what lies before it. */
  get oldest(): number {
    for (const serial of this.#shelf.keys()) return serial;
    return 0;
  }

  find(serial: number, headHeight: number, nowMillis: number): TemplateLookup<T> {
    const shelved = this.#shelf.get(serial);
    if (shelved === undefined) return { state: 'unknown' };
    const { template, supersededAtMillis } = shelved;
    const late = supersededAtMillis !== undefined && nowMillis - supersededAtMillis > this.#life.graceMillis;
    return { state: late || headHeight >= template.registrationWindowEnd ? 'expired' : 'good', template };
  }

  clear(drops: (template: T) => boolean): void {
    for (const [serial, { template }] of this.#shelf) if (drops(template)) this.#shelf.delete(serial);
  }
}
