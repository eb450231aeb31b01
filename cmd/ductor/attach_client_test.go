package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ductor/internal/attach/wire"
	"ductor/internal/statesocket"
)

// attached is a client of the protocol of attached terminals. It connects again whenever the connection ends, and
// repeats requests that have no reply.
type attached struct {
	t   testing.TB
	dir string // state directory
	in  string // the conversation

	life context.Context
	wg   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each message
	conn    net.Conn      // nil while it is not connected
	bye     *wire.Bye
	shown   screen
	replies map[string]wire.Reply
	waiting []wire.Request // without a reply
}

// screen has the lines of a terminal.
type screen struct {
	order     []string // the turns of entries
	entries   map[string]wire.Entry
	approvals map[string]wire.Approval
	notices   []wire.Notice
	list      []wire.Conversation
	snapshots int
	wrong     []string // violations of the protocol
}

// attach opens the owner's private chat in a terminal until the end of the test.
func (town *town) attach() *attached {
	town.t.Helper()
	life, end := context.WithCancel(context.Background())
	c := &attached{
		t: town.t, dir: town.cfg.Storage.Dir, life: life, changed: make(chan struct{}),
		shown:   screen{entries: map[string]wire.Entry{}, approvals: map[string]wire.Approval{}},
		replies: map[string]wire.Reply{},
	}
	c.wg.Go(c.run)
	town.t.Cleanup(func() {
		end()
		c.disconnect()
		c.wg.Wait()
		for _, w := range c.shown.wrong {
			town.t.Error(w)
		}
		if town.t.Failed() {
			town.t.Logf("the terminal: %s", c)
		}
	})
	c.await("a snapshot", func() bool { return c.shown.snapshots > 0 })
	return c
}

// run connects until the client is closed or refused.
func (c *attached) run() {
	for c.life.Err() == nil {
		conn, err := greet(c.life, c.dir)
		if err != nil {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-c.life.Done():
			}
			continue
		}
		c.mu.Lock()
		c.conn = conn
		c.mu.Unlock()
		c.send(wire.Request{Open: &wire.Open{Conversation: c.in}})
		c.read(conn)
		c.mu.Lock()
		c.conn = nil
		over := c.bye != nil
		c.mu.Unlock()
		if over {
			return
		}
	}
}

// greet connects and sends the secret.
func greet(ctx context.Context, dir string) (net.Conn, error) {
	secret, err := statesocket.ReadSecret(dir)
	if err != nil {
		return nil, err
	}
	return greetWith(ctx, dir, wire.Hello{Version: wire.Version, Secret: secret})
}

func greetWith(ctx context.Context, dir string, hello wire.Hello) (net.Conn, error) {
	conn, err := statesocket.Dial(ctx, dir, wire.Socket)
	if err != nil {
		return nil, err
	}
	return conn, json.NewEncoder(conn).Encode(wire.Request{Hello: &hello})
}

func (c *attached) read(conn net.Conn) {
	lines := bufio.NewReader(conn)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m wire.Message
		if err := json.Unmarshal(line, &m); err != nil {
			c.t.Errorf("a line of ductor: %v: %.200s", err, line)
			return
		}
		c.mu.Lock()
		c.apply(m)
		close(c.changed)
		c.changed = make(chan struct{})
		c.mu.Unlock()
	}
}

// apply applies a message. mu is held.
func (c *attached) apply(m wire.Message) {
	switch {
	case m.Bye != nil:
		c.bye = m.Bye
	case m.Conversations != nil:
		c.shown.list = m.Conversations
	case m.Snapshot != nil:
		c.applySnapshot(*m.Snapshot)
	case m.Reply != nil:
		if _, again := c.replies[m.Reply.ID]; !again {
			c.replies[m.Reply.ID] = *m.Reply
		}
		c.waiting = slices.DeleteFunc(c.waiting, func(r wire.Request) bool { return r.ID() == m.Reply.ID })
	case m.Entry != nil:
		c.put(*m.Entry)
	case m.Text != nil:
		c.change(m.Text.Turn, func(e *wire.Entry) {
			if m.Text.Offset > len(e.Answer) {
				wrong := fmt.Sprintf("text at %d follows an answer of %d bytes", m.Text.Offset, len(e.Answer))
				c.shown.wrong = append(c.shown.wrong, wrong)
				return
			}
			e.Answer = e.Answer[:m.Text.Offset] + m.Text.Text
		})
	case m.Tool != nil:
		c.change(m.Tool.Turn, func(e *wire.Entry) {
			i := slices.IndexFunc(e.Tools, func(t wire.Tool) bool { return t.ID == m.Tool.ID })
			if i < 0 {
				e.Tools = append(e.Tools, *m.Tool)
			} else {
				e.Tools[i] = *m.Tool
			}
		})
	case m.Change != nil:
		c.change(m.Change.Turn, func(e *wire.Entry) { e.Changes = append(e.Changes, *m.Change) })
	case m.Plan != nil:
		c.change(m.Plan.Turn, func(e *wire.Entry) { e.Plan = m.Plan.Steps })
	case m.Approval != nil:
		c.shown.approvals[m.Approval.ID] = *m.Approval
	case m.Notice != nil:
		c.addNotice(*m.Notice)
	}
}

