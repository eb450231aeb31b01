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

// Name is the name of this tool server in agents' configurations.
const Name = cli.OwnServer

// Options configures a Server. All fields except Jobs and Consults are required.
type Options struct {
	Dir      string // state directory, with the socket and the key of tokens
	Version  string // ductor's version; agents see it
	Turns    orchestrator.ActiveTurns
	Chat     Chat
	Audit    Audit
	Sessions orchestrator.Sessions
	Steps    orchestrator.Steps
	Jobs     orchestrator.Jobs // nil means no tool for schedules
	Files    orchestrator.FileSender
	// Place returns the location of a turn's files.
	Place func(ctx context.Context, turn orchestrator.Turn) (orchestrator.FilePlace, error)
	// ReadFile reads a file of a project; see orchestrator.Files.
	ReadFile  func(ctx context.Context, at orchestrator.FilePlace, path string) (orchestrator.ProjectFile, error)
	Consults  Consults // nil means no tools for other models
	FindModel FindModel
	Roles     Roles
	Outside   Outside
	Patience  time.Duration // greatest duration of a call
	Now       func() time.Time
	NewID     func() string
	Log       *slog.Logger
}

// Chat sends messages to a chat.
type Chat interface {
	// SendFor sends a Markdown message of the agent of a turn. When it returns, the message is stored.
	SendFor(ctx context.Context, t orchestrator.Turn, text string) error
}

// Audit records calls of tools in the audit log.
type Audit interface {
	RecordAudit(ctx context.Context, entries ...orchestrator.AuditEntry) error
}

// Server serves the agents of all conversations, and outside clients. Safe for concurrent use.
type Server struct {
	opts    Options
	keys    keys
	schemas *sdk.SchemaCache

	greeting connections[cli.Sandbox] // connections whose clients have not sent a valid token yet
	refused  connections[cli.Sandbox] // rejected connections whose clients have not disconnected yet
	joined   connections[joinKey]     // connections whose clients have sent a valid token
	outside  outsiders

	mu    sync.Mutex
	calls map[orchestrator.ConversationID]turnUsage
}

// turnUsage counts the calls of a turn. For an outside client, it counts the calls in a period; see outsideWindow.
type turnUsage struct {
	period                 string // ID of the turn; for an outside client, the time at which the period began
	calls, consults, works int
	sent                   int // bytes of messages
}

// Open returns a Server. Serve then runs it.
func Open(o Options) (*Server, error) {
	k, err := openKeys(o.Dir)
	if err != nil {
		return nil, err
	}
	return &Server{opts: o, keys: k, schemas: sdk.NewSchemaCache(),
		calls:   map[orchestrator.ConversationID]turnUsage{},
		outside: outsiders{ends: map[*context.CancelFunc]int{}}}, nil
}

// Token returns the token for an agent that runs turns of a conversation in an environment. The agent connects with
// this token.
func (s *Server) Token(in orchestrator.ConversationID, env orchestrator.AgentEnv) string {
	return s.keys.token(caller{Conversation: in, Agent: env.Agent, Sandbox: env.Sandbox})
}

// Serve serves agents until ctx ends. It returns after the last call has ended.
func (s *Server) Serve(ctx context.Context) error {
	listener, err := relay.Listen(s.opts.Dir)
	if err != nil {
		return err
	}
	return statesocket.Serve(ctx, listener, func(ctx context.Context, conn *net.UnixConn) {
		s.ServeConn(ctx, conn, "")
	})
}

// Limits of the first line that a client sends.
const (
	helloTimeout = 30 * time.Second
	helloBytes   = 64 << 10
)

