package card

import (
	"cmp"
	"time"

	"ductor/bot/render"
	"ductor/cli"
	"ductor/lang"
)

// waitState is the reason why a turn waits. The last line of a running card shows the reason.
type waitState int

const (
	waitQuiet    waitState = iota // no line: text or a tool progresses, or did a moment ago
	waitOpening                   // no line yet: the agent's process starts
	waitThinking                  // the agent is silent
	waitMute                      // the agent has been silent for long, and may be repeating a request to its model
	waitStarting                  // the agent is still starting; detail names the reason for the delay, if known
	waitFor                       // detail names the reason
	waitCompacting
	waitRetrying
	waitPaused // a pause before a retry; detail describes it
	waitAsked  // no line: a separate message asks the user
)

// waitLine is the last line of a running card.
type waitLine struct {
	state  waitState
	detail string
	retry  cli.Retry     // when and why the agent repeats its request
	clock  time.Duration // waiting time that the line shows; 0 for none
}

// setWait changes the line and restarts its clock. It reports whether to show the change.
func (d *document) setWait(state waitState, detail string) bool {
	was := d.wait
	d.wait = waitLine{state: state, detail: detail}
	return was.state != state || was.detail != detail
}

// applyStatus records a status from the agent. A warning stays in the card.
func (d *document) applyStatus(s cli.Status) bool {
	switch {
	case s.Kind == cli.StatusWarning:
		d.addNote(render.Plain("⚠️ " + render.ShortLine(s.Detail, 300)))
		return true
	case s.Kind == cli.StatusCompacting:
		return d.setWait(waitCompacting, "")
	case s.Kind == cli.StatusRetrying:
		was := d.wait.retry
		changed := d.setWait(waitRetrying, s.Detail)
		d.wait.retry = s.Retry
		return changed || was != s.Retry
	case s.Kind == cli.StatusPaused:
		return d.setWait(waitPaused, s.Detail)
	case s.Kind == cli.StatusWaiting && s.Detail != "":
		return d.setWait(waitFor, s.Detail)
	case s.Kind == cli.StatusStarting:
		return d.beginOpening(s.Detail)
	}
	return d.opened()
}

// beginOpening records that the agent's process starts. If the start takes long, the line shows detail as the reason.
func (d *document) beginOpening(detail string) bool {
	shown := d.wait.state == waitFor
	d.wait = waitLine{state: waitOpening, detail: detail}
	return shown
}

// opened records that the agent's process runs, or that a stage with its own line has ended. The change from starting
// to thinking does not justify an edit; the next edit shows it.
func (d *document) opened() bool {
	switch d.wait.state {
	case waitQuiet, waitOpening:
		d.wait.state, d.wait.detail = waitQuiet, ""
		return false
	case waitThinking, waitStarting:
		d.wait.state, d.wait.detail = waitThinking, ""
		return false
	}
	return d.setWait(waitQuiet, "")
}

// muteAfter is the silence after which the line of a mute agent says that the agent may be repeating a request.
const muteAfter = 30 * time.Second

// silence updates the line after the agent was silent for lasts. The clock advances in steps.
func (d *document) silence(lasts, step time.Duration) {
	switch d.wait.state {
	case waitQuiet:
		d.wait.state = waitThinking
	case waitOpening:
		d.wait.state = waitStarting
	}
	if d.wait.state == waitThinking && d.turn.mute && lasts >= muteAfter {
		d.wait.state = waitMute
	}
	if lasts >= step {
		d.wait.clock = lasts.Truncate(step)
	}
}

// nextClock returns the waiting time at which the line's clock alone justifies an edit, or false if the line has no
// clock.
func (w waitLine) nextClock(step time.Duration) (time.Duration, bool) {
	switch w.state {
	case waitQuiet, waitOpening, waitAsked, waitPaused:
		return 0, false
	}
	switch {
	case w.clock >= time.Hour:
		step = 5 * time.Minute
	case w.clock >= 10*time.Minute:
		step = time.Minute
	case w.clock >= 2*time.Minute:
		step = 30 * time.Second
	}
	return w.clock.Truncate(step) + step, true
}

// Rates of a clock. It is updated less often the longer the user waits, because each update is an edit.
const (
	clockPrivate = 10 * time.Second
	clockGroup   = 30 * time.Second
)

// text returns the line as the chat shows it.
func (w waitLine) text(p lang.Printer, agent cli.Agent) render.Text {
	line := ""
	switch w.state {
	case waitThinking:
		line = p.Text("card.thinking")
	case waitMute:
		line = p.Text("card.mute", render.AgentName(p, agent))
	case waitStarting, waitFor:
		if w.detail == "" {
			line = p.Text("card.starting", render.AgentName(p, agent))
			break
		}
		line = "⏳ " + render.ShortLine(w.detail, 120) + "…"
	case waitPaused:
		line = "⏳ " + w.detail
	case waitCompacting:
		line = p.Text("card.compacting")
	case waitRetrying:
		line = p.Text("card.retrying")
		if why := cmp.Or(render.ShortLine(w.detail, 120), retryText(p, w.retry)); why != "" {
			line += " " + why
		}
	default:
		return render.Text{}
	}
	if w.clock > 0 && w.retry.In == 0 { // a clock next to another time would be confusing
		line += " " + p.Elapsed(w.clock)
	}
	return render.Styled(render.Italic, line)
}

// retryText explains when and why the agent repeats its request. It returns "" if that is unknown.
func retryText(p lang.Printer, r cli.Retry) string {
	key := map[cli.FailureKind]lang.Key{
		cli.LimitReached: "card.retry-limit", cli.Overloaded: "card.retry-overloaded",
		cli.NotLoggedIn: "card.retry-log-in",
		cli.NetworkDown: "card.retry-network",
	}[r.Why]
	switch key = cmp.Or(key, "card.retry-error"); {
	case r.Why == "":
		return ""
	case r.Attempt == 0:
		return p.Text(key)
	case r.In < time.Second:
		return p.Text("card.retry-attempt", p.Text(key), r.Attempt, r.Most)
	}
	return p.Text("card.retry-attempt-in", p.Text(key), r.Attempt, r.Most, p.Rounded(r.In))
}
