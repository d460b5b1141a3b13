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

/** A hash that is the same for all spellings that usually mean one mailbox; limits are counted by it. */
export function mailboxKey(mailbox: string): string {
  const [local = '', domain = ''] = mailbox.toLowerCase().split('@');
  const plain = (local.split('+')[0] as string).replaceAll('.', '');
  return createHash('sha256').update(`${plain}@${domain}`).digest('hex');
}
