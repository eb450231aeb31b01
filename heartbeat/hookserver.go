package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// ServerOptions say where webhooks are listened for.
type ServerOptions struct {
	Addr string // "127.0.0.1:8787"; DefaultHookAddr when empty
	// Remote allows an address that is not the machine's own. Put a proxy with TLS before ductor instead.
	Remote bool
	// Conns bounds the connections at a time, and with MostBodyMax the memory they take; DefaultConns when 0.
	Conns int
}

// Defaults of ServerOptions.
const (
	DefaultHookAddr = "127.0.0.1:8787"
	DefaultConns    = 64
)

// The time a caller has. A hook is small: whoever is slower than this means no good.
const (
	headWait  = 5 * time.Second
	bodyWait  = 10 * time.Second
	writeWait = 10 * time.Second
	hookDrain = 5 * time.Second
	headMost  = 16 << 10 // bytes
)

// ErrNotLoopback is an address that others could reach, and nobody said that they may.
var ErrNotLoopback = errors.New("webhooks listen on this machine only, unless webhooks.remote says otherwise")

// ListenHooks opens the listener for ServeHooks, so that an address in use shows at the start.
func ListenHooks(ctx context.Context, opts ServerOptions) (net.Listener, error) {
	if opts.Addr == "" {
		opts.Addr = DefaultHookAddr
	}
	if opts.Conns <= 0 {
		opts.Conns = DefaultConns
	}
	host, _, err := net.SplitHostPort(opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no address such as %s: %w", opts.Addr, DefaultHookAddr, err)
	}
	if ip, err := netip.ParseAddr(host); !opts.Remote && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s: %w", opts.Addr, ErrNotLoopback)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	return &fewConns{Listener: l, most: opts.Conns, freed: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// ServeHooks answers until ctx is done, then gives what is under way a moment. It closes l.
func ServeHooks(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headWait, ReadTimeout: bodyWait, WriteTimeout: writeWait,
		MaxHeaderBytes: headMost,
	}
	server.SetKeepAlivesEnabled(false) // the age of a connection is that of its delivery
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookDrain)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	<-served
	return err
}

// fewConns has so many connections at a time. When one more comes, the one that is open for longest is closed, for
// whoever means well is done by then.
type fewConns struct {
	net.Listener
	most   int
	freed  chan struct{} // capacity 1
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	open []*fewConn // the oldest first
}

type fewConn struct {
	net.Conn
	of    *fewConns
	since time.Time
}

// connGrace is how long a connection is left in peace: many honest callers at once wait for each other.
const connGrace = time.Second

func (l *fewConns) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for wait := l.makeRoom(); wait > 0; wait = l.makeRoom() {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.freed:
		case <-l.closed:
			timer.Stop()
			return nil, errors.Join(net.ErrClosed, c.Close())
		}
		timer.Stop()
	}
	few := &fewConn{Conn: c, of: l, since: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, few)
	return few, nil
}

// makeRoom closes the oldest connection if there are too many. It returns how long that one is still left in peace,
// 0 when there is room.
func (l *fewConns) makeRoom() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) < l.most {
		return 0
	}
	oldest := l.open[0]
	if left := connGrace - time.Since(oldest.since); left > 0 {
		return left
	}
	_ = oldest.Conn.Close() // it is closed again by its handler
	l.open = l.open[1:]
	return 0
}

func (l *fewConns) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (c *fewConn) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 {
		c.of.open = slices.Delete(c.of.open, i, i+1)
	}
	c.of.mu.Unlock()
	select {
	case c.of.freed <- struct{}{}:
	default:
	}
	return c.Conn.Close()
}
