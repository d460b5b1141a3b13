/** What the bare server writes: messages of a real session, taken from the vectors. */
import { v1 } from '../../protocol/stratum-vectors.ts';

const line = (name: string): string => {
  const found = v1.toMiner.find((each) => each.name === name);
  if (found === undefined) throw new Error(`vectors/stratum-v1.json has no '${name}'`);
  return `${found.text}\n`;
};

export const SUBSCRIBED = line('subscribed to a bridge');
export const AUTHORIZED = line('authorized');
export const ACCEPTED = line('share accepted');
export const JOB = line('job of a bridge');
