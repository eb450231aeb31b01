package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ductor/lang"
)

// Advice in English goes only to chats in English. Other languages have general advice.
func TestAdviceInOtherLanguages(t *testing.T) {
	const install = "Install the Codex CLI, or set agents.codex.path"
	f := Failure{Kind: NotInstalled, Agent: "codex", Reason: install}
	auth := Auth{State: NotFound, Fix: install}
	if got := f.Sentence(lang.Printer{}) + auth.Advice(lang.Printer{}); strings.Count(got, install) != 2 {
		t.Errorf("in English it says %q", got)
	}
	german := lang.Language("de").Printer()
	general := german.Text("failure.not-installed-help")
	if got := f.Sentence(german); got != upperFirst(german.Text("failure.not-installed", "Codex"))+". "+general {
		t.Errorf("in German the failure is %q", got)
	}
	if got := auth.Advice(german); got != general {
		t.Errorf("in German the advice is %q", got)
	}
	auth = Auth{State: Installed, Fix: "Run `codex login`"}
	if got := auth.Advice(german); got != german.Text("failure.not-logged-in-help") {
		t.Errorf("in German the advice is %q", got)
	}
	if got := (Auth{State: NotFound}).Advice(german); got != "" {
		t.Errorf("without a fix the advice is %q", got)
	}
}

func TestFailureSentences(t *testing.T) {
	noon := time.Date(2026, 1, 5, 12, 0, 0, 0, time.Local)
	for _, tc := range []struct {
		f    Failure
		want string
	}{
		{Failure{Kind: NotInstalled}, "Claude is not installed, or not in the PATH of ductor. Install it on the machine, then check with `ductor doctor`."},
		{Failure{Kind: NotLoggedIn}, "Claude is not logged in. Log in on the machine."},
		{Failure{Kind: LimitReached}, "Claude has reached its usage limit."},
		{Failure{Kind: LimitReached, ResetAt: noon}, "Claude has reached its usage limit until Mon 12:00."},
		{Failure{Kind: Forbidden}, "The model's API refused the account of Claude."},
		{Failure{Kind: Overloaded}, "The model behind Claude is overloaded."},
		{Failure{Kind: APIFailed}, "Claude can't answer, because its model's API failed."},
		{Failure{Kind: TimedOut}, "Claude took too long and was stopped."},
		{Failure{Kind: Crashed, Code: 3, Reason: "panic.\nmore"}, "Claude ended unexpectedly (exit code 3): panic."},
		{Failure{Kind: Crashed, Code: -9}, "Claude ended unexpectedly (signal 9)."},
		{Failure{Kind: BadOutput}, "Claude wrote something that ductor can't read."},
		{Failure{Kind: DeniedTools}, "Claude was not allowed to continue. /permissions changes what it may do."},
		{Failure{Kind: ResumeFailed}, "Claude no longer knows this session."},
		{Failure{Kind: ContextFull}, "This session is longer than the model of Claude can read."},
		{Failure{Kind: NetworkDown}, "Claude can't reach its model over the network."},
		{Failure{Kind: UnknownModel}, "Claude does not know this model. Choose another with /model."},
		{Failure{Kind: LimitOfTurn}, "Claude stopped at the limit set for one turn. Ask it to continue."},
		{Failure{Kind: LimitReached, ResetAt: noon, Reason: "Claude AI usage limit reached|1767610800"},
			"Claude has reached its usage limit until Mon 12:00."},
		{Failure{Kind: Refused}, "Claude refused this request."},
		{Failure{Kind: NotRun, Reason: "ask is not available"}, "Claude was not started: ask is not available."},
		{Failure{Kind: AnswerCut}, "The answer was cut at the model's limit. Ask it to continue."},
		{Failure{Kind: ModelRefused, Reason: "a filter."}, "The model refused: a filter."},
		{Failure{Kind: UnknownFailure}, "Claude failed."},
	} {
		tc.f.Agent = "claude"
		if got := tc.f.Error(); got != tc.want || tc.f.Sentence(lang.Printer{}) != got {
			t.Errorf("%s: %q, want %q", tc.f.Kind, got, tc.want)
		}
	}
	if got := (&Failure{}).Error(); got != "The agent failed." {
		t.Errorf("the failure of nobody: %q", got)
	}
}

