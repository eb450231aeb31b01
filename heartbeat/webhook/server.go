package webhook

import (
	"cmp"
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

// ServerOptions configure Listen.
type ServerOptions struct {
	Addr string // "127.0.0.1:8787"; DefaultAddr when empty
	// Remote allows an address that other machines reach. A proxy with TLS before ductor is safer.
	Remote bool
}

const (
	// DefaultAddr is the default of ServerOptions.Addr.
	DefaultAddr = "127.0.0.1:8787"
	// MostConns limits the connections at a time, and with MostBodyMax their memory.
	MostConns = 64
)

// The limits of a caller. A delivery is small, so a slow caller is an attack.
const (
	headWait  = 5 * time.Second
	bodyWait  = 10 * time.Second
	writeWait = 10 * time.Second
	drainWait = 5 * time.Second
	headMost  = 16 << 10 // bytes
)

// ErrNotLoopback is an address that other machines reach, without Remote.
var ErrNotLoopback = errors.New("webhooks listen on this machine only, unless webhooks.remote says otherwise")

// Listen opens the listener for Serve, so that ductor does not start with an address in use.
func Listen(ctx context.Context, opts ServerOptions) (net.Listener, error) {
	opts.Addr = cmp.Or(opts.Addr, DefaultAddr)
	host, _, err := net.SplitHostPort(opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no address such as %s: %w", opts.Addr, DefaultAddr, err)
	}
	if ip, err := netip.ParseAddr(host); !opts.Remote && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s: %w", opts.Addr, ErrNotLoopback)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	return &limitedListener{Listener: l, freed: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// Serve answers until ctx is done, then waits a moment for open requests. It closes l.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headWait, ReadTimeout: bodyWait, WriteTimeout: writeWait,
		MaxHeaderBytes: headMost,
	}
	server.SetKeepAlivesEnabled(false) // a connection is as old as its delivery
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWait)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	<-served
	return err
}

// A limitedListener limits its open connections. A connection beyond the limit closes the oldest one, whose delivery should
// be done by then.
type limitedListener struct {
	net.Listener
	freed  chan struct{} // capacity 1
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	open []*limitedConn // the oldest first
}

type limitedConn struct {
	net.Conn
	of    *limitedListener
	since time.Time
}

// connGrace is the age below which no connection is closed, so that many callers at once wait for each other.
const connGrace = time.Second

func (l *limitedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for wait := l.closeOldest(); wait > 0; wait = l.closeOldest() {
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
	conn := &limitedConn{Conn: c, of: l, since: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, conn)
	return conn, nil
}

// closeOldest closes the oldest connection if there are too many. It returns how long that one is too young to be closed,
// and 0 when a connection is free.
func (l *limitedListener) closeOldest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) < MostConns {
		return 0
	}
	oldest := l.open[0]
	if left := connGrace - time.Since(oldest.since); left > 0 {
		return left
	}
	_ = oldest.Conn.Close() // its handler closes it again
	l.open = l.open[1:]
	return 0
}

func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (c *limitedConn) Close() error {
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
