/**
 * The miner of this tab. It belongs to the tab and not to a page: it keeps running while other pages of the site are
 * open, and ends with its switch or with the tab.
 */
import { useEffect, useState } from 'preact/hooks';
import { PageMiner, type PageMinerOptions, type PageMinerStats } from '../../miner/browser/page-miner.ts';
import type { Point } from '../chart/chart-points.ts';
import { isPaused } from '../data/pause.ts';
import {
  type Circumstances,
  claimMining,
  type Decision,
  mayMine,
  type Wishes,
  watchCircumstances,
  whyNot,
} from './consent.ts';
import { tellMining } from './mining-state.ts';
import { withPoint } from './rate-points.ts';

export type SessionSummary = {
  readonly seconds: number;
  readonly accepted: number;
  readonly stale: number;
  readonly rejected: number;
};

export type SessionView = {
  /** Between the two presses of the button. */
  readonly wanted: boolean;
  readonly decision: Decision;
  readonly stats: PageMinerStats | undefined;
  readonly problem: string | undefined;
  readonly points: readonly Point[];
  /** Statistics of the last session. */
  readonly summary: SessionSummary | undefined;
};

class MiningSession {
  #around: Omit<Circumstances, 'wanted'> = { hidden: document.hidden, onBattery: false, otherTab: false };
  #wishes: Wishes = { whenHidden: false, onBattery: false };
  #wanted = false;
  #stats: PageMinerStats | undefined;
  #problem: string | undefined;
  #points: readonly Point[] = [];
  #summary: SessionSummary | undefined;
  #began = 0;
  #miner: PageMiner | undefined;
  #release: (() => void) | undefined;
  #isClaiming = false;
  readonly #listeners = new Set<(view: SessionView) => void>();

  constructor() {
    watchCircumstances((now) => {
      this.#around = { ...now, otherTab: this.#around.otherTab };
      this.#decide();
    });
  }

  get #decision(): Decision {
    return mayMine({ ...this.#around, wanted: this.#wanted }, this.#wishes);
  }

  get view(): SessionView {
    return {
      wanted: this.#wanted,
      decision: this.#decision,
      stats: this.#stats,
      problem: this.#problem,
      points: this.#points,
      summary: this.#summary,
    };
  }

  listen(listener: (view: SessionView) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #tell(): void {
    const { view } = this;
    for (const listener of this.#listeners) listener(view);
    const { decision, stats } = view;
    tellMining(
      this.#wanted
        ? {
            hashRate: stats?.rates.short ?? 0,
            accepted: stats?.accepted ?? 0,
            resting: decision.mine ? undefined : whyNot(decision.why),
            stop: () => this.stop(),
          }
        : undefined,
    );
  }

  #decide(): void {
    if (this.#decision.mine) this.#miner?.resume();
    else this.#miner?.pause();
    this.#tell();
  }

  setWishes(wishes: Wishes): void {
    this.#wishes = wishes;
    this.#decide();
  }

  setThrottle(throttle: number): void {
    this.#miner?.setThrottle(throttle);
  }

  async start(options: PageMinerOptions): Promise<void> {
    // A second press while the slot is asked for would be refused it, and the slot of the first would never be given back.
    if (this.#release !== undefined || this.#isClaiming) return;
    this.#problem = undefined;
    this.#isClaiming = true;
    this.#release = await claimMining();
    this.#isClaiming = false;
    this.#around = { ...this.#around, otherTab: this.#release === undefined };
    if (this.#release === undefined) {
      this.#problem = whyNot('other_tab');
      return this.#tell();
    }
    this.#points = [];
    this.#summary = undefined;
    this.#stats = undefined;
    this.#began = performance.now();
    const miner = new PageMiner();
    this.#miner = miner;
    miner.onStats = (now) => {
      const old = this.#stats;
      const isNews =
        old === undefined ||
        now.problem !== old.problem ||
        now.notice !== old.notice ||
        now.books?.alarms.length !== old.books?.alarms.length;
      this.#stats = now;
      this.#points = withPoint(this.#points, { at_millis: Date.now(), value: now.rates.short ?? null });
      if (isNews || !isPaused()) this.#tell();
    };
    try {
      await miner.start(options);
      this.#wanted = true;
    } catch (error) {
      this.#problem = (error as Error).message;
      this.#end();
    }
    this.#decide();
  }

  async stop(): Promise<void> {
    if (!this.#wanted) return;
    this.#wanted = false;
    const { accepted = 0, stale = 0, rejected = 0 } = this.#stats ?? {};
    this.#summary = { seconds: (performance.now() - this.#began) / 1_000, accepted, stale, rejected };
    this.#tell();
    await this.#miner?.stop();
    this.#end();
  }

  #end(): void {
    this.#miner = undefined;
    this.#release?.();
    this.#release = undefined;
  }
}

let session: MiningSession | undefined;

export const miningSession = (): MiningSession => {
  session ??= new MiningSession();
  return session;
};

export function useMiningSession(): SessionView {
  const [view, setView] = useState(() => miningSession().view);
  useEffect(() => {
    setView(miningSession().view);
    return miningSession().listen(setView);
  }, []);
  return view;
}
