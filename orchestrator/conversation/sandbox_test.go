package conversation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/approval"
	"ductor/orchestrator/conversation"
)

// policy maps the last part of a directory's name to its sandbox.
type policy struct {
	of     map[string]cli.Sandbox
	forced cli.Sandbox
	err    error
}

func (p policy) Of(dir string, _ orchestrator.ConversationID) cli.Sandbox {
	return p.of[filepath.Base(dir)]
}

func (p policy) Forced(string, orchestrator.ConversationID) (cli.Sandbox, error) {
	return p.forced, p.err
}

// openIn opens a house with the directories "plain", "web" and "db" below its root, and starts in "plain".
func openIn(t *testing.T, path, root string, p orchestrator.Sandboxes) *house {
	t.Helper()
	for _, name := range []string{"plain", "web", "db"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h := openAt(t, path, func(o *conversation.Options) {
		o.Sandboxes, o.Orders = p, o.Store.(*store.DB)
		o.Files = func(cli.Sandbox) (approval.Files, error) { return hostFiles{}, nil }
		o.Dir, o.Roots = filepath.Join(root, "plain"), []string{root}
		next := o.NewID
		o.NewID = func() string { return filepath.Base(filepath.Dir(path)) + next() }
	})
	h.agent.reply = placed
	return h
}

// hostFiles lets the sandboxes of a test use the files of this host.
type hostFiles struct{}

func (hostFiles) ReadFile(_ context.Context, dir, below string, most int64) ([]byte, error) {
	return rooted.Read(dir, below, most)
}

func (hostFiles) RealPaths(_ context.Context, paths []string) ([]string, error) {
	return rooted.RealPaths(paths), nil
}

// placed is echo for an agent that names its sessions after its environment.
func placed(ctx context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
	emit(cli.SessionStarted{AgentSessionID: cli.AgentSessionID(string(who) + "@" + string(req.Sandbox)), Model: "m1"})
	text := "echo: " + lastLine(req.Prompt)
	r := cli.Result{Text: text, Model: "m1"}
	emit(r)
	return r
}

// inSandboxes is the policy of the tests' projects.
func inSandboxes() policy { return policy{of: map[string]cli.Sandbox{"web": "web", "db": "db"}} }

func TestAConversationRunsWhereItsProjectDoes(t *testing.T) {
	root := t.TempDir()
	h := openIn(t, newPath(t), root, inSandboxes())
	for _, tc := range []struct {
		dir string
		in  cli.Sandbox
		who cli.Agent
	}{{"", "", "claude"}, {"web", "web", "claude"}, {"db", "db", "codex"}, {"plain", "", "claude"}} {
		if tc.dir != "" {
			if _, err := h.SetDir(t.Context(), here, filepath.Join(root, tc.dir), owner); err != nil {
				t.Fatal(err)
			}
		}
		st, err := h.Status(t.Context(), here)
		if err != nil || st.Sandbox != tc.in || st.Agent != tc.who {
			t.Errorf("in %q the status says %q, %q, %v", tc.dir, st.Sandbox, st.Agent, err)
		}
		menu, err := h.Menu(t.Context(), here)
		if err != nil || menu[0].Agent != tc.who {
			t.Errorf("in %q the menu is %+v, %v", tc.dir, menu, err)
		}
		req := h.ask(t, here, "in "+tc.dir)
		if req.Sandbox != tc.in || req.Session == "" || req.Resume != "" || filepath.Base(req.Dir) != filepath.Base(st.Dir) {
			t.Errorf("in %q was asked %+v", tc.dir, req)
		}
	}
}

// The request lists the files that a prompt names, so that they can be copied to the agent's environment.
func TestARequestTellsItsFiles(t *testing.T) {
	h := openIn(t, newPath(t), t.TempDir(), inSandboxes())
	_, err := h.Submit(t.Context(), orchestrator.Prompt{Conversation: here, Person: 1, Text: "look", Updates: []int64{1 << 40},
		Attachments: []orchestrator.Attachment{{Path: "/u/a.png", Name: "a.png", MIME: "image/png", Image: true}, {Path: "/u/b", Name: "b", MIME: "text/plain"}}}, orchestrator.Wants{})
	if err != nil {
		t.Fatal(err)
	}
	h.await(t, "done look")
	if got := h.agent.requests()[0].Files; !slices.Equal(got, []string{"/u/a.png", "/u/b"}) {
		t.Errorf("told of %q", got)
	}
}

// The agent hears of an answer once its files are there. Nothing is decided if they cannot be brought. A path in a text brings nothing.
func TestFilesOfAnAnswerAreBroughtBeforeItIsDecided(t *testing.T) {
	root := t.TempDir()
	h := openIn(t, newPath(t), root, inSandboxes())
	if _, err := h.SetDir(t.Context(), here, filepath.Join(root, "web"), owner); err != nil {
		t.Fatal(err)
	}
	h.asking(cli.QuestionAsked{ID: "q", Questions: []cli.Question{{Text: "Which?", Free: true}}}, bash("b", "make"))
	h.submit(t, here, "go")
	a := h.awaitApproval(t, "Which?")
	answer := orchestrator.Verdict{
		Choice: orchestrator.Answer, Answers: [][]string{{"this"}},
		Files: []orchestrator.Attachment{{Path: lostFile}},
	}
	now, err := h.Decide(t.Context(), a.ID, a.Nonce, by(owner, here), answer)
	if !errors.Is(err, orchestrator.ErrNotBrought) || now.State != orchestrator.ApprovalOpen {
		t.Errorf("with a lost file the question is %s, %v", now.State, err)
	}
	answer.Files[0].Path = "/u/a"
	h.decide(t, a, answer)
	typed := orchestrator.Verdict{Choice: orchestrator.Deny, Reason: "[Attached file: /u/b]"}
	h.decide(t, h.awaitApproval(t, "make"), typed)
	h.await(t, "done go")
	want := []string{"web: [/u/lost]", "web: [/u/a]", "q true [[this]]", "b false [Attached file: /u/b][]"}
	if got := h.agent.decisions(); !slices.Equal(got, want) {
		t.Errorf("the agent got %q, want %q", got, want)
	}
}

// A session continues when its environment changes: the agent there gets the history. When the environment changes
// back, the first agent session continues. An agent's own session ID is never used in another environment.
func TestASessionOutlivesAChangeOfItsPlace(t *testing.T) {
	path, root := newPath(t), t.TempDir()
	inside := policy{of: map[string]cli.Sandbox{"plain": "web"}}
	var first cli.Request
	for _, tc := range []struct {
		prompt string
		policy policy
		resume cli.AgentSessionID
		told   []string // the history that the agent gets
		not    []string
	}{
		{"one", policy{}, "", nil, nil},
		{"two", policy{}, "claude@", nil, []string{"one"}},
		{"three", inside, "", []string{"one", "two"}, nil},
		{"four", inside, "claude@web", nil, []string{"one", "three"}},
		{"five", policy{}, "claude@", []string{"three", "four"}, []string{"one", "two"}},
	} {
		h := openIn(t, path, root, tc.policy)
		req := h.ask(t, here, tc.prompt)
		if first.Session == "" {
			first = req
		}
		if req.Resume != tc.resume || req.Sandbox != tc.policy.of["plain"] || req.Session != first.Session {
			t.Errorf("%s resumes %q of session %s in %q", tc.prompt, req.Resume, req.Session, req.Sandbox)
		}
		for _, said := range tc.told {
			if !strings.Contains(req.Prompt, "User: "+said+"\n") {
				t.Errorf("%s is not told of %s:\n%s", tc.prompt, said, req.Prompt)
			}
		}
		for _, said := range tc.not {
			if strings.Contains(req.Prompt, "User: "+said+"\n") {
				t.Errorf("%s is told of %s again:\n%s", tc.prompt, said, req.Prompt)
			}
		}
		h.shut()
		h.db.Close()
	}
}

// A task may ask for a sandbox if the policy has none, but it cannot leave one.
func TestAnOrderMayAskForASandboxAndNeverLeavesOne(t *testing.T) {
	web := map[string]cli.Sandbox{"plain": "web"}
	for _, tc := range []struct {
		name   string
		policy orchestrator.Sandboxes
		wants  string
		in     cli.Sandbox
		fails  string // the failure's sentence; empty: it runs
	}{
		{"nothing, here", policy{}, "", "", ""},
		{"nothing, in a sandbox", policy{of: web}, "", "web", ""},
		{"docker, here", policy{forced: "default"}, "docker", "default", ""},
		{"docker, in a sandbox", policy{of: web, forced: "default"}, "docker", "web", ""},
		{"docker, and there is none", policy{err: errors.New("no image is configured; set sandbox.image")}, "docker", "",
			"The sandbox of the agent is missing: no image is configured; set sandbox.image. I run nothing outside of it: `ductor doctor` shows how to fix it."},
		{"docker, and none is named", policy{}, "docker", "",
			"The sandbox of the agent is missing: this task must run in a sandbox, but none is configured. I run nothing outside of it: `ductor doctor` shows how to fix it."},
		{"docker, without any policy", nil, "docker", "",
			"The sandbox of the agent is missing: this task must run in a sandbox, but none is configured. I run nothing outside of it: `ductor doctor` shows how to fix it."},
		{"off, here", policy{}, "off", "", ""},
		{"off, without any policy", nil, "off", "", ""},
		{"off, in a sandbox", policy{of: web}, "off", "",
			"The agent failed: this task must run outside of a sandbox, but everything in its folder runs in one."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := openIn(t, newPath(t), t.TempDir(), tc.policy)
			h.order(t, order("o1", "go", orchestrator.Wants{Sandbox: tc.wants}))
			h.awaitEnded(t, "o1")
			turn, err := h.db.Turn(t.Context(), "o1")
			if err != nil || turn.Wants.Sandbox != tc.wants || turn.Outcome.Failure != tc.fails || turn.Sandbox != tc.in {
				t.Errorf("%+v in %q: %q, want %q; %v", turn.Wants, turn.Sandbox, turn.Outcome.Failure, tc.fails, err)
			}
			asked := h.agent.requests()
			if ran := len(asked) == 1; ran != (tc.fails == "") || ran && asked[0].Sandbox != tc.in {
				t.Errorf("asked %+v", asked)
			}
		})
	}
	h := openIn(t, newPath(t), t.TempDir(), policy{})
	if err := h.SubmitOrder(t.Context(), order("o2", "go", orchestrator.Wants{Sandbox: "vm"})); !errors.Is(err, orchestrator.ErrBadChoice) {
		t.Errorf("a place of no known kind: %v", err)
	}
}

