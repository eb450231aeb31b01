package docker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// DefaultHost is the default address of an engine.
const DefaultHost = client.DefaultDockerHost

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 15 * time.Second
)

// EngineOptions configures the connection to an engine. The zero value means the local engine.
type EngineOptions struct {
	// Host is unix:///path, tcp://host:port or ssh://[user@]host[:port][/path/of/socket]. For ssh, ductor runs this
	// machine's ssh program with the user's configuration and keys. ssh must not need to ask for a password. The remote
	// machine must have the docker program.
	Host string `toml:"host"`
	// CA, Cert and Key are PEM files for tcp. CA verifies the engine's certificate. Cert and Key are ductor's own
	// certificate. Without these files, the connection is not encrypted.
	CA   string `toml:"ca" check:"path"`
	Cert string `toml:"cert" check:"path"`
	Key  string `toml:"key" check:"path"`
	// Wait limits how long the engine may take for a short request. Long operations may take a multiple of this time. 0
	// means 20 s.
	Wait time.Duration
	// SSHConfig is a file that ssh uses instead of the user's configuration. It may be empty.
	SSHConfig string `toml:"ssh_config" check:"path"`
}

// Engine is a local or remote Docker Engine. Safe for concurrent use.
type Engine struct {
	api    *client.Client
	host   string // address, as configured
	remote bool   // the engine does not see this machine's files
	wait   time.Duration

	mu     sync.Mutex
	making map[string]chan struct{} // images that are being made, by name; each channel is closed at the end
}

// Connect returns an Engine. It sends no request, so it returns an error only for invalid options. The caller must
// Close the Engine.
func Connect(o EngineOptions) (*Engine, error) {
	if o.Host == "" {
		o.Host = DefaultHost
	}
	dial, host, err := o.dialer()
	if err != nil {
		return nil, fmt.Errorf("docker engine %s: %w", o.Host, err)
	}
	api, err := client.NewClientWithOpts(client.WithHost(host), client.WithScheme("http"),
		client.WithDialContext(dial), client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("docker engine %s: %w", o.Host, err)
	}
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	return &Engine{api: api, host: o.Host, remote: !strings.HasPrefix(o.Host, "unix:"), wait: o.Wait,
		making: map[string]chan struct{}{}}, nil
}

// Host returns the engine's address.
func (e *Engine) Host() string { return e.host }

// Local reports whether the engine sees this machine's files.
func (e *Engine) Local() bool { return !e.remote }

// Check checks that the engine answers. Errors are *Error.
func (e *Engine) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(e.wait, dialTimeout))
	defer cancel()
	_, err := e.api.Ping(ctx)
	return e.describe("answer", err)
}

// ID returns the engine's own ID. The ID is the same for every address of the engine. Errors are *Error.
func (e *Engine) ID(ctx context.Context) (string, error) {
	ctx, cancel := e.requestContext(ctx)
	defer cancel()
	info, err := e.api.Info(ctx)
	return info.ID, e.describe("say what it is", err)
}

// Close closes idle connections.
func (e *Engine) Close() error { return e.api.Close() }

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer returns a function that connects to the engine, and the address that the client library needs.
func (o EngineOptions) dialer() (dialFunc, string, error) {
	u, err := url.Parse(o.Host)
	if err != nil {
		return nil, "", err
	}
	plain := &net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	switch u.Scheme {
	case "unix":
		return guarded(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return plain.DialContext(ctx, "unix", u.Path)
		}), o.Host, nil
	case "tcp":
		config, err := o.tls(u.Hostname())
		if err != nil {
			return nil, "", err
		}
		return guarded(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialTLS(ctx, plain, u.Host, config)
		}), o.Host, nil
	case "ssh":
		command, err := sshCommand(u, o.SSHConfig)
		if err != nil {
			return nil, "", err
		}
		return guarded(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialCommand(ctx, command)
		}), "http://docker.invalid", nil
	}
	return nil, "", errors.New("it begins neither with unix:// nor with tcp:// nor with ssh://")
}

