package turn

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"ductor/cli"
)

// A turn does not end before the model has read each message, or will never read it.
func TestATurnWaitsForWhatWasAddedToIt(t *testing.T) {
	var a Added
	messages := map[string]*Message{}
	for _, name := range []string{"1", "2", "3", "4"} {
		m, isNew := a.Add(name, cli.TurnID("turn "+name))
		if m == nil || !isNew {
			t.Fatalf("%s: %v, new %v", name, m, isNew)
		}
		messages[name] = m
	}
	if m, isNew := a.Add("2", "turn 2"); isNew || m != messages["2"] {
		t.Error("a message is contained twice")
	}
	if err := messages["4"].Rejected(); !errors.Is(err, cli.ErrNoTurn) {
		t.Errorf("rejected: %v", err)
	}
	if err := messages["1"].Accepted("the first"); err != nil {
		t.Error(err)
	}
	if got := a.Waiting(); !slices.Equal(got, []string{"the first", "2", "3"}) || a.End() {
		t.Errorf("%q wait", got)
	}
	a.Read("the first")
	a.Read("nobody's")
	for _, name := range []string{"2", "3"} {
		if err := messages[name].Accepted(name); err != nil {
			t.Error(err)
		}
		a.Drop(name)
	}
	a.Drop("the first") // too late
	if got := a.Sent(); !slices.Equal(got, []string{"the first", "2", "3"}) || !a.End() {
		t.Errorf("of %q some wait", got)
	}
	if m, _ := a.Add("5", ""); m != nil || a.Close() {
		t.Error("it takes more")
	}
	if got := a.Settle(); !slices.Equal(got, []cli.TurnID{"turn 2", "turn 3"}) {
		t.Errorf("%q were not read", got)
	}
}

// A rejected message can be added again.
func TestARejectedMessageIsAddedAgain(t *testing.T) {
	var a Added
	m, _ := a.Add("1", "one")
	_ = m.Rejected()
	if again, isNew := a.Add("1", "one"); !isNew || again == m {
		t.Error("it is not new")
	}
}

func TestATurnThatIsCutLeavesWhatWaits(t *testing.T) {
	var a Added
	a.Add("1", "one")
	if !a.Close() {
		t.Error("nothing waits")
	}
	if m, _ := a.Add("2", "two"); m != nil {
		t.Error("it takes more")
	}
}

// A sender whose agent does not answer waits for the end of the turn.
func TestALostMessageWaitsForTheEndOfItsTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(*Added)
		want func(error) bool
	}{
		"the process ended": {(*Added).DropAll, func(err error) bool { return errors.Is(err, cli.ErrNoTurn) }},
		"the turn ended":    {(*Added).Expire, func(err error) bool { return errors.Is(err, cli.ErrNoTurn) }},
		"the model read it": {func(a *Added) { a.Read("1"); a.DropAll() }, func(err error) bool { return err == nil }},
		"ductor detached": {func(a *Added) { a.Settle() },
			func(err error) bool { return err != nil && !errors.Is(err, cli.ErrNoTurn) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var a Added
				m, _ := a.Add("1", "one")
				result := make(chan error, 1)
				go func() { result <- m.Lost(t.Context(), cli.ErrNoTurn) }()
				synctest.Wait()
				if len(result) > 0 {
					t.Error("Lost did not wait")
				}
				tc.end(&a)
				if err := <-result; !tc.want(err) || len(a.Settle()) > 0 {
					t.Errorf("Steer returns %v, and %q were not read", err, a.Settle())
				}
			})
		})
	}
}

// An agent may do anything in any order, and each message still has one fate: the model read it, or Steer returned
// ErrNoTurn, or Settle lists it. Only if Steer gave up before the turn ended, it may return another error.
func TestLawAMessageHasOneFate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a Added
		over, cancel := context.WithCancel(context.Background())
		cancel()
		type sent struct {
			name     string
			named    bool // ductor chose the name
			m        *Message
			returned bool
			err      error
			gotIt    bool // the model said that it read the message
			silent   bool // the model cannot read it, or does not name it
			gaveUp   bool // Steer returned before the turn ended
		}
		var all []*sent
		gone, exited := false, false
		pick := func(t *rapid.T) *sent {
			if len(all) == 0 {
				t.Skip("no message")
			}
			return rapid.SampledFrom(all).Draw(t, "message")
		}
		unanswered := func(t *rapid.T) *sent {
			s := pick(t)
			if s.returned {
				t.Skip("Steer has returned")
			}
			s.returned = true
			return s
		}
		inTurn := func(t *rapid.T) {
			if gone {
				t.Skip("the turn is over")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				s := &sent{name: string(rune('a' + len(all))), named: rapid.Bool().Draw(t, "named")}
				name := ""
				if s.named {
					name = s.name
				}
				if s.m, _ = a.Add(name, cli.TurnID(s.name)); s.m != nil {
					all = append(all, s)
				} else if !gone {
					t.Fatal("a running turn accepts no message")
				}
			},
			"accept": func(t *rapid.T) { s := unanswered(t); s.err = s.m.Accepted(s.name) },
			"reject": func(t *rapid.T) {
				s := unanswered(t)
				if s.gotIt { // an agent does not reject what its model has read
					s.err = s.m.Accepted(s.name)
					return
				}
				s.err = s.m.Rejected()
				s.silent = true
			},
			"lose": func(t *rapid.T) {
				s := unanswered(t)
				s.err = s.m.Lost(over, cli.ErrNoTurn)
				s.silent, s.gaveUp = !s.named, !gone
			},
			"read": func(t *rapid.T) {
				inTurn(t)
				if s := pick(t); !s.silent {
					s.gotIt = true
					a.Read(s.name)
				}
			},
			"exit": func(t *rapid.T) {
				inTurn(t)
				gone, exited = true, true
				a.DropAll()
			},
			"expire": func(t *rapid.T) {
				inTurn(t)
				gone = true
				a.Expire()
			},
		})
		unread := a.Settle()
		for _, s := range all {
			if !s.returned {
				s.err = s.m.Lost(over, cli.ErrNoTurn)
			}
			refused, listed := errors.Is(s.err, cli.ErrNoTurn), slices.Contains(unread, cli.TurnID(s.name))
			switch {
			case refused && listed:
				t.Errorf("%s runs twice", s.name)
			case s.gotIt && listed, s.gotIt && refused && s.named:
				t.Errorf("%s runs again although the model read it", s.name)
			case listed && s.err != nil:
				t.Errorf("%s is not read, and Steer returned %v", s.name, s.err)
			case exited && s.err == nil && !s.gotIt && !listed:
				t.Errorf("%s is lost", s.name)
			case exited && s.err != nil && !refused && !s.gaveUp:
				t.Errorf("%s has no fate after the exit: %v", s.name, s.err)
			}
		}
	})
}
