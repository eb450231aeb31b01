package card

import (
	"strings"
	"testing"
	"time"

	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// A card shows what helps its reader: why a tool failed, what continues, and reasoning without its Markdown. Once the
// turn is over it does not mention a bypass.
func TestWhatACardSaysInTheEnd(t *testing.T) {
	withRig(t, func(s *rig) {
		s.turn.Bypass, s.turn.Wants.Card.Think = time.Now().Add(time.Hour), orchestrator.ThinkOn
		c := s.newCard()
		c.Show(cli.ThinkingDelta{Text: "**Looking** at the files"})
		c.Show(cli.ToolStarted{ID: "1", Name: "send_file"})
		c.Show(cli.ToolEnded{ID: "1", Err: "MCP server 'ductor': /etc/passwd is outside of the project"})
		c.Show(cli.ToolStarted{ID: "2", Name: "bash", Title: "sleep 60"})
		c.Show(cli.ToolEnded{ID: "2", Err: cli.ToolGoesOn, Duration: 3500 * time.Millisecond})
		time.Sleep(5 * time.Second)
		if live := s.chat.Text(); !strings.Contains(live, "bypass") {
			t.Errorf("while it runs: %q", live)
		}
		s.finish(c, orchestrator.Outcome{Text: "done"})
		text := s.chat.Visible()[0].Text.Text
		for _, want := range []string{
			"Looking at the files\n", "✗ send_file · MCP server 'ductor': /etc/passwd is outside of the project\n",
			"• Run sleep 60 · goes on in the background · 3.5 s\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("it lacks %q: %q", want, text)
			}
		}
		if strings.Contains(text, "bypass") || strings.Contains(text, "**") {
			t.Errorf("in the end: %q", text)
		}
	})
}

// A user who decided something a moment ago is looking at the chat, so the end of the turn makes no sound.
func TestAUserWhoJustDecidedNeedsNoSound(t *testing.T) {
	for _, c := range []struct {
		ev   cli.Event
		ends int
	}{{cli.ApprovalWithdrawn{ID: "a", Pressed: true}, 0}, {cli.ApprovalWithdrawn{ID: "a"}, 1}} {
		withRig(t, func(s *rig) {
			k := s.newCard()
			k.Show(cli.ToolStarted{ID: "1", Name: "Bash", Title: "make"})
			k.Show(cli.ApprovalAsked{ID: "a", Tool: "Bash", Started: "1"})
			time.Sleep(2 * time.Minute)
			k.Show(c.ev)
			k.Show(cli.ToolEnded{ID: "1"})
			time.Sleep(200 * time.Millisecond)
			s.finish(k, orchestrator.Outcome{Text: "made", Duration: 2 * time.Minute, Ending: orchestrator.Ending{Announce: orchestrator.Announced}})
			if n := s.ends(); n != c.ends {
				t.Errorf("%+v: the end is announced %d times", c.ev, n)
			}
		})
	}
}

// A line shows only one time.
func TestALineHasOneTime(t *testing.T) {
	p := lang.Language("en").Printer()
	w := waitLine{state: waitRetrying, retry: cli.Retry{Why: cli.LimitReached, Attempt: 6, Most: 10, In: 18 * time.Second}, clock: 10 * time.Second}
	if got := w.text(p, "claude").Text; !strings.HasSuffix(got, "try 6 of 10 in 18 s") {
		t.Errorf("it says %q", got)
	}
	w.retry.In = 0
	if got := w.text(p, "claude").Text; !strings.HasSuffix(got, "10 s") {
		t.Errorf("it says %q", got)
	}
}
