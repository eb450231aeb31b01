package heartbeat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// ServerOptions say where webhooks are listened for.
type ServerOptions struct {
	Addr string // "127.0.0.1:8787"; DefaultHookAddr when empty
	// Remote allows an address that is not the machine's own. Put a proxy with TLS before ductor instead.
	Remote bool
	// Conns bounds the connections at a time; DefaultConns when 0.
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
	idleWait  = 30 * time.Second
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
	return &fewConns{Listener: l, slots: make(chan struct{}, opts.Conns), closed: make(chan struct{})}, nil
}

// ServeHooks answers until ctx is done, then gives what is under way a moment. It closes l.
func ServeHooks(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headWait, ReadTimeout: bodyWait, WriteTimeout: writeWait, IdleTimeout: idleWait,
		MaxHeaderBytes: headMost,
	}
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

// fewConns accepts so many connections at a time; others wait in the kernel.
type fewConns struct {
	net.Listener
	slots  chan struct{}
	once   sync.Once
	closed chan struct{}
}

func (l *fewConns) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *fewConns) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type slotConn struct {
	net.Conn
	free func()
}

func (c *slotConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
