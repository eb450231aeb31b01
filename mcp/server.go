package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"ductor/cli"
	"ductor/internal/statesocket"
	"ductor/mcp/relay"
	"ductor/orchestrator"
)

// Name is the server's name among the tool servers of an agent.
const Name = cli.OwnServer

// Options configure a Server. All are required but Jobs and Consults.
type Options struct {
	Dir      string // the state directory: it has the socket and the key of tokens
	Version  string // shown to agents
	Turns    orchestrator.ActiveTurns
	Chat     Chat
	Audit    Audit
	Sessions orchestrator.Sessions
	Jobs     orchestrator.Jobs // nil: nothing can be scheduled
	Files    orchestrator.FileSender
	// Place is where a turn finds its files.
	Place     func(ctx context.Context, turn orchestrator.Turn) (orchestrator.FilePlace, error)
	Consults  Consults // nil: no model can be asked
	FindModel FindModel
	Roles     Roles
	Patience  time.Duration // a call that takes longer is ended
	Now       func() time.Time
	NewID     func() string
	Log       *slog.Logger
}

// Chat is where messages go.
type Chat interface {
	// SendFor says one thing, in Markdown, for the agent of a turn. It is stored when the method returns.
	SendFor(ctx context.Context, t orchestrator.Turn, text string) error
}

// Audit records calls.
type Audit interface {
	RecordAudit(ctx context.Context, entries ...orchestrator.AuditEntry) error
}

// Server serves the agents of all conversations. Safe for concurrent use.
type Server struct {
	opts    Options
	keys    keys
	schemas *sdk.SchemaCache

	mu       sync.Mutex
	calls    map[orchestrator.ConversationID]counted
	greeting int                                 // connections that have not shown a token
	joined   map[orchestrator.ConversationID]int // connections that have
}

// counted is how many calls a turn has made.
type counted struct {
	turn                   cli.TurnID
	calls, consults, works int
	said                   int // bytes of messages
}

// Open makes a Server. Serve takes the connections of agents.
func Open(o Options) (*Server, error) {
	k, err := openKeys(o.Dir)
	if err != nil {
		return nil, err
	}
	return &Server{opts: o, keys: k, schemas: sdk.NewSchemaCache(), calls: map[orchestrator.ConversationID]counted{}, joined: map[orchestrator.ConversationID]int{}}, nil
}

// Token is what an agent of a conversation shows.
func (s *Server) Token(in orchestrator.ConversationID, agent cli.Agent) string {
	return s.keys.token(caller{in, agent})
}

// Serve serves agents until ctx ends, and returns when no call runs any more.
func (s *Server) Serve(ctx context.Context) error {
	listener, err := relay.Listen(s.opts.Dir)
	if err != nil {
		return err
	}
	return statesocket.Serve(ctx, listener, func(ctx context.Context, conn *net.UnixConn) { s.ServeConn(ctx, conn) })
}

// helloWait is how long a client may take for its first line, and helloBytes how long that may be.
const (
	helloWait  = 30 * time.Second
	helloBytes = 64 << 10
)

// Limits of connections.
const (
	mostGreeting = 64 // that have not shown a token
	mostJoined   = 32 // of the agents of one conversation
)

var errTooManyClients = fmt.Errorf("the agents of this chat have %d connections, which is the limit; close one", mostJoined)

// greet counts a connection until done is called; false if too many have shown no token.
func (s *Server) greet() (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.greeting >= mostGreeting {
		return nil, false
	}
	s.greeting++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.greeting--
	}), true
}

// join counts a connection of a conversation until leave is called.
func (s *Server) join(in orchestrator.ConversationID) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.joined[in] >= mostJoined {
		return nil, errTooManyClients
	}
	s.joined[in]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.joined[in]--; s.joined[in] == 0 {
			delete(s.joined, in)
		}
	}, nil
}

// ServeConn serves one client until it leaves or ctx ends. It closes conn.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	greeted, ok := s.greet()
	if !ok {
		return
	}
	defer greeted()
	in := bufio.NewReaderSize(conn, helloBytes)
	_ = conn.SetReadDeadline(time.Now().Add(helloWait)) // a closed connection fails below
	line, err := in.ReadSlice('\n')
	if err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	var hello relay.Hello
	err = json.Unmarshal(line, &hello)
	var c caller
	if err == nil {
		c, err = s.keys.caller(hello.Token)
	}
	var client *sdk.InitializeParams
	if err == nil && len(hello.Initialize) > 0 {
		err = json.Unmarshal(hello.Initialize, &client)
	}
	if err != nil {
		s.opts.Log.Warn("a client of the tools is refused", "err", ErrToken)
		s.refuse(conn, err)
		return
	}
	leave, err := s.join(c.Conversation)
	if err != nil {
		s.refuse(conn, err)
		return
	}
	defer leave()
	greeted()
	if err := s.talk(ctx, conn, in, c, client); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		s.opts.Log.Debug("a client of the tools left", "agent", c.Agent, "err", err)
	}
}

// refuse says why a client is not served, and reads what it has sent until it leaves: the answer could get lost otherwise.
func (s *Server) refuse(conn net.Conn, why error) {
	raw, err := json.Marshal(relay.Refusal{Refused: why.Error()})
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(helloWait)) // what fails fails below
	if _, err := conn.Write(append(raw, '\n')); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// talk serves a client whose token is good. One that made its initialize request to the previous process goes on.
func (s *Server) talk(ctx context.Context, conn net.Conn, in io.Reader, c caller, client *sdk.InitializeParams) error {
	t := &toolset{s: s, caller: c}
	t.server = sdk.NewServer(&sdk.Implementation{Name: Name, Title: "ductor", Version: s.opts.Version}, &sdk.ServerOptions{
		Instructions: "Tools of the chat that the user writes in. " +
			"Use them when the user asks for it, or when you cannot go on without the user.",
		Capabilities: &sdk.ServerCapabilities{}, SchemaCache: s.schemas, Logger: slog.New(slog.DiscardHandler),
		InitializedHandler: func(_ context.Context, req *sdk.InitializedRequest) { t.adapt(req.Session.InitializeParams()) },
	})
	t.register()
	var state *sdk.ServerSessionOptions
	if client != nil {
		t.adapt(client)
		state = &sdk.ServerSessionOptions{State: &sdk.ServerSessionState{InitializeParams: client, InitializedParams: &sdk.InitializedParams{}}}
	}
	transport := &sdk.IOTransport{Reader: io.NopCloser(in), Writer: conn, MaxLineLength: relay.MaxLine}
	session, err := t.server.Connect(ctx, transport, state)
	if err != nil {
		return fmt.Errorf("serve an agent: %w", err)
	}
	return session.Wait()
}
