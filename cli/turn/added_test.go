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
	var got []string
	a.Sent(func(name string, turn cli.TurnID) { got = append(got, name+" "+string(turn)) })
	if !slices.Equal(got, []string{"the first turn 1", "2 turn 2", "3 turn 3"}) || !a.End() {
		t.Errorf("of %q some wait", got)
	}
	if m, _ := a.Add("5", ""); m != nil || a.Close() {
		t.Error("it takes more")
	}
	if got := a.Settle().Unread; !slices.Equal(got, []cli.TurnID{"turn 2", "turn 3"}) {
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

// A message of the previous process counts if the model has read it, or if the agent has dropped it.
func TestAdoptedMessages(t *testing.T) {
	var a Added
	a.Adopt("1", "one")
	a.Adopt("2", "two")
	a.Adopt("3", "three")
	a.Read("1")
	a.Drop("1") // too late
	if a.End() || !slices.Equal(a.Waiting(), []string{"2", "3"}) {
		t.Error("the turn does not wait for the second and the third")
	}
	a.Drop("3")
	a.DropAll()
	got := a.Settle()
	if !slices.Equal(got.Unread, []cli.TurnID{"three"}) || !slices.Equal(got.Read, []cli.TurnID{"one"}) {
		t.Errorf("%+v", got)
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
				err := <-result
				if unread := a.Settle().Unread; !tc.want(err) || len(unread) > 0 {
					t.Errorf("Steer returns %v, and %q were not read", err, unread)
				}
			})
		})
	}
}

// A message has exactly one fate: the model read it, Steer returned ErrNoTurn, or Settle lists it. Steer may return
// another error only if it gave up before the turn ended.
func TestLawAMessageHasOneFate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var law fates
		t.Repeat(map[string]func(*rapid.T){
			"add": law.add, "accept": law.accept, "reject": law.reject, "lose": law.lose, "read": law.read,
			"exit":   func(t *rapid.T) { law.end(t, (*Added).DropAll); law.exited = true },
			"expire": func(t *rapid.T) { law.end(t, (*Added).Expire) },
		})
		settled := law.Settle()
		for _, s := range law.all {
			if !s.returned {
				s.err = s.m.Lost(law.done(), cli.ErrNoTurn)
			}
			refused, listed := errors.Is(s.err, cli.ErrNoTurn), slices.Contains(settled.Unread, cli.TurnID(s.name))
			switch {
			case !s.read && slices.Contains(settled.Read, cli.TurnID(s.name)):
				t.Errorf("%s is listed as read", s.name)
			case refused && listed:
				t.Errorf("%s runs twice", s.name)
			case s.read && listed, s.read && refused && s.named:
				t.Errorf("%s runs again although the model read it", s.name)
			case listed && s.err != nil:
				t.Errorf("%s is not read, and Steer returned %v", s.name, s.err)
			case law.exited && s.err == nil && !s.read && !listed:
				t.Errorf("%s is lost", s.name)
			case law.exited && s.err != nil && !refused && !s.gaveUp:
				t.Errorf("%s has no fate after the exit: %v", s.name, s.err)
			}
		}
	})
}

// fates contains messages of a turn, and the facts from which their fates follow.
type fates struct {
	Added
	all          []*fate
	over, exited bool
}

type fate struct {
	name     string
	named    bool // Added knows the name
	m        *Message
	returned bool
	err      error
	read     bool
	silent   bool // the model cannot read it, or does not name it
	gaveUp   bool // Steer returned before the turn ended
}

// done returns a context that is done.
func (*fates) done() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// pick returns a message in a state that suits the step, or skips the step.
func (f *fates) pick(t *rapid.T, suits func(*fate) bool) *fate {
	all := slices.DeleteFunc(slices.Clone(f.all), func(s *fate) bool { return !suits(s) })
	if len(all) == 0 {
		t.Skip("no message")
	}
	return rapid.SampledFrom(all).Draw(t, "message")
}

// answered returns a message whose Steer returns in this step.
func (f *fates) answered(t *rapid.T) *fate {
	s := f.pick(t, func(s *fate) bool { return !s.returned })
	s.returned = true
	return s
}

func (f *fates) add(t *rapid.T) {
	s, name := &fate{name: string(rune('a' + len(f.all))), named: rapid.Bool().Draw(t, "named")}, ""
	if s.named {
		name = s.name
	}
	if s.m, _ = f.Add(name, cli.TurnID(s.name)); s.m != nil {
		f.all = append(f.all, s)
	} else if !f.over {
		t.Fatal("a running turn accepts no message")
	}
}

func (f *fates) accept(t *rapid.T) {
	s := f.answered(t)
	s.named, s.err = true, s.m.Accepted(s.name)
}

// reject rejects a message, unless the model has read it: no agent does that.
func (f *fates) reject(t *rapid.T) {
	s := f.pick(t, func(s *fate) bool { return !s.returned && !s.read })
	s.returned, s.silent, s.err = true, true, s.m.Rejected()
}

func (f *fates) lose(t *rapid.T) {
	s := f.answered(t)
	s.silent, s.gaveUp, s.err = !s.named, !f.over, s.m.Lost(f.done(), cli.ErrNoTurn)
}

func (f *fates) read(t *rapid.T) {
	s := f.pick(t, func(s *fate) bool { return !s.silent && !f.over })
	s.read = true
	f.Read(s.name)
}

func (f *fates) end(t *rapid.T, end func(*Added)) {
	if f.over {
		t.Skip("the turn is over")
	}
	f.over = true
	end(&f.Added)
}
