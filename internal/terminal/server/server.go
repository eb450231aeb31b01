// Package server receives the events of hooks in terminals. While the owner is away, it reports events in the chat and
// lets the owner answer agents' questions there.
//
// The package does not run agents, and does not depend on package bot.
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

// Options configures a Server. All fields are required.
type Options struct {
	State string // ductor's state directory with the socket
	// Descends reports whether an agent of ductor started the process with the given PID. The server rejects such a
	// process: agents of ductor have no hooks, and could send false reports and requests to the owner.
	Descends func(pid int) (bool, error)
	Away     func(ctx context.Context) bool
	// Ask asks the owner; see conversation.Engine.AskTerminal. If a hook repeats its question after a restart of
	// ductor, the repeated question has the same ID.
	Ask     func(ctx context.Context, of Session, id string, asked cli.Event) (cli.Decision, error)
	Wait    time.Duration // how long the owner may take; the CLI then asks in its terminal
	Chat    Chat
	Secrets func(dir string) *secrets.Set
	// Seen stores the directory of an agent's session.
	Seen func(ctx context.Context, of Session) error
	Lang func() lang.Printer
	Name func(agent cli.Agent) string // returns the name of an agent for users
	Log  *slog.Logger
}

// Session is a session of an agent in a terminal.
type Session struct {
	Agent cli.Agent
	ID    cli.AgentSessionID // empty if the CLI does not report it
	Dir   string
}

// Chat is the owner's private chat.
type Chat interface {
	// Report sends a Markdown text about a session. If session.ID is not empty, the message has a button that continues
	// the session in the chat.
	Report(ctx context.Context, session Session, text string) error
}

// Server receives events from terminals.
type Server struct {
	opts    Options
	started time.Time
	waiting waiters
}

// New returns a Server.
func New(o Options) *Server { return &Server{opts: o, started: time.Now()} }

// maxHooks limits the number of connected hooks. If too many hooks connect, the server closes the new connections, and
// the CLIs of these hooks ask in the terminal.
const maxHooks = 32

// Serve serves hooks until ctx ends. It returns when each hook has its answer. If the cause of ctx is cli.ErrDetached,
// hooks that wait for the owner get no answer and repeat their questions to the next ductor process.
func (s *Server) Serve(ctx context.Context) error {
	listener, err := hook.Listen(s.opts.State)
	if err != nil {
		return err
	}
	room := make(chan struct{}, maxHooks)
	return statesocket.Serve(ctx, listener, func(ctx context.Context, conn *net.UnixConn) {
		select {
		case room <- struct{}{}:
			s.serveHook(ctx, conn)
			<-room
		default: // maxHooks hooks are connected, so close the connection
		}
	})
}

// ioTimeout limits how long a hook may take to send its message or to receive an answer.
const ioTimeout = 10 * time.Second

func (s *Server) serveHook(ctx context.Context, conn *net.UnixConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// SetDeadline fails only on a closed connection.
	_ = conn.SetDeadline(time.Now().Add(ioTimeout))
	if err := statesocket.CheckOutside(conn, s.opts.Descends); err != nil {
		s.opts.Log.Warn("rejected a hook", "err", err)
		return
	}
	in := bufio.NewReader(io.LimitReader(conn, hook.MostBytes))
	line, err := in.ReadBytes('\n')
	if err != nil {
		return
	}
	var m hook.Message
	if err := json.Unmarshal(line, &m); err != nil {
		s.opts.Log.Warn("invalid message from a hook", "err", err)
		return
	}
	h := hookCall{Message: m, s: s, send: func(a hook.Answer) error { return send(conn, a) }}
	if err := json.Unmarshal(m.Event, &h.event); err != nil {
		s.opts.Log.Warn("invalid message from a hook", "agent", m.Agent, "err", err)
		return
	}
	h.handle(ctx, func() {
		_ = conn.SetDeadline(time.Time{})
		_, _ = in.ReadByte() // returns when the hook disconnects, because the hook sends nothing more
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
