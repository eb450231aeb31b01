package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"ductor/cli"
	"ductor/internal/attach/wire"
	"ductor/internal/statesocket"
	"ductor/orchestrator"
)

const owner = 7

// world is everything behind a Server. It records requests.
type world struct {
	orchestrator.Approvals
	mu        sync.Mutex
	did       []string
	role      orchestrator.UserRole
	turns     map[cli.TurnID]orchestrator.Turn
	approvals []orchestrator.Approval
	decide    func() error
}

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, what)
}

func (w *world) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.did)
}

func (w *world) RoleOf(user orchestrator.PersonID) orchestrator.UserRole {
	w.mu.Lock()
	defer w.mu.Unlock()
	if user != owner {
		return orchestrator.RoleNone
	}
	return w.role
}

func (w *world) RecentTurns(_ context.Context, in orchestrator.ConversationID, _ int) (all []orchestrator.Turn,
	err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.turns {
		if t.Prompt.Conversation == in && t.State == orchestrator.TurnDone {
			all = append(all, t)
		}
	}
	return all, nil
}

func (w *world) OpenTurns(context.Context) (all []orchestrator.Turn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.turns {
		if t.State != orchestrator.TurnDone {
			all = append(all, t)
		}
	}
	return all, nil
}

func (w *world) StepsOf(context.Context, cli.TurnID) ([]orchestrator.Step, error) {
	return []orchestrator.Step{
		{Number: 1, Tool: "Bash", Title: "ls", Size: 4}, {Number: 2, Title: "a.txt", Change: cli.FileAdded},
	}, nil
}

func (w *world) Step(_ context.Context, _ cli.TurnID, n int) (orchestrator.Step, error) {
	return orchestrator.Step{
		Number: n, Tool: "Bash", Title: "ls", Size: 4, Output: "b.go", Input: `{"command":"ls"}`,
	}, nil
}

func (w *world) OpenApprovals(context.Context) ([]orchestrator.Approval, error) {
	return w.approvals, nil
}

func (w *world) NewestSessions(context.Context, int) ([]orchestrator.Session, error) {
	return []orchestrator.Session{
		{Conversation: orchestrator.ConversationID{Chat: owner}, Title: "mine"},
		{Conversation: orchestrator.ConversationID{Chat: 8}, Title: "of another user"},
		{Conversation: orchestrator.ConversationID{Chat: -5}, Title: "of a group"},
		{Conversation: orchestrator.ConversationID{Chat: -6}, Title: "of a group that is not served"},
	}, nil
}

func (w *world) Status(context.Context, orchestrator.ConversationID) (orchestrator.Status, error) {
	return orchestrator.Status{Agent: "claude", Dir: "/work"}, nil
}

func (w *world) SubmitOnce(_ context.Context, id cli.TurnID, p orchestrator.Prompt) (orchestrator.Receipt, error) {
	w.note("submit " + string(id) + " " + p.Text)
	return orchestrator.Receipt{Turn: id, Full: p.Text == "too much"}, nil
}

func (w *world) StopTurn(_ context.Context, turn cli.TurnID, _ orchestrator.Press) error {
	w.note("stop " + string(turn))
	return orchestrator.ErrNoTurn
}

func (w *world) CancelQueued(context.Context, cli.TurnID, orchestrator.Press) (bool, error) {
	return false, nil
}

func (w *world) Approval(_ context.Context, id orchestrator.ApprovalID, in orchestrator.ConversationID) (
	orchestrator.Approval, error) {
	for _, a := range w.approvals {
		if a.ID == id && a.Conversation == in {
			return a, nil
		}
	}
	return orchestrator.Approval{}, orchestrator.ErrNoApproval
}

func (w *world) Decide(_ context.Context, id orchestrator.ApprovalID, nonce string, by orchestrator.Press,
	v orchestrator.Verdict) (orchestrator.Approval, error) {
	w.note("decide " + string(id) + " " + nonce + " " + string(v.Choice))
	return orchestrator.Approval{}, w.decide()
}

func (w *world) ShowTyped(_ context.Context, _ orchestrator.Press, id, text string) error {
	w.note("show " + id + " " + text)
	return nil
}

func (w *world) CommandTyped(_ context.Context, _ orchestrator.Press, id, text string) error {
	w.note("command " + id + " " + text)
	return errors.New("no such command")
}

func (w *world) AbortTyped(context.Context, orchestrator.Press, string) error {
	w.note("abort")
	return nil
}

// served is a Server over a socket.
type served struct {
	*world
	t   *testing.T
	hub *Hub
	s   *Server
	dir string
}

func serve(t *testing.T) *served {
	t.Helper()
	w := &world{role: orchestrator.RoleOwner, turns: map[cli.TurnID]orchestrator.Turn{},
		decide: func() error { return nil }}
	log := slog.New(slog.DiscardHandler)
	hub, dir := NewHub(time.Now, log), t.TempDir()
	s := NewServer(Options{
		Hub: hub, Dir: dir, Version: "1", Owner: func() orchestrator.PersonID { return owner }, RoleOf: w.RoleOf,
		Admit: func(_ net.Conn, secret string) error {
			if secret != "secret" {
				return errors.New("wrong secret")
			}
			return nil
		},
		Group: func(chat int64) bool { return chat == -5 }, Store: w, Desk: w, Chat: w, Now: time.Now, Log: log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); serving.Wait() })
	return &served{world: w, t: t, hub: hub, s: s, dir: dir}
}

// client is one end of a connection.
type client struct {
	net.Conn
	t  *testing.T
	in *json.Decoder
}

func (s *served) dial(secret string) *client {
	s.t.Helper()
	var conn net.Conn
	var err error
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if conn, err = statesocket.Dial(s.t.Context(), s.dir, wire.Socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatal(err)
		}
	}
	s.t.Cleanup(func() { conn.Close() })
	c := &client{Conn: conn, t: s.t, in: json.NewDecoder(bufio.NewReader(conn))}
	c.send(wire.Request{Hello: &wire.Hello{Version: wire.Version, Secret: secret}})
	return c
}

// open connects and opens a conversation.
func (s *served) open(conversation string) (*client, wire.Snapshot) {
	s.t.Helper()
	c := s.dial("secret")
	if m := c.next(); m.Welcome == nil {
		s.t.Fatalf("no welcome: %+v", m)
	}
	c.send(wire.Request{Open: &wire.Open{Conversation: conversation}})
	m := c.next()
	if m.Snapshot == nil {
		s.t.Fatalf("no snapshot: %+v", m)
	}
	return c, *m.Snapshot
}

func (c *client) send(r wire.Request) {
	c.t.Helper()
	if err := json.NewEncoder(c.Conn).Encode(r); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next message that is not an Activity.
func (c *client) next() wire.Message {
	c.t.Helper()
	for {
		var m wire.Message
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if err := c.in.Decode(&m); err != nil {
			c.t.Fatal(err)
		}
		if m.Activity == nil {
			return m
		}
	}
}
