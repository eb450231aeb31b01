// Package server is the side of ductor that hears from terminals: it has the owner decide in the chat what an agent asks in a
// terminal while the owner is away, and reports what happens there.
//
// The package does NOT run agents, and does not know how a chat shows anything.
package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"ductor/cli"
	"ductor/internal/secrets"
	"ductor/internal/statesocket"
	"ductor/internal/terminal/hook"
	"ductor/lang"
)

// Options configure a Server. All are required.
type Options struct {
	State string // ductor's state directory, which has the socket
	Away  func(ctx context.Context) bool
	// Ask has the owner decide; see conversation.Engine.AskTerminal. id is the same for what is asked again after a restart.
	Ask     func(ctx context.Context, of Session, id string, asked cli.Event) (cli.Decision, error)
	Wait    time.Duration // after that a terminal asks alone
	Chat    Chat
	Secrets func(dir string) *secrets.Set
	// Seen keeps in which directory an agent's session is.
	Seen func(ctx context.Context, of Session) error
	Lang func() lang.Printer
	Name func(agent cli.Agent) string // that users read
	Log  *slog.Logger
}

// Session is one of an agent in a terminal.
type Session struct {
	Agent cli.Agent
	ID    cli.AgentSessionID // empty where the CLI does not say
	Dir   string
}

// Chat is the owner's private chat.
type Chat interface {
	// Report says one thing, in Markdown, with a button that continues a session here unless its ID is empty.
	Report(ctx context.Context, of Session, text string) error
}

// Server hears from terminals.
type Server struct {
	opts    Options
	waiting waiting
}

// New makes a Server.
func New(o Options) *Server { return &Server{opts: o} }

// mostHooks is how many hooks are heard at once. Others find nothing, and their CLIs ask as usual.
const mostHooks = 32

// Serve hears from terminals until ctx ends, and returns when each of them has its answer. If the cause of that is cli.ErrDetached, those
// that wait for the owner get none: their hooks ask the next process again.
func (s *Server) Serve(ctx context.Context) error {
	listener, err := hook.Listen(s.opts.State)
	if err != nil {
		return err
	}
	room := make(chan struct{}, mostHooks)
	return statesocket.Serve(ctx, listener, func(ctx context.Context, conn *net.UnixConn) {
		select {
		case room <- struct{}{}:
			s.hear(ctx, conn)
			<-room
		default: // there are too many
		}
	})
}

// helloWait is how long a hook may take to say what it has to say, or to take an answer.
const helloWait = 10 * time.Second

// hear serves one hook.
func (s *Server) hear(ctx context.Context, conn *net.UnixConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	_ = conn.SetDeadline(time.Now().Add(helloWait)) // a closed connection fails below
	if err := hook.CheckPeer(conn); err != nil {
		s.opts.Log.Warn("a hook is refused", "err", err)
		return
	}
	in := bufio.NewReader(io.LimitReader(conn, hook.MostBytes))
	line, err := in.ReadBytes('\n')
	if err != nil {
		return
	}
	var m hook.Message
	if err := json.Unmarshal(line, &m); err != nil {
		s.opts.Log.Warn("a hook says nothing that is understood", "err", err)
		return
	}
	h := heard{Message: m, s: s, send: func(a hook.Answer) error { return send(conn, a) }}
	if err := json.Unmarshal(m.Event, &h.event); err != nil {
		s.opts.Log.Warn("a hook says nothing that is understood", "agent", m.Agent, "err", err)
		return
	}
	h.act(ctx, func() {
		_ = conn.SetDeadline(time.Time{})
		_, _ = in.ReadByte() // the hook says nothing more: its CLI ended it
		cancel()
	})
}

func send(conn net.Conn, a hook.Answer) error {
	raw, err := json.Marshal(a)
	if err == nil {
		_, err = conn.Write(append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("answer a terminal: %w", err)
	}
	return nil
}
