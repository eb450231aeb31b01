package docker

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	"ductor/cli"
)

// An engine that is started anew and lets its containers live: the turn goes on and nobody notices.
func TestEngineRestartsUnderATurn(t *testing.T) {
	t.Parallel()
	own := startEngine(t, "--live-restore")
	s := newSandbox(t, testOptions(t, own.connect()))
	p := s.ready(`sleep 3; echo after; cat; echo bye`)
	own.stop()
	own.start()
	line := make([]byte, 6)
	if _, err := io.ReadFull(p.Stdout(), line); err != nil || string(line) != "after\n" {
		t.Fatalf("after the engine's restart it says %q, %v", line, err)
	}
	if _, err := io.WriteString(p.Stdin(), "more\n"); err != nil {
		t.Error(err)
	}
	if err := p.Stdin().Close(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(p.Stdout())
	<-p.Done()
	if err != nil || string(rest) != "more\nbye\n" || p.Exit() != (cli.ExitStatus{}) {
		t.Errorf("then %q, %v, %+v", rest, err, p.Exit())
	}
	s.stop(p)
	s.works()
}

// A second engine, reached by TLS and by ssh, gets its image by save and load. It is lost, and the first one's
// conversations go on.
func TestSecondEngine(t *testing.T) {
	t.Parallel()
	first := needEngine(t)
	here := newSandbox(t, testOptions(t, first))
	here.works()
	certs := makeCerts(t)
	port := freePort(t)
	own := startEngine(t, "--host", fmt.Sprintf("tcp://127.0.0.1:%d", port), "--tlsverify",
		"--tlscacert", certs+"/ca.pem", "--tlscert", certs+"/server.pem", "--tlskey", certs+"/server-key.pem")
	tlsOptions := EngineOptions{
		Host: fmt.Sprintf("tcp://127.0.0.1:%d", port), CA: certs + "/ca.pem", Cert: certs + "/client.pem", Key: certs + "/client-key.pem",
	}
	t.Run("tls", func(t *testing.T) {
		second := connectTo(t, tlsOptions)
		o := here.o
		tag := o.Image
		for range 2 { // the second time there is nothing to do
			if err := first.Send(t.Context(), second, tag); err != nil {
				t.Fatal(err)
			}
		}
		o.Engine = second
		there := newSandbox(t, o)
		there.works()
		p := there.ready("cat")
		mine := here.ready("cat")
		own.stop()
		if _, err := io.ReadAll(p.Stdout()); err != nil {
			there.isFailure(err, "cannot be reached")
		}
		<-p.Done()
		_, err := there.Launcher.Start(t.Context(), shell(o, there.canary, "true"))
		there.isFailure(err, "cannot be reached")
		if _, err := io.WriteString(mine.Stdin(), "still here\n"); err != nil {
			t.Error(err)
		}
		line := make([]byte, 11)
		if _, err := io.ReadFull(mine.Stdout(), line); err != nil || string(line) != "still here\n" {
			t.Errorf("on the first engine %q, %v", line, err)
		}
		here.stop(mine)
		own.start()
		there.stop(p)
		there.works()
	})
	// An engine that ends in mid-turn ends what runs in it: the turn learns why, and the next one works when it is back.
	t.Run("ends in mid-turn", func(t *testing.T) {
		s := newSandbox(t, testOptions(t, own.connect()))
		p := s.ready(deaf)
		own.stop()
		_, err := io.ReadAll(p.Stdout())
		if err != nil { // else its supervisor had the time to say how it ended
			s.isFailure(err, "cannot be reached")
		}
		<-p.Done()
		_, err = s.Launcher.Start(t.Context(), shell(s.o, s.canary, "true"))
		s.isFailure(err, "cannot be reached", "start it")
		if s.Knows(time.Now().Add(time.Second)) {
			t.Error("it knows what it cannot ask")
		}
		own.start()
		s.stop(p)
		s.works()
	})
	t.Run("tls without our certificate", func(t *testing.T) {
		o := tlsOptions
		o.Cert, o.Key = "", ""
		if err := connectTo(t, o).Check(t.Context()); err == nil {
			t.Error("the engine let a stranger in")
		}
	})
	t.Run("ssh", func(t *testing.T) {
		host, config := startSSH(t)
		second := connectTo(t, EngineOptions{Host: "ssh://" + host + filepath.Join(own.dir, "sock"), SSHConfig: config})
		o := testOptions(t, second)
		there := newSandbox(t, o)
		there.works()
		p := there.ready(deaf)
		there.stop(p)
		there.works()
	})
	t.Run("ssh to nobody", func(t *testing.T) {
		err := connectTo(t, EngineOptions{Host: "ssh://127.0.0.1:1"}).Check(t.Context())
		here.in(t).isFailure(err, "cannot be reached", "ssh")
	})
}

func connectTo(t testing.TB, o EngineOptions) *Engine {
	t.Helper()
	e, err := Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// makeCerts makes an authority, and certificates of it for an engine and for us.
func makeCerts(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey := newKey(t)
	writeCert(t, dir, "ca", ca, ca, caKey, caKey)
	for i, name := range []string{"server", "client"} {
		cert := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
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
	write(t, filepath.Join(dir, name+".pem"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), 0o600)
	write(t, filepath.Join(dir, name+"-key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), 0o600)
}

// startSSH starts an ssh server on loopback for this very user, and gives its host and a configuration that gets in.
func startSSH(t testing.TB) (host, config string) {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(sshd); err != nil || os.Geteuid() != 0 {
		leaveOut(t, "an ssh server of the test's own needs sshd (Debian: openssh-server) and root")
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
	port := freePort(t)
	write(t, dir+"/sshd_config", fmt.Sprintf(`ListenAddress 127.0.0.1:%d
HostKey %[2]s/host
AuthorizedKeysFile %[2]s/mine.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin yes
`, port, dir), 0o600)
	config = dir + "/ssh_config"
	write(t, config, fmt.Sprintf("Host *\n  IdentityFile %s/mine\n  IdentitiesOnly yes\n  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n  LogLevel ERROR\n", dir), 0o600)
	server := exec.Command(sshd, "-D", "-e", "-f", dir+"/sshd_config")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // what it started for us ends with our connections
		_ = server.Wait()
	})
	host = fmt.Sprintf("%s@127.0.0.1:%d", me.Username, port)
	eventually(t, "the ssh server answers", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return host, config
}
