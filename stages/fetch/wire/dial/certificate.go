package dial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"time"
)

// The faults of certificates in Peer.Certificate, separated by commas in this order if there are several.
const (
	expired     = "expired"
	notYetValid = "not_yet_valid"
	untrusted   = "untrusted"  // self-signed, or its chain is incomplete, or it cannot be verified for another reason
	otherName   = "other_name" // it is for other hosts
)

// clientTLS returns the settings of all handshakes. Servers that know only RSA key exchange, or 3DES, are
// reached too, because a crawler has no secret to lose by them; RC4 is left out.
func clientTLS(base *tls.Config, tolerant bool) *tls.Config {
	cfg := &tls.Config{}
	if base != nil {
		cfg = base.Clone()
	}
	cfg.NextProtos = []string{"http/1.1"}
	if cfg.MinVersion == 0 {
		cfg.MinVersion = tls.VersionTLS12
		if tolerant {
			cfg.MinVersion = tls.VersionTLS10
		}
	}
	if cfg.CipherSuites == nil {
		for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
			if !strings.Contains(s.Name, "_RC4_") {
				cfg.CipherSuites = append(cfg.CipherSuites, s.ID)
			}
		}
	}
	if cfg.ClientSessionCache == nil {
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1024)
	}
	return cfg
}

// handshake secures the connection. If it is tolerant, a certificate that is not valid does not end it, but is
// noted in the connection's Peer.
func (c *Conn) handshake(ctx context.Context, cfg *tls.Config, host string, tolerant bool) error {
	cfg = cfg.Clone()
	cfg.ServerName = strings.TrimSuffix(host, ".")
	if tolerant {
		cfg.InsecureSkipVerify = true // VerifyConnection verifies
		cfg.VerifyConnection = func(state tls.ConnectionState) (err error) {
			now := time.Now
			if cfg.Time != nil {
				now = cfg.Time
			}
			c.Certificate, err = faultsOf(state.PeerCertificates, cfg.RootCAs, cfg.ServerName, now())
			return err
		}
	}
	tc := tls.Client(c.Conn, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		return err
	}
	state := tc.ConnectionState()
	c.Conn, c.TLSVersion, c.TLSCipher = tc, tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite)
	return nil
}

// faultsOf returns what is wrong with a server's certificate, "" if it is valid. The error says that this machine
// cannot verify any.
func faultsOf(chain []*x509.Certificate, roots *x509.CertPool, host string, now time.Time) (string, error) {
	leaf := chain[0]
	opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, c := range chain[1:] {
		opts.Intermediates.AddCert(c)
	}
	var faults []string
	switch {
	case now.After(leaf.NotAfter):
		faults, opts.CurrentTime = append(faults, expired), leaf.NotAfter
	case now.Before(leaf.NotBefore):
		faults, opts.CurrentTime = append(faults, notYetValid), leaf.NotBefore
	}
	_, err := leaf.Verify(opts)
	if none, ok := errors.AsType[x509.SystemRootsError](err); ok {
		return "", none
	}
	named := leaf.VerifyHostname(host) == nil
	// Before subject alternative names, the common name was the name of the host.
	byCommonName := !named && len(leaf.DNSNames)+len(leaf.IPAddresses) == 0 && strings.EqualFold(leaf.Subject.CommonName, host)
	if err != nil || byCommonName {
		faults = append(faults, untrusted)
	}
	if !named && !byCommonName {
		faults = append(faults, otherName)
	}
	return strings.Join(faults, ","), nil
}