// The reasons of ductor are in the user's language, also inside other reasons and with durations. The words of agents
// stay.
func TestReasonsInOtherLanguages(t *testing.T) {
	german := lang.Language("de").Printer()
	lost := &Failure{Kind: NoSandbox, Reason: "the engine is gone"}
	for _, tc := range []struct {
		f    *Failure
		want string
	}{
		{Stalled("claude", 90*time.Second).Err, "gestoppt: er hat sich 1 min 30 s lang nicht gemeldet."},
		{Failf(NoSandbox, "claude", "failure.runs-on", lost.Why()),
			"fehlt: was gestoppt wurde, läuft dort weiter, bis sie wieder erreichbar ist: the engine is gone."},
		{Failf(Refused, "claude", "failure.mode-unset", "ask", Failf(Refused, "", "failure.empty").Why()),
			"abgelehnt: sein Berechtigungsmodus lässt sich nicht auf ask stellen: die Nachricht ist leer."},
		{&Failure{Kind: Crashed, Agent: "claude", Code: 1, Reason: "out of memory"}, "(Exit-Code 1): out of memory."},
	} {
		if got := tc.f.Sentence(german); !strings.Contains(got, tc.want) {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	f := Failf(Refused, "claude", "failure.empty")
	if f.Quote("bad request"); f.Error() != "Claude refused this request: bad request." {
		t.Errorf("after words of the agent: %s", f)
	}
	if f.Because(lang.NewMessage("failure.empty")); f.Error() != "Claude refused this request: the message is empty." {
		t.Errorf("after words of ductor: %s", f)
	}
}

// Stored denials contain the English reasons of ductor. Users read them in their language.
func TestDenialsInOtherLanguages(t *testing.T) {
	german := lang.Language("de").Printer()
	for reason := range denialTexts() {
		if got := (Denial{Reason: reason}).Why(german); got == reason || got == "" {
			t.Errorf("%q stays %q", reason, got)
		}
	}
	if got := (Denial{Reason: "because I say so"}).Why(german); got != "because I say so" {
		t.Errorf("the words of a user became %q", got)
	}
	for _, err := range []string{ToolCutShort, ToolDenied, ToolGoesOn, ToolGivenUp, ToolFailed} {
		if got := ToolErrorText(german, err); got == err || got == "" {
			t.Errorf("%q stays %q", err, got)
		}
	}
	if got := ToolErrorText(german, "no such file"); got != "no such file" {
		t.Errorf("the words of a tool became %q", got)
	}
}

func TestAsFailure(t *testing.T) {
	if AsFailure("a", nil) != nil {
		t.Error("no error became a failure")
	}
	own := Failf(Refused, "a", "no %d", 1)
	if got := AsFailure("b", fmt.Errorf("wrapped: %w", own)); got != own || got.Why().String() != "no 1" {
		t.Errorf("%+v", got)
	}
	got := AsFailure("b", fmt.Errorf("open: %w", fs.ErrPermission))
	if got.Kind != UnknownFailure || got.Agent != "b" || !errors.Is(got, fs.ErrPermission) {
		t.Errorf("%+v", got)
	}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		cause   error
		aborted bool
		want    string
	}{
		{ErrAborted, true, ""},
		{fmt.Errorf("by Ann: %w", ErrAborted), true, ""},
		{context.DeadlineExceeded, false, "A took too long and was stopped."},
		{ErrStale, false, "A took too long and was stopped: it had been running for longer than is allowed."},
		{ErrClosing, false, "A took too long and was stopped: ductor is stopping."},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tc.cause)
		r := Cut(ctx, "a")
		text := ""
		if r.Err != nil {
			text = r.Err.Error()
		}
		if r.Aborted != tc.aborted || text != tc.want {
			t.Errorf("%v: aborted %v, %q", tc.cause, r.Aborted, text)
		}
	}
}

func TestShorten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, limit := rapid.String().Draw(t, "s"), rapid.IntRange(3, 40).Draw(t, "limit")
		got := Shorten(s, limit)
		switch kept, cut := strings.CutSuffix(got, "…"); {
		case len(s) <= limit:
			if got != s {
				t.Fatalf("%q became %q", s, got)
			}
		case !cut || len(got) > limit || !strings.HasPrefix(s, kept) || !utf8.ValidString(got):
			t.Fatalf("%q of at most %d bytes became %q", s, limit, got)
		}
	})
}

func TestUsage(t *testing.T) {
	a, b := Usage{10, 5, 3, 2, 1}, Usage{4, 2, 1, 1, 0}
	if got := a.Sub(b).Add(b); got != a {
		t.Errorf("%+v", got)
	}
	if got := b.Sub(a); got != b {
		t.Errorf("a total that went down counts as %+v", got)
	}
	if got := a.Total(); got != 20 {
		t.Errorf("total %d", got)
	}
}