// A turn without its sandbox reports why, and Run again tries the same environment again.
func TestATurnWithoutItsSandboxCanBeRunAgain(t *testing.T) {
	h := openIn(t, newPath(t), t.TempDir(), policy{of: map[string]cli.Sandbox{"plain": "web"}})
	h.agent.reply = func(_ context.Context, who cli.Agent, req cli.Request, emit func(cli.Event)) cli.Result {
		r := cli.Result{Err: &cli.Failure{Kind: cli.NoSandbox, Agent: who, Sandbox: req.Sandbox, Reason: "Docker cannot be reached; start it"}}
		emit(r)
		return r
	}
	failed := h.submit(t, here, "go")
	h.await(t, "failed go")
	turn, err := h.db.Turn(t.Context(), failed.Turn)
	if err != nil || !turn.Outcome.Recovery.Offers(orchestrator.ActionAgain) ||
		turn.Outcome.Failure != "The sandbox web of Claude is missing: Docker cannot be reached; start it. I run nothing outside of it: `ductor doctor` shows how to fix it." {
		t.Errorf("%+v, %v", turn.Outcome, err)
	}
	h.agent.mu.Lock()
	h.agent.reply = placed
	h.agent.mu.Unlock()
	if _, err := h.Choose(t.Context(), failed.Turn, orchestrator.ActionAgain, orchestrator.Press{Conversation: here, Person: 1, Updates: []int64{1 << 41}, Role: orchestrator.RoleUser}); err != nil {
		t.Fatal(err)
	}
	h.await(t, "done go")
	asked := h.agent.requests()
	if len(asked) != 2 || asked[0].Sandbox != "web" || asked[1].Sandbox != "web" || asked[1].Session != asked[0].Session {
		t.Errorf("asked %+v", asked)
	}
}

