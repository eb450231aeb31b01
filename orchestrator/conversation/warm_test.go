package conversation_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
	"ductor/orchestrator"
)

// The request that warms an agent equals the next turn's request, except for the turn and its prompt.
func TestAnAgentIsOpenedAheadAsTheNextTurnWillWantIt(t *testing.T) {
	for _, tc := range []struct {
		name  string
		opens int
		do    func(t *testing.T, h *house) error
	}{
		{"a model is chosen", 1, func(t *testing.T, h *house) error {
			return h.SetModel(t.Context(), here, "codex", "big", "high")
		}},
		{"another agent is chosen in a session that has a history", 1, func(t *testing.T, h *house) error {
			h.submit(t, here, "first")
			h.await(t, "done first")
			return h.SetModel(t.Context(), here, "codex", "", "")
		}},
		{"a session is left", 1, func(t *testing.T, h *house) error {
			h.submit(t, here, "first")
			h.await(t, "done first")
			return h.New(t.Context(), here)
		}},
		{"a permission mode is chosen", 1, func(t *testing.T, h *house) error {
			return h.SetPermission(t.Context(), here, cli.Plan, 1)
		}},
		{"a bypass is chosen", 1, func(t *testing.T, h *house) error {
			return h.Bypass(t.Context(), here, time.Hour, 1)
		}},
		{"a role is chosen", 1, func(t *testing.T, h *house) error {
			return h.SetRole(t.Context(), here, "")
		}},
		{"a directory is chosen", 1, func(t *testing.T, h *house) error {
			must(t, os.Mkdir(filepath.Join(h.root(t), "sub"), 0o755))
			_, err := h.SetDir(t.Context(), here, "sub", 1)
			return err
		}},
		{"a turn is aborted", 1, func(t *testing.T, h *house) error {
			h.agent.replies(untilAborted)
			h.submit(t, here, "first")
			h.awaitAsked(t, 1)
			_, err := h.Abort(t.Context(), here)
			if synctest.Wait(); h.agent.opened() != nil {
				t.Error("the next agent starts while the chat is to show the abort")
			}
			h.agent.replies(echo)
			return err
		}},
		{"an earlier session is gone on with", 2, func(t *testing.T, h *house) error {
			h.submit(t, here, "first")
			h.await(t, "done first")
			if err := h.New(t.Context(), here); err != nil {
				return err
			}
			synctest.Wait() // one is opened for the new session
			sessions, err := h.Sessions(t.Context(), here)
			if err != nil {
				return err
			}
			return h.Resume(t.Context(), sessions[0], orchestrator.AgentEnv{})
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Log(tc.name)
			h := open(t)
			if err := tc.do(t, h); err != nil {
				t.Fatal(err)
			}
			h.eventually(t, "an agent is opened ahead", func() bool { return len(h.agent.opened()) == tc.opens })
			ahead := h.agent.opened()[tc.opens-1]
			h.submit(t, here, "go")
			h.await(t, "done go")
			want := opening{who: h.agent.agents[len(h.agent.agents)-1], req: h.agent.requests()[len(h.agent.agents)-1]}
			want.req.Turn, want.req.Prompt, want.req.Started = "", "", nil
			if ahead.req.Session == "" { // it started with the turn
				want.req.Session = ""
			}
			if diff := cmp.Diff(want, ahead, cmp.AllowUnexported(opening{})); diff != "" {
				t.Errorf("opened ahead (+) differs from what was asked (-):\n%s", diff)
			}
		})
	}
}

func TestStatusTellsWhatLives(t *testing.T) {
	h := open(t)
	h.agent.living = cli.Living{Processes: 2, MaxProcesses: 4, Memory: 3 << 20}
	st, err := h.Status(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h.agent.living, st.Live); diff != "" {
		t.Error(diff)
	}
}
