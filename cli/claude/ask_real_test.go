package claude

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/internal/realagent"
)

func decider(t *testing.T, s cli.Session) cli.Decider {
	t.Helper()
	a, ok := s.(cli.Decider)
	if !ok {
		t.Fatal("the session does not ask")
	}
	return a
}

func decide(t *testing.T, s cli.Session, id cli.ApprovalID, d cli.Decision) {
	t.Helper()
	if err := decider(t, s).Decide(t.Context(), id, d); err != nil {
		t.Errorf("decide %q: %v", id, err)
	}
}

func TestRealApprovals(t *testing.T) {
	realagent.LongOnly(t)
	p, c, api := realCalls(t)
	made := filepath.Join(c.Work, "made.txt")
	req := cli.Request{Dir: c.Work, Attended: true, Turn: "T1", Prompt: `[[ask cmd="touch ` + made + `"]][[text "Done."]]`}
	s := clitest.Open(t, p, cli.Live, req)

	k := begin(t, s, req)
	asked := until[cli.ApprovalAsked](k)
	if asked.Tool != "Bash" || asked.Title != "touch made.txt" && asked.Title != "touch "+made || asked.Started == "" {
		t.Errorf("asked %+v", asked)
	}
	decide(t, s, asked.ID, cli.Decision{Allow: true})
	if err := decider(t, s).Decide(t.Context(), asked.ID, cli.Decision{}); !errors.Is(err, cli.ErrNotAsked) {
		t.Errorf("a second decision: %v", err)
	}
	r := k.end()
	if _, err := os.Stat(made); err != nil || r.Text != "Done." || r.Err != nil || len(r.Denials) != 0 {
		t.Errorf("allowed: %v, %+v", err, r)
	}

	req.Turn, req.Resume, req.Prompt = "T2", r.AgentSessionID, `[[ask cmd="touch never.txt"]][[text "Well."]]`
	k = begin(t, s, req)
	decide(t, s, until[cli.ApprovalAsked](k).ID, cli.Decision{Reason: "the moon is not right"})
	r = k.end()
	if _, err := os.Stat(filepath.Join(c.Work, "never.txt")); err == nil || r.Text != "Well." || len(r.Denials) != 1 {
		t.Errorf("denied: %v, %+v", err, r)
	}
	if !strings.Contains(lastAsked(api), "the moon is not right") {
		t.Error("the model was not told why")
	}

	req.Turn, req.Prompt = "T3", `[[write path="`+filepath.Join(c.Work, "new.txt")+`" text="one\ntwo\n"]][[text "Written."]]`
	k = begin(t, s, req)
	asked = until[cli.ApprovalAsked](k)
	if len(asked.Changes) != 1 || asked.Changes[0].Path != "new.txt" || !strings.Contains(asked.Changes[0].Diff, "+two") {
		t.Errorf("changes %+v", asked.Changes)
	}
	decide(t, s, asked.ID, cli.Decision{Allow: true})
	if r = k.end(); r.Text != "Written." {
		t.Errorf("wrote: %+v", r)
	}
	if b, err := os.ReadFile(filepath.Join(c.Work, "new.txt")); string(b) != "one\ntwo\n" {
		t.Errorf("file %q, %v", b, err)
	}
	if n := slices.IndexFunc(k.events, func(ev cli.Event) bool { _, is := ev.(cli.ApprovalWithdrawn); return is }); n >= 0 {
		t.Errorf("what was answered is withdrawn: %+v", k.events)
	}
}

// The process of an aborted turn is stopped if it does not react within milliseconds. The process of a replaced turn is
// not.
func TestRealInterruptWithdrawsWhatWasAsked(t *testing.T) {
	realagent.LongOnly(t)
	p, c, api := realCalls(t)
	req := cli.Request{Dir: c.Work, Attended: true, Turn: "T1", Prompt: `[[ask cmd="touch a"]][[text "never"]]`}
	s := clitest.Open(t, p, cli.Live, req)
	k := begin(t, s, req)
	asked := until[cli.ApprovalAsked](k)
	pid := s.Info().PID
	k.cancel(cli.ErrReplaced)
	r := k.end()
	if gone := clitest.Of[cli.ApprovalWithdrawn](k.events); !r.Aborted || len(gone) != 1 || gone[0].ID != asked.ID {
		t.Errorf("withdrawn %+v, %+v", gone, r)
	}
	if err := decider(t, s).Decide(t.Context(), asked.ID, cli.Decision{Allow: true}); !errors.Is(err, cli.ErrNotAsked) {
		t.Errorf("a decision after the turn: %v", err)
	}
	req.Turn, req.Resume, req.Prompt = "T2", r.AgentSessionID, `[[start]][[text "still here"]]`
	if r = begin(t, s, req).end(); r.Err != nil || s.Info().PID != pid || !strings.Contains(lastAsked(api), "still here") {
		t.Errorf("after it: %+v in %d, was %d", r, s.Info().PID, pid)
	}
}