// After a restart with another policy, a running turn continues in its environment, and the next prompt runs in the new
// one.
func TestAChangedPolicyFindsATurnThatWasRunning(t *testing.T) {
	web := policy{of: map[string]cli.Sandbox{"plain": "web"}}
	for _, tc := range []struct {
		name    string
		remains cli.Remains
		after   policy
		shown   string // of the turn that ran
		asked   []cli.Sandbox
		resumed int
	}{
		{"it runs", cli.RemainsRun, policy{}, "done running", []cli.Sandbox{""}, 1},
		{"nobody knows", cli.RemainsUnknown, policy{}, "redelivered running: interrupted", []cli.Sandbox{""}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path, root := newPath(t), t.TempDir()
			before := openIn(t, path, root, web)
			before.agent.reply = untilAborted
			before.submit(t, here, "running")
			before.awaitAsked(t, 1)
			before.Detach(t.Context())

			h := openIn(t, path, root, tc.after)
			h.agent.remains = map[string]cli.Remains{"running": tc.remains}
			h.agent.open = func(cli.TurnID) string { return "running" }
			h.recover(t)
			h.await(t, tc.shown)
			h.ask(t, here, "next")
			if f := h.agent.found; len(f) != 1 || f[0].Sandbox != "web" {
				t.Errorf("looked for %+v", f)
			}
			var asked []cli.Sandbox
			for _, req := range h.agent.requests() {
				asked = append(asked, req.Sandbox)
			}
			if !slices.Equal(asked, tc.asked) || len(h.agent.resumed) != tc.resumed || tc.resumed > 0 && h.agent.resumed[0].Sandbox != "web" {
				t.Errorf("asked in %q, gone on with %+v", asked, h.agent.resumed)
			}
		})
	}
}
