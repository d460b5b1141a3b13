/**
 * Facts of the specification, each with a check against running programs. These files know the specification's text and
 * import nothing of the project, so that another implementation can be held against them. Where the text shows no name
 * (fields of batch bodies), `unshown.ts` has it.
 */

/** Where the programs are. What is not given is not checked. */
export type Target = {
  readonly api: string;
  readonly mining?: string | undefined;
  readonly wallet?: string | undefined;
  readonly token?: string | undefined;
  /** HOST:PORT */
  readonly stratum?: string | undefined;
  readonly nodeMetrics?: string | undefined;
  readonly bridgeMetrics?: string | undefined;
  readonly minerMetrics?: string | undefined;
  readonly bridgeStats?: string | undefined;
  readonly minerStats?: string | undefined;
  readonly poolWeb?: string | undefined;
  /** An address of the network with coins, which the wallet holds. */
  readonly address?: string | undefined;
};

export type Fact = {
  readonly section: string;
  readonly fact: string;
  readonly check: (target: Target) => Promise<void>;
};

/** Thrown by a check that this target does not allow, with the reason. */
export class NotChecked extends Error {
  override readonly name = 'NotChecked';
}

export const needs = <T>(value: T | undefined, option: string): T => {
  if (value === undefined) throw new NotChecked(`needs ${option}`);
  return value;
};

export const factsOf = (section: string, checks: Readonly<Record<string, Fact['check']>>): Fact[] =>
  Object.entries(checks).map(([fact, check]) => ({ section, fact, check }));

export type Result = {
  readonly section: string;
  readonly fact: string;
  readonly state: 'kept' | 'differs' | 'not checked';
  readonly why?: string;
};

/** One after the other: a check may use up a limit of its client. */
export async function checkAll(facts: readonly Fact[], target: Target): Promise<Result[]> {
  const results: Result[] = [];
  for (const { section, fact, check } of facts) results.push({ section, fact, ...(await judged(check, target)) });
  return results;
}

async function judged(check: Fact['check'], target: Target): Promise<Pick<Result, 'state' | 'why'>> {
  try {
    await check(target);
    return { state: 'kept' };
  } catch (error) {
    const why = (error as Error).message.split('\n').slice(0, 12).join(' ').slice(0, 400);
    return { state: error instanceof NotChecked ? 'not checked' : 'differs', why };
  }
}
