/** Sends mails over SMTP, with nodemailer. It is loaded only if a mail server is configured. */
import { connect, isIP, type Socket } from 'node:net';
import { isLoopback } from '../../runtime/clients/client-address.ts';
import { BoundedConnection } from './bounded-connection.ts';
import type { MailText } from './mail-text.ts';
import type { Mailer, MailFailure } from './mailer.ts';
import type { SmtpServer } from './smtp-server.ts';

/** A server that does not answer delays only mails; still, the next attempt should be soon. */
const TIMEOUT_MILLIS = 15_000;
/** For a whole mail: a server can answer very slowly without end. */
const MAIL_MILLIS = 120_000;
/** A server's answers to one mail are a few hundred bytes, its certificates some thousand; endless lines would fill memory. */
const MOST_BYTES = 32_768;

type SmtpError = Error & {
  readonly code?: string;
  readonly command?: string;
  readonly responseCode?: number;
  readonly syscall?: string;
};

/** The class of a failure. */
export function failureOf({ message, code, command, responseCode = 0, syscall }: SmtpError): MailFailure {
  // A server's message may contain anything, also the mailbox: it is not logged.
  const reason = responseCode > 0 ? `status ${responseCode}` : (code ?? message);
  if (responseCode > 0 && (command === 'RCPT TO' || command === 'DATA'))
    return { kind: responseCode >= 500 ? 'mailbox' : 'later', reason };
  const isEarly = responseCode > 0 || EARLY_CODES.has(code ?? '') || EARLY_WORDS.has(message) || syscall === 'connect';
  return { kind: isEarly ? 'away' : 'unsure', reason };
}
/** Errors before any part of a mail is sent. */
const EARLY_CODES = new Set(['EAUTH', 'EDNS', 'ETLS']);
const EARLY_WORDS = new Set(['Greeting never received']);

const isHere = (host: string): boolean => host === 'localhost' || (isIP(host) !== 0 && isLoopback(host));

/** Loaded before the pool starts, so that a missing package is reported at once. The function opens a mailer. */
export async function loadSmtp(server: SmtpServer, from: string, mailMillis = MAIL_MILLIS): Promise<() => Mailer> {
  const { createTransport } = await import('nodemailer');
  return () => openMailer(createTransport, server, { from, mailMillis });
}

/** One-click (RFC 8058) is for https only. */
const stopHeaders = (stopUrl: string): Record<string, string> => ({
  'List-Unsubscribe': `<${stopUrl}>`,
  ...(stopUrl.startsWith('https:') ? { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' } : {}),
});

function openMailer(
  createTransport: typeof import('nodemailer').createTransport,
  server: SmtpServer,
  { from, mailMillis }: { readonly from: string; readonly mailMillis: number },
): Mailer {
  const { host, port, isSecure: secure, login } = server;
  // Connections are made here, so that they end with the pool however long the server takes.
  const connections = new Set<BoundedConnection>();
  const ends = new Set<(reason: string) => void>();
  let isClosed = false;
  const transport = createTransport({
    getSocket: (_, done) => {
      const socket = connect({ host, port, timeout: TIMEOUT_MILLIS });
      const connection = new BoundedConnection(socket, MOST_BYTES, () => {
        for (const stop of ends) stop('the server says too much');
      });
      connections.add(connection);
      connection.once('close', () => connections.delete(connection));
      const fail = (error: Error) => done(Object.assign(error, { syscall: 'connect' }));
      const tooLate = () => connection.destroy(new Error('no connection in time'));
      // One listener stays: a late error must not end the pool.
      connection.on('error', () => undefined);
      connection.once('error', fail).once('timeout', tooLate);
      socket.once('connect', () => {
        socket.setTimeout(0);
        connection.off('error', fail).off('timeout', tooLate);
        done(null, { connection: connection as unknown as Socket });
      });
    },
    host,
    port,
    secure,
    greetingTimeout: TIMEOUT_MILLIS,
    socketTimeout: TIMEOUT_MILLIS,
    disableFileAccess: true,
    disableUrlAccess: true,
    ...(login === undefined ? {} : { auth: login }),
    // A password is sent over TLS only; to a server of this machine nothing needs it.
    ...(isHere(host) ? { ignoreTLS: true } : { requireTLS: login !== undefined }),
  });
  const send = async (mailbox: string, { subject, text, stopUrl }: MailText): Promise<MailFailure | undefined> => {
    try {
      await transport.sendMail({
        // An object, so that the text is not parsed as a list of addresses.
        from: { name: '', address: from },
        to: { name: '', address: mailbox },
        envelope: { from, to: [mailbox] },
        subject,
        text,
        headers: { ...stopHeaders(stopUrl), 'Auto-Submitted': 'auto-generated' },
      });
      return undefined;
    } catch (error) {
      return failureOf(error as SmtpError);
    }
  };
  const destroyAll = () => {
    for (const connection of connections) connection.destroy();
  };
  return {
    send: async (mailbox, mail) => {
      if (isClosed) return { kind: 'away', reason: 'the pool stops' };
      const end = Promise.withResolvers<MailFailure>();
      const stop = (reason: string) => end.resolve({ kind: 'unsure', reason });
      const cutOff = (reason: string) => {
        stop(reason);
        // Mails are sent one at a time: these connections are this mail's.
        destroyAll();
      };
      const timer = setTimeout(cutOff, mailMillis, 'the server took too long');
      ends.add(stop);
      try {
        return await Promise.race([send(mailbox, mail), end.promise]);
      } finally {
        clearTimeout(timer);
        ends.delete(stop);
      }
    },
    close: () => {
      isClosed = true;
      for (const stop of ends) stop('the pool stops');
      destroyAll();
      transport.close();
    },
  };
}
