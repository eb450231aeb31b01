package cli

import (
	"strings"
	"testing"
)

func TestWhatAnAgentCannotDoDependsOnHowItIsRun(t *testing.T) {
	for mode, want := range map[Mode]string{Live: "", OneShot: "it cannot"} {
		p := &fakeProvider{agent: "a", modes: []Mode{mode}}
		s, err := NewService(ServiceOptions{Providers: []Provider{limitedProvider{p}, &fakeProvider{agent: "b"}}})
		if err != nil {
			t.Fatal(err)
		}
		s.Agents(t.Context(), "") // which asks for the mode
		if got := s.Cannot("", "a", Plan); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
		if got := s.Cannot("", "a", Ask) + s.Cannot("", "b", Plan) + s.Cannot("", "c", Plan); got != "" {
			t.Errorf("%s: %q", mode, got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// limitedProvider cannot plan when it is run once.
type limitedProvider struct{ *fakeProvider }

func (limitedProvider) Cannot(mode Mode, p PermissionMode) string {
	if mode == OneShot && p == Plan {
		return "it cannot"
	}
	return ""
}

func TestAnAgentThatCannotBeToldItsToolsRunsNoTurnThatNamesThem(t *testing.T) {
	p := &fakeProvider{}
	s := newTestService(t, ServiceOptions{}, p)
	r, _ := run(t, s, "fake", Request{Tools: []string{"Read", "Grep"}})
	if r.Err == nil || r.Err.Kind != Refused || !strings.Contains(r.Err.Sentence(), "Read, Grep") || len(p.opened()) > 0 {
		t.Errorf("%+v, and %d sessions were opened", r.Err, len(p.opened()))
	}
	closeService(t, s)
}
