package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

// bareMachine is the environment variable that makes the test binary play a machine without
// certificates.
const bareMachine = "CRAWLBATCH_BARE_MACHINE"

// The container image contains only the binary, so the binary must contain the certificate authorities.
func TestOnABareMachineCertificateAuthoritiesAreTrusted(t *testing.T) {
	if os.Getenv(bareMachine) == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
		// Go finds no system certificates, because the folder in which it looks is empty, and the file does
		// not exist.
		none := t.TempDir()
		cmd.Env = append(os.Environ(), bareMachine+"=1", "SSL_CERT_DIR="+none, "SSL_CERT_FILE="+none+"/none")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if roots.Equal(x509.NewCertPool()) {
		t.Error("no certificate authority is trusted")
	}
}