// ServeConn serves one client until it disconnects or ctx ends. It closes conn. The parameter from is the environment
// from which the client connects; empty means this host.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn, from cli.Sandbox) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	hello, in, err := s.readHello(conn, from)
	switch {
	case errors.Is(err, errSilent):
		return
	case err == nil && hello.Recheck:
		s.endRevoked()
		return
	}
	var c caller
	if err == nil {
		c, err = s.identify(conn, from, hello)
	}
	var client *sdk.InitializeParams
	if err == nil && len(hello.Initialize) > 0 {
		err = json.Unmarshal(hello.Initialize, &client)
	}
	if err != nil {
		s.opts.Log.Warn("rejected a client of the tools", "err", err)
		s.refuse(conn, from, err)
		return
	}
	leave, ok := s.joined.add(joinKey{c.Conversation, from}, maxJoined)
	if !ok {
		s.refuse(conn, from, errTooManyClients)
		return
	}
	defer leave()
	ctx, end, err := s.enter(ctx, c)
	if err != nil {
		s.refuse(conn, from, err)
		return
	}
	defer end()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := s.serveClient(ctx, conn, in, c, client); err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		s.opts.Log.Debug("a client of the tools left", "agent", c.Agent, "err", err)
	}
}

// errSilent means that a client sent no first line, or that too many other clients have not sent theirs yet.
var errSilent = errors.New("the client sent no first line")

// readHello reads the first line that a client sends. It also returns the reader of all further lines.
func (s *Server) readHello(conn net.Conn, from cli.Sandbox) (hello relay.Hello, in *bufio.Reader, err error) {
	done, ok := s.greeting.add(from, maxGreeting)
	if !ok {
		return hello, nil, errSilent
	}
	defer done()
	in = bufio.NewReaderSize(conn, helloBytes)
	// Ignore the error: if the connection is closed, ReadSlice fails, too.
	_ = conn.SetReadDeadline(time.Now().Add(helloTimeout))
	line, err := in.ReadSlice('\n')
	if err != nil {
		return hello, nil, errSilent
	}
	_ = conn.SetReadDeadline(time.Time{})
	err = json.Unmarshal(line, &hello)
	return hello, in, err
}

// refuse tells a client why it was rejected, and reads until the client disconnects. If the connection were closed
// earlier, the client might not receive the reason. If too many rejected clients are still connected, refuse returns at
// once.
func (s *Server) refuse(conn net.Conn, from cli.Sandbox, why error) {
	done, ok := s.refused.add(from, maxRefused)
	if !ok {
		return
	}
	defer done()
	raw, err := json.Marshal(relay.Refusal{Refused: why.Error()})
	if err != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(helloTimeout)) // ignore the error: on a closed connection, Write fails, too
	if _, err := conn.Write(append(raw, '\n')); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

// instructions returns a text that describes the tools to the client's model.
func instructions(c caller) string {
	if c.isOutside() {
		return "Tools of ductor, which has coding agents work on the user's machine, and reaches the user by chat on " +
			"the phone. Use them when the user asks for it."
	}
	return "Tools of the chat that the user writes in. " +
		"Use them when the user asks for it, or when you cannot go on without the user."
}

// serveClient serves a client that has sent a valid token. The client may have started its session with the previous
// process of ductor. Such a client does not send its initialize request again, and initialized contains the parameters
// of the earlier request. For a new client, initialized is nil.
func (s *Server) serveClient(ctx context.Context, conn net.Conn, in io.Reader, c caller,
	initialized *sdk.InitializeParams) error {
	t := &toolset{s: s, caller: c}
	t.server = sdk.NewServer(&sdk.Implementation{Name: Name, Title: "ductor", Version: s.opts.Version},
		&sdk.ServerOptions{
			Instructions: instructions(c),
			Capabilities: &sdk.ServerCapabilities{}, SchemaCache: s.schemas, Logger: slog.New(slog.DiscardHandler),
			InitializedHandler: func(_ context.Context,
				req *sdk.InitializedRequest) {
				t.adapt(req.Session.InitializeParams())
			},
		})
	t.register()
	var state *sdk.ServerSessionOptions
	if initialized != nil {
		t.adapt(initialized)
		state = &sdk.ServerSessionOptions{State: &sdk.ServerSessionState{InitializeParams: initialized,
			InitializedParams: &sdk.InitializedParams{}}}
	}
	transport := &sdk.IOTransport{Reader: io.NopCloser(in), Writer: conn, MaxLineLength: relay.MaxLine}
	session, err := t.server.Connect(ctx, transport, state)
	if err != nil {
		return fmt.Errorf("serve an agent: %w", err)
	}
	return session.Wait()
}
