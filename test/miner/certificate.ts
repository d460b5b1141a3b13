/** A self-signed certificate for localhost and its key, for tests only; valid from 2000 to 2099 so that no clock matters. */
import { X509Certificate } from 'node:crypto';

export const TEST_CERTIFICATE = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg6FhQO3QfDaDa2NJa
A5Ze5OdAm7qDMlgGMkBN1zd9KaOhRANCAATSxp9wvBkQWtX068dTmBwx+m5+eBtx
l+Xn0wCtQfCAO+Wu7+Re66+3SMv8MXikfNFhPPjvlpniYkWuMC5kuxLq
-----END PRIVATE KEY-----
`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBRzCB7qADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCWxvY2FsaG9z
dDAgFw0wMDAxMDEwMDAwMDBaGA8yMDk5MDEwMTAwMDAwMFowFDESMBAGA1UEAwwJ
bG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE0safcLwZEFrV9OvH
U5gcMfpufngbcZfl59MArUHwgDvlru/kXuuvt0jL/DF4pHzRYTz475aZ4mJFrjAu
ZLsS6qMvMC0wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgDsPSeV8Hdtq4sSA3ng7IUlSByM/J3T7a
AfTiygZj8XUCIQDdOI35zceRle97fcQaYnzfP5zmF2XZRrv4tfHEsACrmQ==
-----END CERTIFICATE-----
`,
};

export const TEST_FINGERPRINT = new X509Certificate(TEST_CERTIFICATE.cert).fingerprint256
  .replaceAll(':', '')
  .toLowerCase();