func (c *attached) applySnapshot(s wire.Snapshot) {
	c.shown.snapshots++
	for turn, e := range c.shown.entries {
		if !e.State.Over() && !slices.ContainsFunc(s.Entries, func(e wire.Entry) bool { return e.Turn == turn }) {
			e.State = wire.StateCancelled
			c.shown.entries[turn] = e
		}
	}
	for _, e := range s.Entries {
		c.put(e)
	}
	for id, a := range c.shown.approvals {
		if a.State == wire.ApprovalOpen {
			a.State = wire.ApprovalWithdrawn
			c.shown.approvals[id] = a
		}
	}
	for _, a := range s.Approvals {
		c.shown.approvals[a.ID] = a
	}
	for _, n := range s.Notices {
		c.addNotice(n)
	}
	for _, r := range c.waiting {
		c.encode(r)
	}
}

// put replaces an entry, unless it is not complete yet.
func (c *attached) put(e wire.Entry) {
	if _, known := c.shown.entries[e.Turn]; !known {
		c.shown.order = append(c.shown.order, e.Turn)
	} else if e.Replayed {
		return
	}
	c.shown.entries[e.Turn] = e
}

func (c *attached) change(turn string, f func(*wire.Entry)) {
	if e, known := c.shown.entries[turn]; known && !e.State.Over() {
		f(&e)
		c.shown.entries[turn] = e
	}
}

func (c *attached) addNotice(n wire.Notice) {
	if !slices.ContainsFunc(c.shown.notices, func(old wire.Notice) bool { return old.ID == n.ID }) {
		c.shown.notices = append(c.shown.notices, n)
	}
}

// send sends a request once, if the client is connected.
func (c *attached) send(r wire.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.encode(r)
}

func (c *attached) encode(r wire.Request) {
	if c.conn != nil {
		_ = json.NewEncoder(c.conn).Encode(r) // an error also ends the reader
	}
}

// ask sends a request until it has a reply.
func (c *attached) ask(r wire.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, r)
	c.encode(r)
}

// say sends a prompt or a command, and waits for the reply.
func (c *attached) say(id, text string) wire.Reply {
	c.t.Helper()
	if strings.HasPrefix(text, "/") {
		c.ask(wire.Request{Command: &wire.Command{ID: id, Text: text}})
	} else {
		c.ask(wire.Request{Prompt: &wire.Prompt{ID: id, Text: text}})
	}
	return c.reply(id)
}

func (c *attached) reply(id string) (r wire.Reply) {
	c.t.Helper()
	c.await("the reply to "+id, func() (ok bool) { r, ok = c.replies[id]; return ok })
	return r
}

// decide decides an approval and waits for the reply.
func (c *attached) decide(a wire.Approval, choice wire.Choice, answers ...[]string) wire.Reply {
	c.t.Helper()
	id := "d-" + a.ID + "-" + string(choice)
	c.ask(wire.Request{Decide: &wire.Decide{ID: id, Approval: a.ID, Choice: choice, Answers: answers}})
	return c.reply(id)
}

// await waits until is returns true. The client's lock is held during is.
func (c *attached) await(what string, is func() bool) {
	c.t.Helper()
	soon := time.After(patience)
	for {
		c.mu.Lock()
		ok, changed := is(), c.changed
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-soon:
			c.t.Fatalf("the terminal does not get %s: %s", what, c)
		}
	}
}

// awaitEntry waits for an entry with a state whose prompt or answer contains part.
func (c *attached) awaitEntry(state wire.State, part string) (e wire.Entry) {
	c.t.Helper()
	c.await(fmt.Sprintf("an entry that is %s with %q", state, part), func() bool {
		for _, turn := range c.shown.order {
			e = c.shown.entries[turn]
			if e.State == state && strings.Contains(e.Prompt+"\n"+e.Answer, part) {
				return true
			}
		}
		return false
	})
	return e
}

// awaitApproval waits for an approval with a state.
func (c *attached) awaitApproval(state wire.ApprovalState, part string) (a wire.Approval) {
	c.t.Helper()
	c.await(fmt.Sprintf("an approval that is %s with %q", state, part), func() bool {
		for _, a = range c.shown.approvals {
			raw, _ := json.Marshal(a)
			if a.State == state && strings.Contains(string(raw), part) {
				return true
			}
		}
		return false
	})
	return a
}

func (c *attached) awaitNotice(part string) {
	c.t.Helper()
	c.await("a notice with "+part, func() bool {
		return slices.ContainsFunc(c.shown.notices, func(n wire.Notice) bool { return strings.Contains(n.Text, part) })
	})
}

// disconnect closes the connection.
func (c *attached) disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

// String returns the lines of the terminal.
func (c *attached) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, turn := range c.shown.order {
		e := c.shown.entries[turn]
		fmt.Fprintf(&b, "\n%s %s %.80q → %.200q %s", e.Turn, e.State, e.Prompt, e.Answer, e.Failure)
	}
	for _, id := range slices.Sorted(maps.Keys(c.shown.approvals)) {
		fmt.Fprintf(&b, "\napproval %s %s", id, c.shown.approvals[id].State)
	}
	for _, n := range c.shown.notices {
		fmt.Fprintf(&b, "\nnotice %.100q", n.Text)
	}
	for _, r := range c.waiting {
		fmt.Fprintf(&b, "\nwaits: %+v", r.ID())
	}
	return b.String()
}

// refused returns the sentence with which ductor refuses a hello.
func refused(t testing.TB, conn net.Conn, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	var m wire.Message
	err = json.NewDecoder(conn).Decode(&m)
	if errors.Is(err, net.ErrClosed) || m.Bye == nil {
		t.Fatalf("ductor answers %+v, %v", m, err)
	}
	return m.Bye.Sentence
}
