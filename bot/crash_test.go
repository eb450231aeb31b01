package bot_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/bot"
	"ductor/internal/sim/telegram"
	"ductor/orchestrator"
)

// mortal makes a bot die at a chosen step: from then on journal, desk and network do nothing, as after kill -9. A step
// is one call to the journal or one submission.
type mortal struct {
	bot.Desk
	orchestrator.Journal
	transport http.RoundTripper

	mu    sync.Mutex
	steps int
	death
	dead bool
	log  []string
	died chan struct{}
}

// death determines when ductor dies.
type death struct {
	of    string // the name of the counted steps; empty for all
	at    int    // the step to die at; 0 for never
	after bool   // die after the step took effect, but before its caller knows
}

var errDead = errors.New("ductor is dead")

// step runs one step, or dies.
func (m *mortal) step(name string, do func() error) error {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return errDead
	}
	m.log = append(m.log, name)
	now := false
	if m.of == "" || m.of == name {
		m.steps++
		now = m.steps == m.at
	}
	if now {
		m.dead = true
		defer close(m.died)
	}
	m.mu.Unlock()
	if now && !m.after {
		return errDead
	}
	err := do()
	if now {
		return errDead
	}
	return err
}

func (m *mortal) AppendUpdates(ctx context.Context, u []orchestrator.Update) (fresh []orchestrator.Update, err error) {
	err = m.step("append", func() (err error) {
		fresh, err = m.Journal.AppendUpdates(ctx, u)
		return err
	})
	return fresh, err
}

func (m *mortal) Flush(ctx context.Context) error {
	return m.step("flush", func() error { return m.Journal.Flush(ctx) })
}

func (m *mortal) FinishUpdates(ctx context.Context, ids []int64, l ...orchestrator.Message) error {
	return m.step("finish", func() error { return m.Journal.FinishUpdates(ctx, ids, l...) })
}

func (m *mortal) ForgetUpdates(ctx context.Context, ids []int64, l ...orchestrator.Message) error {
	return m.step("forget", func() error { return m.Journal.ForgetUpdates(ctx, ids, l...) })
}

func (m *mortal) SaveMessage(ctx context.Context, row orchestrator.Message) error {
	return m.step(stepOf(row), func() error { return m.Journal.SaveMessage(ctx, row) })
}

// stepOf names the step that stores a message, such as "part sent".
func stepOf(row orchestrator.Message) string {
	kind, _, _ := strings.Cut(row.Key, "/")
	return kind + " " + string(row.State)
}

func (m *mortal) Submit(ctx context.Context, p orchestrator.Prompt, w orchestrator.Wants) (r orchestrator.Receipt, err error) {
	err = m.step("submit", func() (err error) {
		r, err = m.Desk.Submit(ctx, p, w)
		return err
	})
	return r, err
}

func (m *mortal) Stop(ctx context.Context, by orchestrator.Press, told func(*orchestrator.Stopping),
	answer func(orchestrator.AbortReport) orchestrator.Handled) (r orchestrator.AbortReport, err error) {
	err = m.step("abort", func() (err error) {
		r, err = m.Desk.Stop(ctx, by, told, answer)
		return err
	})
	return r, err
}

func (m *mortal) New(ctx context.Context, id orchestrator.ConversationID) error {
	return m.step("new", func() error { return m.Desk.New(ctx, id) })
}

func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	dead := m.dead
	m.mu.Unlock()
	if dead {
		return nil, errDead
	}
	return m.transport.RoundTrip(r)
}

// TestNoDeathLosesOrDoublesAMessage kills the bot at every step of handling a few messages, and starts it again on the
// same journal. Each message is in one prompt, each command is answered, and nothing but a refusal is shown twice.
func TestNoDeathLosesOrDoublesAMessage(t *testing.T) {
	everyDeath(t, liveAndDie(t, 0, false), 8, func(t *testing.T, at int, after bool) { liveAndDie(t, at, after) })
}

