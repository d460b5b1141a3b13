/** E-mail addresses in a restricted form: without line breaks, a second recipient, or a % route to another mailbox. */
import { createHash } from 'node:crypto';

/** The signed text, which contains it, has at most 160 characters. */
export const MAX_MAILBOX = 100;

const LOCAL = /^[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*$/i;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Undefined if the mailbox is valid. */
export function mailboxFault(text: string): string | undefined {
  if (text.length > MAX_MAILBOX) return `must have at most ${MAX_MAILBOX} characters`;
  const [local = '', domain = '', ...more] = text.split('@');
  const labels = domain.split('.');
  const isDomain =
    labels.length >= 2 && labels.every((label) => LABEL.test(label)) && /[a-z]/i.test(labels.at(-1) ?? '');
  const isPlain = more.length === 0 && local.length <= 64 && LOCAL.test(local) && isDomain;
  return isPlain ? undefined : 'must be an e-mail address such as name@example.org';
}

/** Providers that ignore dots in a name; elsewhere a name with another dot is a different mailbox. */
const WITHOUT_DOTS = new Set(['gmail.com', 'proton.me', 'protonmail.com', 'pm.me']);
const SAME_DOMAIN: Readonly<Record<string, string>> = { 'googlemail.com': 'gmail.com' };

/**
 * A hash that is the same for all spellings of one mailbox: limits and refusals are counted by it, and the mailbox
 * cannot be read from it.
 */
export function mailboxKey(mailbox: string): string {
  const [local = '', given = ''] = mailbox.toLowerCase().split('@');
  const domain = SAME_DOMAIN[given] ?? given;
  const plain = local.split('+')[0] as string;
  const name = WITHOUT_DOTS.has(domain) ? plain.replaceAll('.', '') : plain;
  return createHash('sha256').update(`${name}@${domain}`).digest('hex');
}
