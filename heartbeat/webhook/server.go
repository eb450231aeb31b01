package webhook

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

// MostConns limits the number of connections, and so the memory for their bodies.
const MostConns = 64

// Limits of a connection. They are low, because deliveries are small and a slow caller is probably an attacker.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 10 * time.Second
	writeTimeout  = 10 * time.Second
	drainTimeout  = 5 * time.Second
	maxHeader     = 16 << 10 // bytes
)

// ErrNotLoopback means that other machines could reach the address, although Settings.Remote is false.
var ErrNotLoopback = errors.New("webhooks listen on this machine only, unless webhooks.remote says otherwise")

// Check implements config.checker.
func (s Settings) Check(problem func(key, format string, args ...any)) {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		problem("listen", "should be an address and a port, such as 127.0.0.1:8787")
	} else if !s.Remote && !isLoopback(host) {
		problem("listen", "others could reach %s; put a proxy with TLS before ductor, or set webhooks.remote", host)
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Listen returns a listener for Serve. It is a separate function, so that ductor reports at its start if the address is
// in use.
func Listen(ctx context.Context, s Settings) (net.Listener, error) {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return nil, fmt.Errorf("%q is no address such as 127.0.0.1:8787: %w", s.Listen, err)
	}
	if !s.Remote && !isLoopback(host) {
		return nil, fmt.Errorf("%s: %w", s.Listen, ErrNotLoopback)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	return &limitedListener{Listener: l, freed: make(chan struct{}, 1), closed: make(chan struct{})}, nil
}

// Serve serves requests until ctx is done. It then waits a short time for open requests, and closes l.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, WriteTimeout: writeTimeout,
		MaxHeaderBytes: maxHeader,
	}
	server.SetKeepAlivesEnabled(false) // a connection is for one delivery
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve webhooks: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := server.Shutdown(last)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	<-served
	return err
}

// limitedListener limits the number of open connections. For a new connection beyond the limit, it closes the oldest
// connection. That connection is at least connGrace old, so its request should be complete.
type limitedListener struct {
	net.Listener
	freed  chan struct{} // receives a value when a connection is closed
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	open []*limitedConn // oldest first
}

type limitedConn struct {
	net.Conn
	of    *limitedListener
	since time.Time
}

// connGrace is the minimum age of a connection that may be closed to make room for a new one. The new connection waits
// until the oldest one has this age.
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

// closeOldest closes the oldest connection if the limit is reached. If that connection is too young (see connGrace),
// closeOldest returns how long the caller must wait. Otherwise it returns 0.
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
	_ = oldest.Conn.Close() // ignore the error, because the handler closes the connection, too
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
