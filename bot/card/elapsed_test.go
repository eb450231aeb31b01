package card

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/internal/sim/telegram"
)

// A tool's line shows a long running time, at growing intervals. Any other edit updates it too.
func TestCardSaysHowLongAToolRuns(t *testing.T) {
	withSimRig(t, telegram.StrictLimits(), func(s *simRig) {
		chat := s.chat(7)
		c := s.open(chat, 0)
		shows := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if last, _ := chat.View().Last(); last.Text != want {
				t.Errorf("the chat shows %q, want %q", last.Text, want)
			}
		}
		edits := func() int { return len(s.srv.Calls(telegram.Methods("editMessageText"))) }
		c.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "npm test"})
		shows(29*time.Second, "⏳ Run npm test")
		shows(2*time.Second, "⏳ Run npm test · 30 s")
		shows(28*time.Second, "⏳ Run npm test · 30 s")
		shows(3*time.Second, "⏳ Run npm test · 1 min 0 s")
		shows(60*time.Second, "⏳ Run npm test · 2 min 0 s")
		shows(time.Hour, "⏳ Run npm test · 32 min 0 s")
		if n := edits(); n != 7 {
			t.Errorf("%d edits in an hour, want one each time it doubles", n)
		}
		c.Show(cli.ToolStarted{ID: "2", Name: "Read", Title: "a.go"})
		shows(2*time.Second, "⏳ Run npm test · 1 h 2 min\n⏳ Read a.go")
		c.Show(cli.ToolEnded{ID: "1", Duration: time.Hour})
		c.Show(cli.ToolEnded{ID: "2"})
		s.finish(c, "Done.")
		last, _ := chat.View().Last()
		if want := "✓ Run npm test · 1 h 0 min\n✓ Read a.go\n\nDone.\n\nopus"; last.Text != want {
			t.Errorf("in the end %q", last.Text)
		}
	})
}

// The running time of a tool that started before this process counts from its real start.
func TestCardCountsFromWhenAToolBegan(t *testing.T) {
	withSimRig(t, telegram.Limits{}, func(s *simRig) {
		chat := s.chat(7)
		c := s.open(chat, 0)
		c.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "make", At: time.Now().Add(-100 * time.Second)})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if last, _ := chat.View().Last(); !strings.HasPrefix(last.Text, "⏳ Run make · 1 min 40 s") {
			t.Errorf("the chat shows %q", last.Text)
		}
		s.finish(c, "Done.")
	})
}

// A tool that waits for a user is not running: its line says so, and the wait does not count as running time.
func TestCardSaysThatAToolWaitsForPeople(t *testing.T) {
	for _, tc := range []struct {
		name    string
		decided bool
		want    string
	}{
		{"allowed", true, "✓ Run make · 40 s"},
		{"and nobody heard of it", false, "✓ Run make"}, // such as before a restart
	} {
		withSimRig(t, telegram.Limits{}, func(s *simRig) {
			chat := s.chat(7)
			c := s.open(chat, 0)
			shows := func(after time.Duration, want string) {
				t.Helper()
				time.Sleep(after)
				synctest.Wait()
				if last, _ := chat.View().Last(); last.Text != want {
					t.Errorf("%s: the chat shows %q, want %q", tc.name, last.Text, want)
				}
			}
			c.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
			c.Show(cli.ApprovalAsked{ID: "a", Tool: "Bash", Started: "1"})
			shows(10*time.Minute, "🔐 Run make")
			if tc.decided {
				c.Show(cli.ApprovalWithdrawn{ID: "b"}) // of another tool
				shows(5*time.Second, "🔐 Run make")
				c.Show(cli.ApprovalWithdrawn{ID: "a"})
				shows(35*time.Second, "⏳ Run make · 30 s")
				time.Sleep(5 * time.Second)
			}
			c.Show(cli.ToolEnded{ID: "1", Duration: 11 * time.Minute})
			s.finish(c, "Done.")
			if last, _ := chat.View().Last(); last.Text != tc.want+"\n\nDone.\n\nopus" {
				t.Errorf("%s: in the end %q", tc.name, last.Text)
			}
		})
	}
}

// A tool of ductor's own has the same name for all agents. Its approval names no call, and may come before the tool's
// line.
func TestCardSaysThatOurToolWaits(t *testing.T) {
	for _, agents := range []string{"mcp__ductor__", "mcp_ductor_", "ductor.", "ductor-", "ductor_"} {
		for _, early := range []bool{false, true} {
			withSimRig(t, telegram.Limits{}, func(s *simRig) {
				chat := s.chat(7)
				c := s.open(chat, 0)
				shows := func(want string) {
					t.Helper()
					time.Sleep(10 * time.Minute)
					synctest.Wait()
					if last, _ := chat.View().Last(); last.Text != want {
						t.Errorf("%s, early %v: the chat shows %q, want %q", agents, early, last.Text, want)
					}
				}
				events := []cli.Event{cli.ToolStarted{ID: "1", Name: agents + "schedule", Title: "look"}, cli.ApprovalAsked{ID: "a", Tool: "ductor.schedule"}}
				if early {
					events = []cli.Event{cli.QuestionAsked{ID: "a", Tool: "ductor.schedule"}, events[0]}
				}
				for _, ev := range events {
					c.Show(ev)
				}
				shows("🔐 ⏰ schedule look")
				c.Show(cli.ApprovalWithdrawn{ID: "a"})
				shows("⏳ ⏰ schedule look · 8 min 0 s")
				c.Show(cli.ToolEnded{ID: "1", Duration: time.Second})
				s.finish(c, "Done.")
			})
		}
	}
}

// The card never claims that a mute agent has been thinking for long, because the agent may be repeating a request. An
// agent that reports retries is shown as thinking.
func TestCardOfAnAgentThatDoesNotSayItAsksAgain(t *testing.T) {
	for mute, want := range map[bool]string{
		true: "💭 nothing from the agent yet: it is thinking, or trying its model again… 30 s", false: "💭 thinking… 30 s",
	} {
		withSimRig(t, telegram.Limits{}, func(s *simRig) {
			chat := s.chat(7)
			c := s.open(chat, 0)
			c.Show(cli.SessionStarted{AgentSessionID: "s", Mute: mute})
			shows := func(want string) {
				t.Helper()
				synctest.Wait()
				if last, _ := chat.View().Last(); last.Text != want {
					t.Errorf("mute %v: the chat shows %q, want %q", mute, last.Text, want)
				}
			}
			time.Sleep(25 * time.Second)
			shows("💭 thinking… 20 s")
			time.Sleep(10 * time.Second)
			shows(want)
			c.Show(cli.TextDelta{Text: "Here."})
			time.Sleep(time.Second)
			shows("Here.")
			s.finish(c, "Here.")
		})
	}
}
