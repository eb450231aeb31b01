package conversation_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// untilAsked makes turns hang until they are ended or switched to ask mode, and reports which.
func (h *house) untilAsked() {
	told := make(chan struct{})
	h.agent.setMode = func(_ cli.TurnID, mode cli.PermissionMode) error {
		if mode != cli.Ask {
			return errors.New("another mode")
		}
		close(told)
		return nil
	}
	h.agent.reply = func(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		emit(cli.CaughtUp{})
		select {
		case <-told:
			return cli.Result{Text: "told"}
		case <-ctx.Done():
			return cli.Cut(ctx, who)
		}
	}
}

func (h *house) bypass(t *testing.T, lasts time.Duration) {
	t.Helper()
	if err := h.Bypass(t.Context(), here, lasts, owner); err != nil {
		t.Fatal(err)
	}
}

func (h *house) mode(t *testing.T) cli.PermissionMode {
	t.Helper()
	st, err := h.Status(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	return st.Permission
}

func TestBypassEndsForTheTurnThatRuns(t *testing.T) {
	for name, can := range map[string]bool{"an agent that can be told": true, "one that cannot": false} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			h.untilAsked()
			want := "done running"
			if !can {
				h.agent.setMode, want = nil, "failed running"
			}
			h.bypass(t, 30*time.Minute)
			h.submit(t, here, "running")
			h.awaitAsked(t, 1)
			if req := h.agent.requests()[0]; req.Permission != cli.Bypass || !req.Attended {
				t.Fatalf("it runs in %s, attended %v", req.Permission, req.Attended)
			}
			h.clock.advance(10 * time.Minute)
			h.bypass(t, 40*time.Minute) // extended
			h.clock.advance(20 * time.Minute)
			h.clock.ring()
			if got := h.mode(t); got != cli.Bypass || slices.Contains(h.chat.log(), want) {
				t.Fatalf("a bypass that was prolonged ended: %s", got)
			}
			h.clock.advance(20 * time.Minute)
			if got := h.mode(t); got != cli.Ask {
				t.Errorf("after its end the mode is %s", got)
			}
			h.clock.ring()
			h.await(t, want)
			if !slices.ContainsFunc(h.chat.log(), func(line string) bool { return strings.Contains(line, "Bypass is over") }) {
				t.Errorf("the chat was not told: %q", h.chat.log())
			}
			h.agent.reply = echo
			if got := h.ask(t, here, "next").Permission; got != cli.Ask {
				t.Errorf("the next turn ran in %s", got)
			}
			log, err := h.Audit(t.Context(), time.Time{}, 10)
			if err != nil || len(log) != 3 || log[0].Reason != "expired" || log[0].Title != "ask" {
				t.Errorf("the audit is %+v, %v", log, err)
			}
		})
	}
}

// If the clock is set back before the end of a bypass, the bypass lasts no longer, neither for the running turn nor for
// the next.
func TestAClockThatIsSetBackProlongsNoBypass(t *testing.T) {
	h := open(t)
	h.untilAsked()
	h.bypass(t, 30*time.Minute)
	h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	h.clock.jump(-5 * time.Hour)
	h.clock.advance(29 * time.Minute)
	h.clock.ring()
	if got := h.mode(t); got != cli.Bypass {
		t.Fatalf("before its end the mode is %s", got)
	}
	h.clock.advance(time.Minute)
	h.clock.ring()
	h.await(t, "done running")
	h.agent.reply = echo
	if got := h.ask(t, here, "next").Permission; got != cli.Ask {
		t.Errorf("the next turn ran in %s", got)
	}
}

func TestATurnLeavesABypassThatItsChatLeft(t *testing.T) {
	h := open(t)
	h.untilAsked()
	h.bypass(t, time.Hour)
	h.submit(t, here, "running")
	h.awaitAsked(t, 1)
	must(t, h.SetPermission(t.Context(), here, cli.AcceptEdits, owner))
	h.clock.advance(time.Hour)
	h.clock.ring()
	h.await(t, "done running")
	if got := h.mode(t); got != cli.AcceptEdits {
		t.Errorf("the mode is %s", got)
	}
}

func TestARestartEndsBypass(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	before := openAt(t, path, nil)
	before.agent.reply = untilAborted
	before.bypass(t, time.Hour)
	before.submit(t, here, "running")
	before.awaitAsked(t, 1)
	before.submit(t, here, "waiting")
	before.Detach(t.Context())

	h := successorOf(t, path, map[string]cli.Remains{"running": cli.RemainsRun})
	h.untilAsked()
	h.recover(t)
	h.await(t, "done running")
	h.await(t, "done waiting")
	if got := h.agent.resumed[0].Permission; got != cli.Bypass {
		t.Errorf("what runs in bypass is taken for one in %s", got)
	}
	if got := h.agent.requests()[0].Permission; got != cli.Ask {
		t.Errorf("what waited ran in %s", got)
	}
	if got := h.mode(t); got != cli.Ask {
		t.Errorf("the mode is %s", got)
	}
}

func TestABypassHasAnEnd(t *testing.T) {
	h := open(t)
	for _, lasts := range []time.Duration{0, -time.Second, orchestrator.MostBypass + time.Second} {
		if err := h.Bypass(t.Context(), here, lasts, owner); !errors.Is(err, orchestrator.ErrBadChoice) {
			t.Errorf("%s: %v", lasts, err)
		}
	}
	forever := openAt(t, filepath.Join(t.TempDir(), "db"), func(o *conversation.Options) { o.Mode = cli.Bypass })
	forever.clock.advance(48 * time.Hour)
	if req := forever.ask(t, here, "go"); req.Permission != cli.Bypass || req.Attended {
		t.Errorf("configured bypass: %s, attended %v", req.Permission, req.Attended)
	}
}

// The end of a bypass that cannot be stored at the start does not prevent the start. The bypass has ended at once. The
// chat is notified once, as soon as the store accepts writes.
func TestARestartEndsBypassWithoutTheStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	before := openAt(t, path, nil)
	before.bypass(t, time.Hour)
	before.shut()

	h, f := faultyHouse(t, path)
	f.set("EndBypasses", 2)
	h.recover(t)
	if got := h.mode(t); got != cli.Ask {
		t.Errorf("the mode is %s", got)
	}
	if got := h.ask(t, here, "next").Permission; got != cli.Ask {
		t.Errorf("the next turn ran in %s", got)
	}
	h.eventually(t, "the end to be stored", func() bool {
		over, err := h.db.EndedBypasses(t.Context())
		return err == nil && len(over) == 0
	})
	h.await(t, "notice 🔒 Bypass is over: ductor was restarted. The agent asks again before it writes or runs.")
}