func TestRealQuestions(t *testing.T) {
	realagent.LongOnly(t)
	p, c, api := realCalls(t)
	const input = `{"questions":[{"question":"Which color?","header":"Color","multiSelect":false,"options":[{"label":"Red","description":"warm"},{"label":"Blue","description":"cool"}]},` +
		`{"question":"Which sizes?","header":"Size","multiSelect":true,"options":[{"label":"S","description":"s"},{"label":"L","description":"l"}]}]}`
	req := cli.Request{Dir: c.Work, Attended: true, Turn: "T1", Prompt: "<<AskUserQuestion " + input + `>>[[tool cmd="true"]][[text "Done."]]`}
	s := clitest.Open(t, p, cli.Live, req)
	k := begin(t, s, req)
	asked := until[cli.QuestionAsked](k)
	if len(asked.Questions) != 2 || asked.Questions[0].Text != "Which color?" || asked.Questions[1].Multi != true ||
		len(asked.Questions[0].Options) != 2 || asked.Questions[0].Options[1].Label != "Blue" || !asked.Questions[0].Free {
		t.Fatalf("asked %+v", asked)
	}
	decide(t, s, asked.ID, cli.Decision{Allow: true, Answers: [][]string{{"a dark green"}, {"S", "L"}}})
	if r := k.end(); r.Text != "Done." || r.Err != nil {
		t.Errorf("answered %+v", r)
	}
	if body := lastAsked(api); !strings.Contains(body, "a dark green") || !strings.Contains(body, "S, L") {
		t.Errorf("the model heard %s", body[max(0, len(body)-2000):])
	}
}

// An approved plan ends Claude's plan mode. The next turn of a planning conversation sets it again.
func TestRealPlans(t *testing.T) {
	realagent.LongOnly(t)
	p, c, api := realCalls(t)
	req := cli.Request{Dir: c.Work, Attended: true, Permission: cli.Plan, Turn: "T0", Prompt: `[[text "I think."]]`}
	s := clitest.Open(t, p, cli.Live, req)
	req.Resume = begin(t, s, req).end().AgentSessionID
	realagent.WritePlan(t, api, "# Plan\n1. do it")
	req.Turn, req.Prompt = "T1", `<<ExitPlanMode {}>>[[tool cmd="true"]][[write path="`+filepath.Join(c.Work, "p.txt")+`" text="x"]][[text "Done."]]`
	k := begin(t, s, req)
	asked := until[cli.ApprovalAsked](k)
	if asked.Tool != cli.PlanTool || asked.Detail != "# Plan\n1. do it" {
		t.Errorf("asked %+v", asked)
	}
	decide(t, s, asked.ID, cli.Decision{Allow: true})
	write := until[cli.ApprovalAsked](k)
	if write.Tool != "Write" {
		t.Errorf("then asked %+v", write)
	}
	decide(t, s, write.ID, cli.Decision{Allow: true})
	r := k.end()
	if r.Text != "Done." || r.Err != nil {
		t.Errorf("answered %+v", r)
	}
	if m := s.(*live).turnSettings.Permission; m == "plan" {
		t.Errorf("it is taken to be in mode %q", m)
	}
	req.Turn, req.Resume = "T2", r.AgentSessionID
	req.Prompt = `<<ExitPlanMode { }>>[[tool cmd="true"]][[text "Well."]]`
	if !s.Fits(req) {
		t.Fatal("the session does not plan again")
	}
	k = begin(t, s, req)
	decide(t, s, until[cli.ApprovalAsked](k).ID, cli.Decision{Reason: "think again"})
	if r = k.end(); r.Text != "Well." || !strings.Contains(lastAsked(api), "think again") {
		t.Errorf("answered %+v", r)
	}
}
