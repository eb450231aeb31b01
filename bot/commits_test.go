package bot_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/internal/store"
)

// quick is an agent that answers at once.
type quick struct{ echo }

func (q quick) Run(ctx context.Context, agent cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	if err := req.Started(ctx, cli.Start{Run: "run"}); err != nil {
		return cli.StartResult(ctx, agent, err)
	}
	emit(cli.SessionStarted{AgentSessionID: "native"})
	emit(cli.TextDelta{Text: "the answer"})
	r := cli.Result{Text: "the answer", Duration: time.Second}
	emit(r)
	return r
}

// commits counts the transactions in the log of a database.
func commits(t *testing.T, path string) (n int) {
	t.Helper()
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if len(log) < 32 {
		return 0
	}
	page := int(binary.BigEndian.Uint32(log[8:]))
	salt := string(log[16:24])
	for frame := log[32:]; len(frame) >= 24+page; frame = frame[24+page:] {
		if string(frame[8:16]) == salt && binary.BigEndian.Uint32(frame[4:]) != 0 {
			n++
		}
	}
	return n
}

// TestAShortTurnMakesFewCommits counts from the update to the answer in the chat.
func TestAShortTurnMakesFewCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, t.TempDir())
		path := filepath.Join(t.TempDir(), "ductor.db")
		db, err := store.Open(t.Context(), path, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		wire := h.opts.Transport
		life := &mortal{transport: wire, died: make(chan struct{})}
		h.opts.Transport = life
		d := startDuctor(t, h, mortalStore{life, db}, quick{echo{mu: &sync.Mutex{}, runs: map[string]int{}}})
		for _, prompt := range []string{"one", "two"} { // the first starts a session
			before := commits(t, path)
			h.ann.Send(h.chat, prompt)
			time.Sleep(time.Minute)
			if n := commits(t, path) - before; n == 0 || n > 4 {
				t.Errorf("%q makes %d commits: %q", prompt, n, life.log)
			}
		}
		if err := d.stop(enough); err != nil {
			t.Error(err)
		}
		if shown := h.chat.Transcript(); strings.Count(shown, "the answer") != 2 {
			t.Errorf("the chat shows\n%s", shown)
		}
	})
}
