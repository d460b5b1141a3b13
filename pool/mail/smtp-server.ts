/** The mail server that the operator names, read from a URL whose password is never shown. */

export type SmtpServer = {
  readonly host: string;
  readonly port: number;
  /** TLS from the start; without it STARTTLS. */
  readonly isSecure: boolean;
  readonly login: { readonly user: string; readonly pass: string } | undefined;
};

/** Error text for any other URL. */
export const SMTP_URL =
  'must be a URL such as smtp://user:password@mail.example:587 or smtps://mail.example, with %40 for an @ in the password';

const PORTS = { 'smtp:': 587, 'smtps:': 465 } as const;

/**
 * Undefined for anything else. Only one @ is allowed: the code that hides passwords elsewhere stops at the first one.
 */
export function readSmtpServer(text: string): SmtpServer | undefined {
  if (!/^[\x21-\x7e]+$/.test(text) || text.split('@').length > 2) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return undefined;
  const { protocol, hostname, port, username, password, pathname, search, hash } = url;
  if (!(protocol in PORTS) || hostname === '' || search !== '' || hash !== '' || !/^\/?$/.test(pathname))
    return undefined;
  if ((username === '') !== (password === '')) return undefined;
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? PORTS[protocol as keyof typeof PORTS] : Number(port),
    isSecure: protocol === 'smtps:',
    login: username === '' ? undefined : { user: decoded(username), pass: decoded(password) },
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
