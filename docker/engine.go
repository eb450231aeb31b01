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

// DefaultHost is where an engine is when nothing else is said.
const DefaultHost = client.DefaultDockerHost

const (
	dialWait  = 10 * time.Second
	keepAlive = 15 * time.Second
)

// EngineOptions say where an engine is. The zero value is the local one.
type EngineOptions struct {
	// Host is unix:///path, tcp://host:port or ssh://[user@]host[:port][/path/of/socket]. By ssh, the program ssh
	// of this machine is used, with its own configuration and keys, and asks nothing; docker must be installed there.
	Host string
	// CA, Cert and Key are files in PEM form for tcp. With CA the engine's certificate is checked against it, with
	// Cert and Key ours is shown. Without any of them tcp is in the clear.
	CA, Cert, Key string
	// Wait is how long the engine may take for a short answer; what takes long by nature gets a multiple of it.
	// Default 20 s.
	Wait time.Duration
	// SSHConfig is a configuration file for ssh in place of the user's; may be empty.
	SSHConfig string
}

// Engine is a Docker Engine, here or elsewhere. Safe for concurrent use.
type Engine struct {
	api    *client.Client
	host   string // as users know it
	remote bool   // it does not see this machine's files
	wait   time.Duration

	mu     sync.Mutex
	making map[string]chan struct{} // images by name, each until it is made
}

// Connect prepares to talk to an engine. Nothing is sent before it is needed; only what cannot be right at all is
// an error. The caller must Close it.
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
	return &Engine{api: api, host: o.Host, remote: !strings.HasPrefix(o.Host, "unix:"), wait: o.Wait, making: map[string]chan struct{}{}}, nil
}

// Host is where the engine is.
func (e *Engine) Host() string { return e.host }

// Local says whether the engine sees this machine's files.
func (e *Engine) Local() bool { return !e.remote }

// Check asks whether the engine answers. An error is an *Error.
func (e *Engine) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, min(e.wait, dialWait))
	defer cancel()
	_, err := e.api.Ping(ctx)
	return e.failed("answer", err)
}

// ID is the engine's own name of itself, the same by whichever way it is reached. An error is an *Error.
func (e *Engine) ID(ctx context.Context) (string, error) {
	ctx, cancel := e.brief(ctx)
	defer cancel()
	info, err := e.api.Info(ctx)
	return info.ID, e.failed("say what it is", err)
}

// Close ends idle connections.
func (e *Engine) Close() error { return e.api.Close() }

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer gives how to connect, and a host as the client library wants it.
func (o EngineOptions) dialer() (dialFunc, string, error) {
	u, err := url.Parse(o.Host)
	if err != nil {
		return nil, "", err
	}
	plain := &net.Dialer{Timeout: dialWait, KeepAlive: keepAlive}
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

// tls is nil when the connection is in the clear.
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
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

type guardKey struct{}

// guard makes the end of a context end what is waited for on a connection, also where the client library does
// not look at its context.
type guard struct{ stop func() bool }

// guarded lets a guard in the context of a dial watch the connection until it is released.
func guarded(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if g, ok := ctx.Value(guardKey{}).(*guard); ok && err == nil {
			g.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		}
		return conn, err
	}
}

// release says whether the connection is still good.
func (g *guard) release() bool { return g.stop == nil || g.stop() }

// resources are what a container may take of the engine's machine. A default that the engine's kernel cannot enforce is
// left out; what was asked for is not.
func (e *Engine) resources(ctx context.Context, o Options) (container.Resources, error) {
	r := container.Resources{NanoCPUs: max(0, int64(o.CPUs*1e9)), Memory: max(0, o.Memory)}
	if o.PIDs > 0 {
		r.PidsLimit = &o.PIDs
	}
	if o.CPUs == 0 || o.Memory == 0 {
		ctx, cancel := e.brief(ctx)
		defer cancel()
		machine, err := e.api.Info(ctx)
		if err != nil {
			return r, e.failed("say how large its machine is", err)
		}
		if o.CPUs == 0 && machine.CPUCfsQuota {
			r.NanoCPUs = int64(max(1, machine.NCPU-1)) * 1e9
		}
		if o.Memory == 0 && machine.MemoryLimit {
			r.Memory = machine.MemTotal / 2
		}
	}
	r.MemorySwap = r.Memory
	return r, nil
}

// How long an engine may take. One that accepts and never answers is as good as none, and who waits for it must
// learn that; but a busy disk is no hanging engine.
const (
	defaultWait = 20 * time.Second // for an answer that takes no work
	workTimes   = 6                // times that for work on containers and images
	idleTimes   = 30               // times that between two words of a build or a transfer
)

// brief is a context for a question.
func (e *Engine) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.wait)
}

// work is a context for what takes a while.
func (e *Engine) work(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, workTimes*e.wait)
}

// undo is a context for taking back what was begun, also when there is no more time for that.
func (e *Engine) undo(ctx context.Context) (context.Context, context.CancelFunc) {
	return e.work(context.WithoutCancel(ctx))
}

// progress ends a context when nothing moved for long.
type progress struct {
	timer *time.Timer
	most  time.Duration
}

// progress is a context for a transfer or a build of any length, which ends when it stands still.
func (e *Engine) progress(ctx context.Context) (context.Context, *progress, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &progress{most: idleTimes * e.wait}
	p.timer = time.AfterFunc(p.most, func() { cancel(context.DeadlineExceeded) })
	return ctx, p, func() { p.timer.Stop(); cancel(nil) }
}

// of notes what is read of r as progress.
func (p *progress) of(r io.Reader) io.Reader { return &moving{p, r} }

type moving struct {
	p *progress
	r io.Reader
}

func (m *moving) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if n > 0 {
		m.p.timer.Reset(m.p.most)
	}
	return n, err
}
