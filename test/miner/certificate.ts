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

/** The same key and name, valid in the year 2000 only. */
export const EXPIRED_CERTIFICATE = {
  key: TEST_CERTIFICATE.key,
  cert: `-----BEGIN CERTIFICATE-----
MIIBZTCCAQugAwIBAgIBAjAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwHhcNMDAwMTAxMDAwMDAwWhcNMDEwMTAxMDAwMDAwWjAUMRIwEAYDVQQDDAls
b2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATSxp9wvBkQWtX068dT
mBwx+m5+eBtxl+Xn0wCtQfCAO+Wu7+Re66+3SMv8MXikfNFhPPjvlpniYkWuMC5k
uxLqo04wTDAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwDwYDVR0TAQH/BAUw
AwEB/zAdBgNVHQ4EFgQUSKL7hwEUEPFMKrn/H66n6MGozBMwCgYIKoZIzj0EAwID
SAAwRQIgWj1zUY8zS3EJpjzvrTnYC5e0xK8B0hjg5W0nul7IXJECIQDg2yDHX7Q3
05AKCHN8GfBGNSicNbuJNIJ5V2n7om2VgQ==
-----END CERTIFICATE-----
`,
};

const fingerprint = (cert: string): string =>
  new X509Certificate(cert).fingerprint256.replaceAll(':', '').toLowerCase();

export const TEST_FINGERPRINT = fingerprint(TEST_CERTIFICATE.cert);
export const EXPIRED_FINGERPRINT = fingerprint(EXPIRED_CERTIFICATE.cert);