// everyDeath runs die for each step: death after it, and death before it if a call to Telegram or the agent may have
// happened since the step before. Otherwise the two deaths are the same.
func everyDeath(t *testing.T, steps []string, least int, die func(t *testing.T, at int, after bool)) {
	t.Helper()
	if len(steps) < least {
		t.Fatalf("only the steps %q: the test kills nothing", steps)
	}
	for i, name := range steps {
		t.Run(fmt.Sprintf("after step %d %s", i+1, name), func(t *testing.T) { die(t, i+1, true) })
		switch name {
		case "append", "native", "outcome", "notice sent", "card sent", "approval sent", "queued sent", "decide":
			t.Run(fmt.Sprintf("before step %d %s", i+1, name), func(t *testing.T) { die(t, i+1, false) })
		}
	}
}

// liveAndDie sends the messages to a bot that dies at a step, and then to one that lives. It returns the steps.
func liveAndDie(t *testing.T, at int, after bool) (steps []string) {
	uploads := filepath.Join(t.TempDir(), "uploads")
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, uploads)
		first := &mortal{Desk: h.desk, Journal: h.journal, transport: h.opts.Transport, death: death{at: at, after: after}, died: make(chan struct{})}
		wire := h.opts.Transport

		h.opts.Journal, h.opts.Transport = first, first
		b, err := bot.New(context.Background(), h.opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx, first) }()
		synctest.Wait()
		h.sayAll()
		select {
		case <-first.died:
		case <-time.After(time.Minute): // the steps of parallel work vary a little
		}
		cancel()
		if err := <-done; err != nil && !errors.Is(err, errDead) {
			t.Errorf("Run ended with %v", err)
		}
		last, end := context.WithTimeout(context.Background(), time.Second)
		_ = b.Close(last)
		end()
		steps = first.log

		h.opts.Journal, h.opts.Transport = h.journal, wire
		h.serve(t)
		time.Sleep(time.Minute)
		h.checkAll(t, first)
	})
	return steps
}

func (h *botRig) sayAll() {
	h.ann.Send(h.chat, "one")
	h.ann.SendAlbum(h.chat, []telegram.File{{Name: "a.txt", Data: []byte("a")}, {Name: "b.txt", Data: []byte("b")}}, telegram.WithCaption("two"))
	h.ann.Paste(h.chat, "three"+strings.Repeat(".", telegram.MaxText))
	time.Sleep(5 * time.Second)
	h.ann.Send(h.chat, "/new")
	h.ann.Send(h.chat, "four")
	h.ann.SendSticker(h.chat, "👍")
}

func (h *botRig) checkAll(t *testing.T, first *mortal) {
	t.Helper()
	var got []string
	seen := make(map[int64]bool)
	for _, p := range h.desk.Prompts() {
		got = append(got, strings.TrimRight(p.Text, "."))
		for _, u := range p.Updates {
			if seen[u] {
				t.Errorf("update %d was submitted twice", u)
			}
			seen[u] = true
		}
		if p.Text == "two" && len(p.Attachments) != 2 || strings.HasPrefix(p.Text, "three") && len(p.Text) != telegram.MaxText+5 {
			t.Errorf("prompt %.20q is not whole: %d bytes, %d files", p.Text, len(p.Text), len(p.Attachments))
		}
	}
	if !slices.Equal(got, []string{"one", "two", "three", "four"}) {
		t.Errorf("prompts %q, want each once and in order; steps %q", got, first.log)
	}
	if open := h.journal.Open(); len(open) > 0 {
		t.Errorf("updates %v are open", open)
	}
	// A refusal must arrive, so it may appear twice; see updates.Finisher.Refuse.
	for text, most := range map[string]int{"New session": 1, "can't read stickers": 2} {
		notices, shown := 0, strings.Count(h.chat.Transcript(), text)
		for _, l := range h.journal.Said() {
			if strings.Contains(l, text) {
				notices++
			}
		}
		if notices != 1 || shown > most {
			t.Errorf("%q: %d notices, shown %d times; steps %q", text, notices, shown, first.log)
		}
		if shown == 0 && (most > 1 || !h.journal.HasUnknown()) {
			t.Errorf("%q is not shown, and not because its outcome is unknown; steps %q", text, first.log)
		}
	}
}
