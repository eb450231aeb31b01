package service

import (
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/lang"
)

func TestWhatAnAgentCannotDoDependsOnHowItIsRun(t *testing.T) {
	for mode, want := range map[cli.Mode]string{cli.Live: "", cli.OneShot: "it cannot"} {
		p := &fakeProvider{agent: "a", modes: []cli.Mode{mode}}
		s, err := New(Options{Providers: []cli.Provider{limitedProvider{p}, &fakeProvider{agent: "b"}}})
		if err != nil {
			t.Fatal(err)
		}
		s.Agents(t.Context(), "") // this asks for the mode
		if got := s.Cannot("", "a", cli.Plan).String(); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		got := s.Cannot("", "a", cli.Ask).String() + s.Cannot("", "b", cli.Plan).String()
		if got += s.Cannot("", "c", cli.Plan).String(); got != "" {
			t.Errorf("%s: %q", mode, got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// limitedProvider cannot plan in one-shot mode.
type limitedProvider struct{ *fakeProvider }

func (limitedProvider) Cannot(mode cli.Mode, p cli.PermissionMode) lang.Message {
	if mode == cli.OneShot && p == cli.Plan {
		return lang.Words("it cannot")
	}
	return lang.Message{}
}

// unheldProvider is held to no mode but bypass.
type unheldProvider struct{ *fakeProvider }

func (unheldProvider) Unheld(req cli.Request) lang.Message {
	if req.Permission == cli.Bypass {
		return lang.Message{}
	}
	return lang.Words("not available")
}

// An agent runs no turn in a mode to which nothing holds it, except for a question for text. A running turn continues.
func TestAnAgentRunsOnlyInModesToWhichItIsHeld(t *testing.T) {
	p := &fakeProvider{}
	s, err := New(Options{Providers: []cli.Provider{unheldProvider{p}}})
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[cli.PermissionMode]string{
		cli.Ask: "ask is not available", cli.Plan: "plan is not available", cli.Bypass: "",
	} {
		r, _ := run(t, s, "fake", cli.Request{Permission: mode})
		for _, f := range []*cli.Failure{s.CannotHold("fake", cli.Request{Permission: mode}), r.Err} {
			if (f != nil) != (want != "") || f != nil && (f.Kind != cli.NotRun || f.Why().String() != want) {
				t.Errorf("%s: %+v", mode, f)
			}
		}
	}
	if r, _ := run(t, s, "fake", cli.Request{Permission: cli.Plan, TextOnly: true}); r.Err != nil {
		t.Errorf("a question for text: %+v", r.Err)
	}
	if n := len(p.opened()); n != 2 {
		t.Errorf("%d sessions were opened", n)
	}
	if got := s.CannotHold("fake", cli.Request{Permission: cli.Ask, Began: time.Unix(1, 0)}); got != nil {
		t.Errorf("a turn that runs: %+v", got)
	}
	closeService(t, s)
}

func TestAnAgentThatCannotBeToldItsToolsRunsNoTurnThatNamesThem(t *testing.T) {
	p := &fakeProvider{}
	s := serve(t, p)
	r, _ := run(t, s, "fake", cli.Request{ToolLists: []cli.ToolList{{Only: []string{"Read", "Grep"}}}})
	if r.Err == nil || r.Err.Kind != cli.NotRun || !strings.Contains(r.Err.Error(), "cannot be told which tools") || len(p.opened()) > 0 {
		t.Errorf("%+v, and %d sessions were opened", r.Err, len(p.opened()))
	}
	closeService(t, s)
}
