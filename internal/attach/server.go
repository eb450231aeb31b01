package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/internal/statesocket"
	"ductor/orchestrator"
)

// Options configures a Server. All fields are required.
type Options struct {
	Hub     *Hub
	Dir     string // state directory with the socket
	Version string // version of ductor
	// Admit returns an error if the process at the other end of conn may not attach. The parameter secret is the text
	// that the process has sent.
	Admit func(conn net.Conn, secret string) error
	// Owner returns the user for whom terminals act. RoleOf returns the current role of a user.
	Owner  func() orchestrator.PersonID
	RoleOf func(user orchestrator.PersonID) orchestrator.UserRole
	// Group reports whether ductor serves the group with this chat ID.
	Group func(chat int64) bool
	Store Store
	Desk  Desk
	Chat  Chat
	Now   func() time.Time
	Log   *slog.Logger
}

// Store has the methods of the store that this package uses.
type Store interface {
	// RecentTurns lists the last ended turns of a conversation, oldest first.
	RecentTurns(ctx context.Context, in orchestrator.ConversationID, limit int) ([]orchestrator.Turn, error)
	// OpenTurns lists turns that are queued, that are running, or that have ended without being delivered, oldest
	// first.
	OpenTurns(ctx context.Context) ([]orchestrator.Turn, error)
	StepsOf(ctx context.Context, turn cli.TurnID) ([]orchestrator.Step, error)
	Step(ctx context.Context, turn cli.TurnID, number int) (orchestrator.Step, error)
	OpenApprovals(ctx context.Context) ([]orchestrator.Approval, error)
	// NewestSessions lists the most recently used session of each conversation, newest first.
	NewestSessions(ctx context.Context, limit int) ([]orchestrator.Session, error)
}

// Desk has the methods of the conversation engine that this package uses. *conversation.Engine implements it.
type Desk interface {
	orchestrator.Approvals
	Status(ctx context.Context, id orchestrator.ConversationID) (orchestrator.Status, error)
	// SubmitOnce is like Submit of bot.Desk, but the caller chooses the turn's ID. SubmitOnce does nothing if a turn
	// with this ID exists.
	SubmitOnce(ctx context.Context, id cli.TurnID, p orchestrator.Prompt) (orchestrator.Receipt, error)
	StopTurn(ctx context.Context, running cli.TurnID, by orchestrator.Press) error
	CancelQueued(ctx context.Context, turn cli.TurnID, by orchestrator.Press) (bool, error)
}

// Chat shows texts from terminals in the chat, and runs commands. Package bot implements it.
type Chat interface {
	// ShowTyped shows a text from a terminal in the chat. A second call with the same id has no effect.
	ShowTyped(ctx context.Context, by orchestrator.Press, id, text string) error
	// CommandTyped runs a command and shows its answer in the chat. A second call with the same id has no effect.
	CommandTyped(ctx context.Context, by orchestrator.Press, id, text string) error
	// AbortTyped stops the running turn, empties the queue, and shows this in the chat.
	AbortTyped(ctx context.Context, by orchestrator.Press, id string) error
}

// Server serves the terminals of the owner. Safe for concurrent use.
type Server struct {
	opts     Options
	greeting atomic.Int32 // number of connections that have not sent Hello yet
}

// NewServer creates a Server. Serve runs it.
func NewServer(o Options) *Server { return &Server{opts: o} }

// Limits of connections.
const (
	mostTerminals = 16
	mostGreeting  = 16
	helloWait     = 10 * time.Second
	requestWait   = time.Minute // time limit of one request
)

// Serve serves terminals until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	l, err := statesocket.Listen(s.opts.Dir, wire.Socket)
	if err != nil {
		return err
	}
	return statesocket.Serve(ctx, l, s.serve)
}

// Recheck disconnects the terminals of users who are no longer owners.
func (s *Server) Recheck() {
	for _, t := range s.opts.Hub.terminals() {
		if !s.allows(t) {
			s.remove(t)
		}
	}
}

func (s *Server) remove(t *terminal) {
	t.bye(s.opts.Hub, wire.ReasonRemoved,
		"You are no longer an owner of this ductor, so this terminal was disconnected.")
}

func (s *Server) allows(t *terminal) bool { return s.opts.RoleOf(t.user) == orchestrator.RoleOwner }

// serve serves one terminal until it disconnects or ctx ends.
func (s *Server) serve(ctx context.Context, conn *net.UnixConn) {
	t := newTerminal(conn, s.opts.Owner())
	in := bufio.NewReaderSize(conn, 64<<10)
	if err := s.greet(conn, t, in); err != nil {
		s.opts.Log.Warn("refused a terminal", "err", err)
		t.bye(s.opts.Hub, wire.ReasonRefused, err.Error())
		return
	}
	s.opts.Hub.join(t)
	defer s.opts.Hub.leave(t)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.queue(s.opts.Hub.encode(wire.Message{Welcome: &wire.Welcome{Version: wire.Version, Ductor: s.opts.Version}}))
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() {
		t.write(ctx, func() bool { return s.allows(t) })
		_ = conn.Close() // the reading goroutine then ends
	})
	c := &caller{s: s, t: t, all: &all, ordered: make(chan func(), mostOrdered)}
	all.Go(func() { c.work(ctx) })
	for {
		line, err := wire.ReadLine(in)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				s.opts.Log.Info("a terminal left", "err", err)
			}
			return
		}
		if !s.allows(t) {
			s.remove(t)
			return
		}
		var r wire.Request
		if err := json.Unmarshal(line, &r); err != nil {
			t.bye(s.opts.Hub, wire.ReasonRefused, "ductor cannot read a line of this terminal: "+err.Error())
			return
		}
		c.handle(ctx, r)
	}
}

// greet reads the Hello of a terminal. If the terminal may not attach, the error is a sentence for the user.
func (s *Server) greet(conn *net.UnixConn, t *terminal, in *bufio.Reader) error {
	defer s.greeting.Add(-1)
	if s.greeting.Add(1) > mostGreeting || len(s.opts.Hub.terminals()) >= mostTerminals {
		return errors.New("too many terminals are attached; close one")
	}
	_ = conn.SetReadDeadline(time.Now().Add(helloWait)) // if this fails, ReadSlice fails too
	line, err := in.ReadSlice('\n')
	if err != nil {
		return errors.New("the terminal did not send its secret")
	}
	_ = conn.SetReadDeadline(time.Time{})
	var r wire.Request
	if err := json.Unmarshal(line, &r); err != nil || r.Hello == nil {
		return errors.New("the terminal did not send its secret")
	}
	if err := s.opts.Admit(conn, r.Hello.Secret); err != nil {
		return err
	}
	if r.Hello.Version != wire.Version {
		return errors.New("this `ductor attach` and the running ductor are of different versions; restart ductor")
	}
	if !s.allows(t) {
		return errors.New("no owner is configured; add yourself to telegram.allowed_users")
	}
	return nil
}