// tls returns the TLS configuration, or nil if the connection is not encrypted.
func (o EngineOptions) tls(server string) (*tls.Config, error) {
	if o.CA == "" && o.Cert == "" && o.Key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: server}
	if o.CA != "" {
		raw, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("read the certificate of its authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("%s holds no certificate", o.CA)
		}
	}
	if o.Cert != "" || o.Key != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("read our certificate for it: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func dialTLS(ctx context.Context, plain *net.Dialer, addr string, config *tls.Config) (net.Conn, error) {
	conn, err := plain.DialContext(ctx, "tcp", addr)
	if err != nil || config == nil {
		return conn, err
	}
	secure := tls.Client(conn, config)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

type guardKey struct{}

// guard makes a connection fail when its context ends. It is needed because the client library ignores the context in
// some places.
type guard struct{ stop func() bool }

// guarded wraps a dial function. If the context of a dial contains a guard, and the context ends before guard.release
// is called, reads and writes on the new connection fail.
func guarded(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if g, ok := ctx.Value(guardKey{}).(*guard); ok && err == nil {
			g.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		}
		return conn, err
	}
}

// release deactivates the guard. It returns false if the guard has already interrupted the connection.
func (g *guard) release() bool { return g.stop == nil || g.stop() }

// resources returns the limits of a container. It omits a default limit if the kernel of the engine's machine cannot
// enforce it. It includes all configured limits.
func (e *Engine) resources(ctx context.Context, o Options) (container.Resources, error) {
	r := container.Resources{NanoCPUs: max(0, int64(o.CPUs*1e9)), Memory: max(0, o.memory())}
	if o.PIDs > 0 {
		limit := int64(o.PIDs)
		r.PidsLimit = &limit
	}
	if o.CPUs == 0 || o.MemoryMB == 0 {
		ctx, cancel := e.requestContext(ctx)
		defer cancel()
		machine, err := e.api.Info(ctx)
		if err != nil {
			return r, e.describe("say how large its machine is", err)
		}
		if o.CPUs == 0 && machine.CPUCfsQuota {
			r.NanoCPUs = int64(max(1, machine.NCPU-1)) * 1e9
		}
		if o.MemoryMB == 0 && machine.MemoryLimit {
			r.Memory = machine.MemTotal / 2
		}
	}
	r.MemorySwap = r.Memory
	return r, nil
}

// Timeouts of requests. They are long enough for a slow disk, but detect an engine that never answers.
const (
	defaultWait = 20 * time.Second // timeout of a short request
	workFactor  = 6                // work on containers and images may take workFactor*Engine.wait
	idleFactor  = 30               // builds and transfers may be silent for idleFactor*Engine.wait
)

func (e *Engine) requestContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.wait)
}

func (e *Engine) workContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, workFactor*e.wait)
}

// cleanupContext returns a context for cleaning up after an operation, even if ctx has ended.
func (e *Engine) cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return e.workContext(context.WithoutCancel(ctx))
}

// progress cancels a context if a build or a transfer makes no progress for too long.
type progress struct {
	timer *time.Timer
	most  time.Duration
}

// progressContext returns a context for a build or a transfer, which may take any time. The context ends if there is no
// progress for too long.
func (e *Engine) progressContext(ctx context.Context) (context.Context, *progress, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &progress{most: idleFactor * e.wait}
	p.timer = time.AfterFunc(p.most, func() { cancel(context.DeadlineExceeded) })
	return ctx, p, func() { p.timer.Stop(); cancel(nil) }
}

// track returns a reader of r. Each successful read counts as progress.
func (p *progress) track(r io.Reader) io.Reader { return &progressReader{p, r} }

type progressReader struct {
	p *progress
	r io.Reader
}

func (m *progressReader) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if n > 0 {
		m.p.timer.Reset(m.p.most)
	}
	return n, err
}
