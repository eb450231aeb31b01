package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ductor/lang"
)

// FailureKind classifies failures by the actions that the user can take.
type FailureKind string

// FailureKind values. Each kind has its own sentence in the chat.
const (
	NotInstalled FailureKind = "not-installed"
	NotLoggedIn  FailureKind = "not-logged-in"
	LimitReached FailureKind = "rate-limited" // ResetAt is set if known
	Forbidden    FailureKind = "forbidden"    // the account lacks the permission
	Overloaded   FailureKind = "overloaded"
	APIFailed    FailureKind = "api-failed" // the model's API had an internal error
	TimedOut     FailureKind = "timeout"    // the turn took too long; the partial output remains
	Crashed      FailureKind = "crashed"    // the program ended; Code is its exit code, and Detail the end of stderr
	Killed       FailureKind = "killed"     // `ductor kill` ended the agent
	BadOutput    FailureKind = "bad-output"
	DeniedTools  FailureKind = "denied"
	ResumeFailed FailureKind = "resume-failed"
	ContextFull  FailureKind = "context-full" // the conversation is longer than the model can read
	NetworkDown  FailureKind = "network"
	UnknownModel FailureKind = "unknown-model"
	OverBudget   FailureKind = "budget"     // a budget is spent; Reason names it
	LimitOfTurn  FailureKind = "turn-limit" // the turn reached its limit of model calls or costs
	Refused      FailureKind = "refused"    // the API or the agent rejected the request, for example as invalid
	AnswerCut    FailureKind = "cut"        // the answer exceeds the model's limit; the partial answer remains
	ModelRefused FailureKind = "no-answer"  // the model, or a filter around it, refused to answer
	// NotRun means that ductor did not run the agent, because it cannot enforce the permission mode or another limit of
	// the request. Reason explains which.
	NotRun      FailureKind = "not-run"
	NoSandbox   FailureKind = "sandbox"   // the sandbox is unavailable or was lost; Reason explains how to fix it
	NoDirectory FailureKind = "directory" // the working directory is gone, or ductor may not use it
	// FailsOften means that the agent's last turns all failed. Code is the number of these turns, and Cause is the last
	// failure. The agent gets no turns until ResetAt.
	FailsOften     FailureKind = "fails-often"
	UnknownFailure FailureKind = "unknown"
)

// Failure is an error with a text for users and a kind that determines the possible reactions. Detail is for operators.
// It may contain raw output of the agent, so ductor removes secrets from it before every use.
type Failure struct {
	Kind    FailureKind
	Agent   Agent
	Account Account   // the account that is not logged in, if Kind is NotLoggedIn
	Sandbox Sandbox   // where the agent should have run; empty for this host, or if ductor does not know it
	Reason  string    // one sentence, often the agent's own, shortened; may be empty
	ResetAt time.Time // LimitReached and FailsOften: when the agent can be used again; zero if unknown
	// Code is the exit code if Kind is Crashed: negative for a signal, or CodeUnknown. If Kind is FailsOften, Code is
	// the number of failed turns.
	Code   int
	Detail string // end of stderr, or raw output, shortened
	// Cause is the underlying error, for errors.Is; it may be nil. If it contains a *lang.Error, Sentence uses the text of
	// that error, in the user's language, in place of Reason.
	Cause error
}

// Failf returns a Failure whose Reason is formatted like fmt.Sprintf.
func Failf(kind FailureKind, agent Agent, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Agent: agent, Reason: fmt.Sprintf(format, args...)}
}

// AsFailure returns the Failure that err wraps, or a new UnknownFailure that wraps err. It returns nil if err is nil.
func AsFailure(agent Agent, err error) *Failure {
	if err == nil {
		return nil
	}
	var f *Failure
	if errors.As(err, &f) {
		if f.Agent == "" {
			named := *f
			named.Agent = agent
			return &named
		}
		return f
	}
	return &Failure{Kind: UnknownFailure, Agent: agent, Reason: err.Error(), Cause: err}
}

// Error returns Sentence in English.
func (f *Failure) Error() string { return f.Sentence(lang.Printer{}) }

// Unwrap returns Cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Sentence describes the failure and a fix in one line.
func (f *Failure) Sentence(p lang.Printer) string {
	what, help, reason := f.what(p), "", f.Reason
	if why := (*lang.Error)(nil); errors.As(f.Cause, &why) {
		reason = why.Explain(p)
	}
	if f.advised() && !p.IsEnglish() {
		reason = ""
	}
	if key := f.help(); key != "" && (reason == "" || !f.advised()) {
		help = " " + p.Text(key)
	}
	if f.Kind == LimitReached && resetUnix().MatchString(reason) { // the reason only repeats the reset time
		reason = ""
	}
	if reason != "" {
		what = p.Text("common.because", what, strings.TrimRight(firstLine(reason), "."))
	}
	return upperFirst(what) + "." + help
}

