package telegram

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server simulates the Bot API for one bot, with its chats and users. It is safe for concurrent use. Close ends
// everything that it has started.
type Server struct {
	opts    Options
	methods map[string]method
	base    context.Context // cancelled by Close
	end     context.CancelFunc
	calls   callLog
	faults  faultList

	mu        sync.Mutex // guards the following fields
	closed    bool
	inflight  sync.WaitGroup
	listener  *http.Server
	serveDone chan struct{}
	url       string

	people    map[UserID]*Person
	chats     map[ChatID]*Chat
	lastID    MessageID // newest message ID; private chats and small groups share the counter
	queue     updateQueue
	files     fileStore
	callbacks map[string]*callback
	commands  map[string][]Command
	limits    limiter
	serial    int64
	changed   signal
}

// New returns a Server. Use it over HTTP (Start), as a handler, or with Client.
func New(opts Options) *Server {
	opts = opts.withDefaults()
	base, end := context.WithCancel(context.Background())
	s := &Server{
		opts: opts, base: base, end: end,
		people:    map[UserID]*Person{},
		chats:     map[ChatID]*Chat{},
		callbacks: map[string]*callback{},
		commands:  map[string][]Command{},
		files:     newFileStore(opts.KeepFileBytes),
		queue:     newUpdateQueue(),
		limits:    newLimiter(opts.Limits),
	}
	s.calls.keep = opts.KeepCalls
	s.methods = s.methodTable()
	return s
}

// Start serves on a free loopback port until Close. Call it only once.
func (s *Server) Start() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the simulated Bot API: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.listener != nil {
		l.Close()
		return errors.New("start the simulated Bot API: started or closed before")
	}
	s.listener = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return s.base },
	}
	s.serveDone = make(chan struct{})
	s.url = "http://" + l.Addr().String()
	go func(server *http.Server, done chan struct{}) {
		defer close(done)
		_ = server.Serve(l) // returns http.ErrServerClosed after Close
	}(s.listener, s.serveDone)
	return nil
}

// URL returns the address of the server, without a slash at its end. It returns "" before Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url
}

// Token returns the bot token that the server accepts.
func (s *Server) Token() string { return s.opts.Token }

// Close breaks all connections, and makes all waiting methods return. It returns when all handlers have returned.
func (s *Server) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	listener, done := s.listener, s.serveDone
	s.mu.Unlock()
	if !first {
		return nil
	}
	s.end()
	var err error
	if listener != nil {
		err = listener.Close()
		<-done
	}
	s.inflight.Wait()
	return err
}

// enter counts a handler that starts. It returns false if the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.inflight.Add(1)
	return true
}

func (s *Server) now() time.Time { return s.opts.Now() }

// nextSerial returns a number that is unique for this server. The caller holds mu.
func (s *Server) nextSerial() int64 {
	s.serial++
	return s.serial
}

// ServeHTTP handles /bot<token>/<method> and /file/bot<token>/<path>.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler) // breaks the connection
	}
	defer s.inflight.Done()
	if rest, ok := strings.CutPrefix(r.URL.Path, "/file/bot"); ok {
		s.serveFile(w, r, rest)
		return
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/bot")
	token, name, slash := strings.Cut(rest, "/")
	if !ok || !slash || name == "" || strings.Contains(name, "/") {
		writeError(w, notFound())
		return
	}
	if token != s.opts.Token {
		writeError(w, unauthorized())
		return
	}
	s.serveMethod(w, r, name)
}

// signal wakes goroutines that wait for a change. The zero value is ready to use. The caller must guard a signal with a
// lock.
type signal struct{ ch chan struct{} }

// wait returns a channel that the next broadcast closes.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) broadcast() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
