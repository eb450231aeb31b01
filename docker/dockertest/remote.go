package dockertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
	"time"
)

// FreePort returns a free port of the loopback interface. It is below the kernel's ephemeral ports, so no connection
// takes it before a server listens.
func FreePort(t testing.TB) int {
	t.Helper()
	var last error
	for range 100 {
		port := 10_000 + mathrand.IntN(20_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if last = err; err == nil {
			_ = l.Close() // ignore an error: net.Listen has shown that the port is free
			return port
		}
	}
	t.Fatal(last)
	return 0
}

// Certs creates a certificate authority, and certificates for an engine and a client. It returns the directory with the
// files ca.pem, server.pem, server-key.pem, client.pem and client-key.pem.
func Certs(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey := newKey(t)
	writeCert(t, dir, "ca", ca, ca, caKey, caKey)
	for i, name := range []string{"server", "client"} {
		cert := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name}, NotBefore: ca.NotBefore,
			NotAfter:    ca.NotAfter,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		writeCert(t, dir, name, cert, ca, newKey(t), caKey)
	}
	return dir
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writeCert(t testing.TB, dir, name string, cert, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, filepath.Join(dir, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		0o600)
	Write(t, filepath.Join(dir, name+"-key.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), 0o600)
}

// SSH starts an ssh server on the loopback interface for the current user. It returns the address, user@127.0.0.1:port,
// and the path of an ssh configuration for it. It needs root.
func SSH(t testing.TB) (host, config string) {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(sshd); err != nil || os.Geteuid() != 0 {
		LeaveOut(t, "an ssh server of the test's own needs sshd (Debian: openssh-server) and root")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"host", "mine"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	port := FreePort(t)
	Write(t, dir+"/sshd_config", fmt.Sprintf(`ListenAddress 127.0.0.1:%d
HostKey %[2]s/host
AuthorizedKeysFile %[2]s/mine.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin yes
`, port, dir), 0o600)
	config = dir + "/ssh_config"
	Write(t, config, fmt.Sprintf("Host *\n  IdentityFile %s/mine\n  IdentitiesOnly yes\n  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n  LogLevel ERROR\n", dir), 0o600)
	server := exec.Command(sshd, "-D", "-e", "-f", dir+"/sshd_config")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // its child processes end when the connections end
		_ = server.Wait()
	})
	host = fmt.Sprintf("%s@127.0.0.1:%d", me.Username, port)
	Eventually(t, "the ssh server answers", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return host, config
}