// Died reports whether the agent's program ended in the middle of the turn. f may be nil.
func (f *Failure) Died() bool { return f != nil && (f.Kind == Crashed || f.Kind == Killed) }

func (f *Failure) what(p lang.Printer) string {
	agent := f.Account.NameOf(p, f.Agent)
	if agent == "" {
		agent = p.Text("common.the-agent")
	}
	there := f.Sandbox.Name()
	switch f.Kind {
	case NotInstalled:
		if there != "" {
			return p.Text("failure.not-installed-there", agent, there)
		}
		return p.Text("failure.not-installed", agent)
	case NotLoggedIn:
		if there != "" {
			return p.Text("failure.not-logged-in-there", agent, there)
		}
		return p.Text("failure.not-logged-in", agent)
	case LimitReached:
		if !f.ResetAt.IsZero() {
			return p.Text("failure.limit-until", agent, p.Weekday(f.ResetAt.Local()))
		}
		return p.Text("failure.limit", agent)
	case NoSandbox:
		if there != "" {
			return p.Text("failure.no-sandbox-named", agent, there)
		}
		return p.Text("failure.no-sandbox", agent)
	case Crashed:
		return p.Text("failure.crashed", agent, ExitText(p, f.Code))
	case FailsOften:
		what := p.Text("failure.often", agent, f.Code, p.Weekday(f.ResetAt.Local()))
		var last *Failure
		if errors.As(f.Cause, &last) {
			what = p.Text("common.because", what, last.what(p))
		}
		return what
	}
	return f.whatElse(p, agent)
}

func (f *Failure) whatElse(p lang.Printer, agent string) string {
	switch f.Kind {
	case Forbidden:
		return p.Text("failure.forbidden", agent)
	case Overloaded:
		return p.Text("failure.overloaded", agent)
	case APIFailed:
		return p.Text("failure.api-failed", agent)
	case TimedOut:
		return p.Text("failure.timeout", agent)
	case Killed:
		return p.Text("failure.killed", agent)
	case BadOutput:
		return p.Text("failure.bad-output", agent)
	case DeniedTools:
		return p.Text("failure.denied", agent)
	case ResumeFailed:
		return p.Text("failure.resume-failed", agent)
	case ContextFull:
		return p.Text("failure.context-full", agent)
	case NetworkDown:
		return p.Text("failure.network", agent)
	case UnknownModel:
		return p.Text("failure.unknown-model", agent)
	case LimitOfTurn:
		return p.Text("failure.turn-limit", agent)
	case Refused:
		return p.Text("failure.refused", agent)
	case NotRun:
		return p.Text("failure.not-run", agent)
	case AnswerCut:
		return p.Text("failure.cut")
	case ModelRefused:
		return p.Text("failure.model-refused")
	case NoDirectory:
		return p.Text("failure.no-directory")
	case OverBudget:
		return p.Text("failure.over-budget")
	}
	return p.Text("failure.unknown", agent)
}

// help returns the advice that Sentence adds to the description. It returns "" if the chat shows buttons for this
// failure.
func (f *Failure) help() lang.Key {
	var there lang.Key
	if f.Sandbox.Name() != "" {
		there = map[FailureKind]lang.Key{
			NotInstalled: "failure.not-installed-there-help", NotLoggedIn: "failure.not-logged-in-there-help",
		}[f.Kind]
	}
	return cmp.Or(there, map[FailureKind]lang.Key{
		NotInstalled: "failure.not-installed-help", NotLoggedIn: "failure.not-logged-in-help",
		UnknownModel: "failure.unknown-model-help", NoSandbox: "failure.no-sandbox-help",
		NoDirectory: "failure.no-directory-help",
		OverBudget:  "failure.over-budget-help", DeniedTools: "failure.denied-help",
		LimitOfTurn: "failure.continue-help", AnswerCut: "failure.continue-help",
	}[f.Kind])
}

// CodeUnknown is the exit code of a program whose end ductor could not observe.
const CodeUnknown = -1 << 15

// ExitText describes for users how a program with this exit code ended.
func ExitText(p lang.Printer, code int) string {
	switch {
	case code == CodeUnknown:
		return p.Text("failure.end-unseen")
	case code < 0:
		return p.Text("failure.signal", -code)
	}
	return p.Text("failure.exit-code", code)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return Shorten(s, 300)
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Name returns the agent's name with a capital letter, for texts.
func (a Agent) Name() string { return upperFirst(string(a)) }

// advised reports whether Reason already contains advice, such as "Install …".
func (f *Failure) advised() bool {
	word, _, _ := strings.Cut(f.Reason, " ")
	return (f.Kind == NotInstalled || f.Kind == NotLoggedIn) && f.Sandbox == "" &&
		slices.Contains([]string{"Install", "Log", "Run", "Set", "Correct"}, word)
}
