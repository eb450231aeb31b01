package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Server serves a Site to clients that have its token. Create it with Listen and run it with Serve.
type Server struct {
	listener net.Listener
	guard    *guard
}

// Listen starts to listen on an address, and creates a random token. "127.0.0.1:0" means any free port. Listen returns
// an error for an address that other machines could reach.
func Listen(addr string) (*Server, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("%q is no address: give HOST:PORT, such as 127.0.0.1:8080", addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("%s can be reached from other machines; ductor serves its pages on 127.0.0.1, [::1] or localhost only", addr)
	}
	l, err := net.Listen("tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program listens on %s; choose another port, or port 0 for a free one", addr)
	case err != nil:
		return nil, fmt.Errorf("listen for the page: %w", err)
	}
	return &Server{listener: l, guard: newGuard(rand.Text(), l.Addr().(*net.TCPAddr).Port)}, nil
}

// URL returns the address for the browser, including the token.
func (s *Server) URL() string { return s.Origin() + "/#token=" + s.guard.token }

// Origin returns the scheme, host and port of the server.
func (s *Server) Origin() string { return "http://" + s.listener.Addr().String() }

// Timeouts of the HTTP server. There is no write timeout, because streams of events do not end.
const (
	headerTimeout   = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 2 * time.Second
)

// Serve serves the site until ctx is done, and returns when the last handler has returned.
func (s *Server) Serve(ctx context.Context, site Site) error {
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	server := &http.Server{
		Handler: s.guard.protect(site), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return base },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	end() // ends all streams of events
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		server.Close()
	}
	<-served
	return nil
}

// Close stops listening. Call it only if Serve was never called.
func (s *Server) Close() error { return s.listener.Close() }

// redirectPage is an HTML page that redirects to an address. %[1]s is the address.
const redirectPage = `<!doctype html><html lang="en"><head><title>ductor</title><meta http-equiv="refresh" content="0;url=%[1]s"></head>` +
	`<body><a href="%[1]s">Go to the page</a></body></html>`

// OpenBrowser opens an address in the user's browser. It returns false without a screen or without a program that opens
// addresses.
//
// The address contains a token. It must not be an argument of a program, because every user of the machine can read
// arguments. OpenBrowser therefore writes the address to a private file in dir, which redirects the browser. The caller
// must delete the file.
func OpenBrowser(address, dir string) (bool, error) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return false, nil
	}
	opener, err := exec.LookPath("xdg-open")
	if err != nil {
		return false, nil
	}
	path := filepath.Join(dir, "open.html")
	if err := os.WriteFile(path, fmt.Appendf(nil, redirectPage, html.EscapeString(address)), 0o600); err != nil {
		return false, fmt.Errorf("write the file that leads to the page: %w", err)
	}
	cmd := exec.Command(opener, path)
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("open a browser: %w", err)
	}
	// Do not wait for the program, because it may run as long as the browser.
	if err := cmd.Process.Release(); err != nil {
		return false, fmt.Errorf("open a browser: %w", err)
	}
	return true, nil
}
